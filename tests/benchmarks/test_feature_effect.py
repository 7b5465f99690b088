"""Peers with labeltree's features: kept apart from all other runs, and shown in a section of their own."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare, feature_effect
from benchmarks.overview import data_sets, newest, overview, readme_section
from benchmarks.preparing import FEATURES, prepare
from benchmarks.running import Tool, discover, make_toy

DEBTAGS = "debian-debtags"
FULL = "omikuji-3+features"


@pytest.fixture(scope="module")
def tools() -> dict[str, Tool]:
    return discover(compare.TOOLS)


def record(tool: str, p1: float, digest: str = "words", data: str = DEBTAGS) -> dict[str, Any]:
    return {
        "data": data, "tool": tool, "threads": 1, "repeat": 1, "fingerprint": "f", "digest": digest,
        "machine": "m", "n_train": 12, "n_test": 3, "n_features": 7, "n_labels": 735, "version": "1.0",
        "p@1": p1, "p@3": p1 - 20, "p@5": p1 - 40, "train_cpu_s": 10.0, "model_bytes": 1,
    }  # fmt: skip


RUNS = [record("labeltree", 87.0), record("omikuji-3", 85.0), record(FULL, 86.5, "full")]


def test_full_features_stand_beside_no_others(tools: dict[str, Tool]) -> None:
    assert newest(RUNS, DEBTAGS) == RUNS[:2]  # though the last run has other features
    assert newest(RUNS, DEBTAGS, full=True) == RUNS[2:]
    assert data_sets([*RUNS, record(FULL, 1.0, data="bibtex")]) == [DEBTAGS]
    assert FULL not in overview(RUNS, tools)
    assert FULL not in readme_section(RUNS, tools)
    assert feature_effect.TITLE not in overview(RUNS[:2], tools)


def test_lead_is_split_into_features_and_method(tools: dict[str, Tool]) -> None:
    page = overview(RUNS, tools)
    assert (
        f"- {DEBTAGS}: P@1/3/5 of labeltree against omikuji-3 on words +2.0/+2.0/+2.0: "
        "features +1.5/+1.5/+1.5, method +0.5/+0.5/+0.5." in page
    )
    section = page.partition(f"## {feature_effect.TITLE}")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    assert [row for row in rows if row[:1] == [DEBTAGS]][:3] == [
        [DEBTAGS, "labeltree", "labeltree's", "87.00/67.00/47.00", "10.00", "1"],
        [DEBTAGS, "omikuji-3", "words", "85.00/65.00/45.00", "10.00", "1"],
        [DEBTAGS, "omikuji-3", "labeltree's", "86.50/66.50/46.50", "10.00", "1"],
    ]
    assert "pecos-xrlinear on words" not in page  # nothing to tell apart


def test_tools_are_named_by_what_they_get(tools: dict[str, Tool]) -> None:
    chosen = feature_effect.choose("all", tools)
    assert [tool.name for tool in chosen] == [FULL, "pecos-xrlinear+features"]
    assert chosen[0].fingerprint == tools["omikuji-3"].fingerprint
    assert [tool.name for tool in feature_effect.choose("omikuji-1", tools)] == ["omikuji-1+features"]
    for name in ("labeltree", "fasttext-hs", "absent"):
        with pytest.raises(SystemExit, match=f"peers that take vectors, but not for '{name}'"):
            feature_effect.choose(name, tools)


def test_peers_get_words_whatever_the_defaults_are(tmp_path: Path) -> None:
    """Cut at spaces, TF-IDF, unit length, nothing else: each row as it is worked out by hand."""
    lines = ["__label__a Ice-cream ice\n", "__label__b ice ice\n", "__label__b x\n"]
    (tmp_path / "rows.txt").write_text("".join(lines))
    prepared = prepare("tiny", tmp_path / "rows.txt", tmp_path / "rows.txt", tmp_path)
    X = prepared.train.X
    assert X.n_columns == 3  # ice-cream, ice, x
    assert [len(range(*X.indptr[i : i + 2])) for i in range(3)] == [2, 1, 1]
    assert X.values[2:].tolist() == [1.0, 1.0]
    assert (X.values[:2] ** 2).sum() == pytest.approx(1.0)
    assert prepare("tiny", tmp_path / "rows.txt", tmp_path / "rows.txt", tmp_path).digest == prepared.digest


def test_command_prepares_full_features_for_texts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = make_toy(tmp_path)
    sources = {"toy": toy.train.source.read_bytes(), "numbers": b"2 3 2\n0 0:1 1:2\n1 2:1\n"}
    for name, content in sources.items():
        for part in ("train", "test"):
            packed = tmp_path / "data" / name / f"{part}.txt.xz"
            packed.parent.mkdir(parents=True, exist_ok=True)
            packed.write_bytes(lzma.compress(content))
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LABELTREE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked: list[tuple[str, str]] = []

    def run(self: Any, tool: Tool, prepared: Any, threads: int, seed: int) -> dict[str, Any]:
        asked.append((tool.name, prepared.digest))
        return {"p@1": 1.0, "p@3": 1.0, "p@5": 1.0, "version": "1.0"}

    monkeypatch.setattr("benchmarks.running.Runner.run", run)
    options = ["--repeats", "1", "--output", str(tmp_path / "out")]
    compare.main(["--data", "toy,numbers", "--features", "full", "--tools", "omikuji-3", *options])
    printed = capsys.readouterr().out
    assert "numbers: skipped, its rows are vectors" in printed
    assert f"| {FULL} " in printed
    source = toy.train.source
    digests = {name: prepare("toy", source, source, tmp_path, name).digest for name in FEATURES}
    assert asked == [(FULL, digests["full"])]
    assert [record["tool"] for record in compare.Ledger(tmp_path / "out").records] == [FULL]
