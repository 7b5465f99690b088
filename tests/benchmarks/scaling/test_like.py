"""Runs at the paper's scale, in small: planned, made once, kept, and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import Ledger
from benchmarks.generate import PUBLISHED, Shape
from benchmarks.running import RunError, Runner
from benchmarks.scaling import like
from benchmarks.scaling.like import Plan
from benchmarks.scaling.like_page import write_like
from benchmarks.scaling.memory_page import write_memory
from benchmarks.scaling.page import write_page
from benchmarks.scaling.sets import PAPER_SETS

TINY = Shape(300, 40, 200, 2, 10)
MEASURED = {
    "train_cpu_s": 100.0, "train_wall_s": 60.0, "train_peak_anonymous_bytes": 10**9,
    "train_peak_bytes": 2 * 10**9, "model_bytes": 5 * 10**8, "batch_vectors_us": 50.0,
    "batch_vectors_cpu_us": 40.0, "p50_vectors_us": 60.0, "predict_peak_anonymous_bytes": 10**8, "p@1": 90.0,
    "p@3": 70.0, "p@5": 50.0, "model_digest": "abc",
}  # fmt: skip


def record(tool: str, data: str = "wikilshtc", n_documents: int = 1000, **changed: Any) -> dict[str, Any]:
    return {
        "data": data, "tool": tool, "machine": "an abacus", "fingerprint": "f1", "load_average": 1.0,
        "shape": TINY._replace(n_documents=n_documents)._asdict(), **MEASURED, **changed,
    }  # fmt: skip


def test_every_set_of_the_paper_has_its_statistics() -> None:
    assert [of.name for of in PAPER_SETS.values()] == list(PUBLISHED)
    assert all(of.shape.n_labels > 30_000 for of in PAPER_SETS.values())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SystemExit, match="--like wiki11: unknown; known are wiki10, "):
        like.choose_sets("wiki10,wiki11")
    with pytest.raises(SystemExit, match="--tools hammer: unknown; known are labeltree, "):
        like.choose_tools("labeltree,hammer")


def test_memory_is_limited_on_all_rows_and_on_shares() -> None:
    tool = like.choose_tools("labeltree")[0]
    free, *limited = like.plan_memory(tool)
    assert (free.tool.settings, free.data) == ({}, "wikilshtc")
    assert all(plan.tool.settings == {"max_memory": "2GB"} for plan in limited)
    assert {plan.data: plan.shape.n_documents for plan in limited} == {
        "wikilshtc": 1_778_351, "wikilshtc-1of8": 222_293, "wikilshtc-1of4": 444_587,
        "wikilshtc-1of2": 889_175,
    }  # fmt: skip
    assert {plan.shape.n_labels for plan in limited} == {325_056}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Instead of processes; omikuji has no luck."""
    made: list[str] = []

    def run(self: Runner, tool: Any, *_: Any) -> dict[str, Any]:
        made.append(tool.name)
        if tool.name == "omikuji-1":
            raise RunError("train: stopped after 2700 s")
        return MEASURED

    monkeypatch.setattr(Runner, "run", run)
    return made


def test_a_run_that_is_there_is_not_made_again(tmp_path: Path, counted: list[str]) -> None:
    tools = like.choose_tools("labeltree,omikuji-1")
    plans = [Plan(tool, "tiny", TINY) for tool in tools]
    like.measure_plans(plans, Ledger(tmp_path), tmp_path)
    assert counted == ["labeltree", "omikuji-1"]
    like.measure_plans(plans, Ledger(tmp_path), tmp_path)
    changed = tools[0]._replace(fingerprint="of later source")
    like.measure_plans([Plan(changed, "tiny", TINY)], Ledger(tmp_path), tmp_path)
    assert len(counted) == 2
    like.measure_plans([Plan(like.limit_memory(changed), "tiny", TINY)], Ledger(tmp_path), tmp_path)
    like.measure_plans([Plan(changed, "tiny", TINY._replace(n_labels=41))], Ledger(tmp_path), tmp_path)
    assert counted[2:] == ["labeltree 2GB", "labeltree"]
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [line.get("error") for line in lines] == [None, "train: stopped after 2700 s", None, None]
    assert str(tmp_path) not in json.dumps(lines)


def test_labeltree_runs_on_files_with_and_without_a_limit(tmp_path: Path) -> None:
    tool = like.choose_tools("labeltree-fast")[0]
    plans = [Plan(tool, "tiny", TINY), Plan(like.limit_memory(tool), "tiny", TINY)]
    ledger = Ledger(tmp_path)
    like.measure_plans(plans, ledger, tmp_path)
    free, limited = ledger.records
    assert free["model_digest"] == limited["model_digest"]
    assert free["p@1"] == limited["p@1"] > 50
    assert 0 < free["train_peak_anonymous_bytes"] < free["train_peak_bytes"]
    assert free["batch_vectors_cpu_us"] > 0


def test_page_has_every_run_and_what_the_paper_reports() -> None:
    failed = record("pecos-xrlinear", error="train: stopped after 2700 s")
    lines = write_like([record("omikuji-1"), failed, record("labeltree", train_cpu_s=50.0)])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    assert len({len(row) for row in rows}) == 1
    found = {row[0]: row for row in rows}
    assert list(found) == [
        "tool",
        "labeltree",
        "omikuji-1",
        "pecos-xrlinear",
        "XT \\*",
        "Parabel, 1 tree \\*",
    ]
    assert found["labeltree"][1:6] == ["50", "60", "1,000", "2,000", "500"]
    assert found["pecos-xrlinear"][1] == "train: stopped after 2700 s"
    assert found["XT \\*"][1] == "33,000 \\*"
    assert "### Like WikiLSHTC-325K" in lines
    assert write_like([]) == []


def test_bars_against_the_peer_need_all_of_it() -> None:
    peer = record("omikuji-1")
    less = {"train_cpu_s": 50.0, "train_peak_anonymous_bytes": 5 * 10**8, "model_bytes": 10**8}

    def judged(**changed: Any) -> str:
        lines = write_like([peer, record("labeltree", **changed)])
        return next(line for line in lines if line.startswith("- like WikiLSHTC-325K, labeltree: "))

    assert judged(**less).endswith("P@1/3/5 +0.00/+0.00/+0.00: reached")
    assert judged(**{**less, "p@3": 69.9}).endswith("+0.00/-0.10/+0.00: MISSED")
    for name in less:
        assert judged(**{**less, name: peer[name]}).endswith("MISSED")


def test_bars_of_the_limit() -> None:
    limited = [
        record("labeltree 2GB", f"wikilshtc-{n}", n, train_cpu_s=cpu)
        for n, cpu in ((250, 30.0), (500, 60.0), (1000, 120.0))
    ]
    text = "\n".join(write_memory([*limited, record("labeltree")]))
    assert "1,000 MB, bar 2,000: reached" in text
    assert "in memory: 1.20 times, bar 1.5: reached" in text
    assert "same bytes of the model as in memory: reached" in text
    assert "CPU time ~ rows ^ 1.00, bar 1.05: reached" in text
    limited[-1] |= {"train_cpu_s": 160.0, "train_peak_anonymous_bytes": 3 * 10**9, "model_digest": "other"}
    text = "\n".join(write_memory([*limited, record("labeltree")]))
    assert text.count("MISSED") == 4
    assert write_memory([record("labeltree")]) == []


def test_whole_page_from_the_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for tool in ("labeltree", "labeltree 2GB", "omikuji-1"):
        ledger.add(record(tool))
    page = write_page(tmp_path)
    assert page.startswith("# Scaling\n")
    assert page.index("## The paper's scale") < page.index("## Within 2GB of memory")
