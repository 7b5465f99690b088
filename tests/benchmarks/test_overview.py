"""The page over all data sets, its bars and the README's table, from records whose answers are known."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare, feature_effect
from benchmarks.hs_bars import parity
from benchmarks.overview import newest, overview, readme_section, standing_of
from benchmarks.pages import BEGIN, END, outdated, replace_section, write_pages
from benchmarks.peer_bars import (
    SETS,
    Standing,
    bars_section,
    batches,
    model_size,
    outcome,
    own_defaults,
    same_work,
    shown_runs,
    single_rows,
)
from benchmarks.running import Tool, discover

Record = dict[str, Any]
COOKING = "cooking-stackexchange"
PEERS = {
    "extremetext": ("text",), "fasttext-hs": ("text",), "napkinxc-plt": ("vectors",),
    "vowpalwabbit-plt": ("vectors",),
}  # fmt: skip
TEXT_COSTS = {"batch_text_us": 10.0, "p50_text_us": 20.0}
VECTOR_COSTS = {"batch_vectors_us": 5.0, "p50_vectors_us": 8.0}
_repeats = itertools.count(1)


@pytest.fixture(scope="module")
def tools() -> dict[str, Tool]:
    return discover(compare.TOOLS)


def record(tool: str, factor: float = 1.0, points: float = 0.0, **given: Any) -> Record:
    """A run that costs ``factor`` times what labeltree's does, with so many points of P@k more."""
    costs = {"train_cpu_s": 2.0, "model_bytes": 1e6}
    kinds = PEERS.get(tool, ("text", "vectors"))
    costs |= TEXT_COSTS if "text" in kinds else {}
    costs |= VECTOR_COSTS if "vectors" in kinds else {}
    return {
        "data": COOKING, "tool": tool, "threads": 1, "fingerprint": "new", "digest": "d", "machine": "m",
        "repeat": next(_repeats),
        "n_train": 12, "n_test": 3, "n_features": 7, "n_labels": 1234, "version": "1.0",
        "p@1": 60.0 + points, "p@3": 40.0 + points, "p@5": 30.0 + points,
        **{field: cost * factor for field, cost in costs.items()}, **given,
    }  # fmt: skip


IDENTITY = (
    "data",
    "tool",
    "threads",
    "fingerprint",
    "digest",
    "machine",
    "repeat",
    "n_train",
    "n_test",
    "n_features",
    "n_labels",
)


def standing(*records: Record) -> Standing:
    runs: dict[str, list[Record]] = {}
    for run in records:
        runs.setdefault(run["tool"], []).append(run)
    return Standing(COOKING, runs, PEERS)


def winning() -> list[Record]:
    """Runs with which every bar is reached."""
    peers = [record(peer, 20.0, -5.0) for peer in PEERS]
    return [record("labeltree-dense"), record("labeltree-xt", 1.5, -5.1), *peers]


def verdicts(records: list[Record]) -> dict[str, list[str]]:
    """The cells of verdicts, by bar."""
    found = standing(*records)
    return {
        "same work": [same_work(found)[0][-1]],
        "defaults": own_defaults(found)[0][-2:],
        "single": [cell for row in single_rows(found) for cell in row[-2:]],
        "batch": [row[-1] for row in batches(found)],
        "size": [model_size(found)[0][-1]],
    }


@pytest.mark.parametrize(
    ("points", "factor", "expected"),
    [
        (0.9, 1.0, ["reached", "reached"]),
        (-0.9, 1.0, ["reached", "reached"]),
        (1.1, 1.0, ["MISSED", "reached"]),
        (-1.1, 1.0, ["MISSED", "reached"]),
        (0.0, 2.0, ["reached", "MISSED"]),
    ],
)
def test_parity_with_fasttext(points: float, factor: float, expected: list[str]) -> None:
    found = standing(record("labeltree-hs", factor, points), record("fasttext-hs", 1.5))
    assert parity(found)[0][-2:] == expected
    assert parity(standing(record("fasttext-hs")))[0][-2:] == ["not measured"] * 2


@pytest.mark.parametrize(
    ("error", "is_left_out"),
    [
        ("train: exit code 1: RuntimeError: NaN", True),
        ("train: stopped after 7200 s", False),
        ("rehearsal: train: exit code 1: ImportError", False),  # that may be our fault
        ("batch text: exit code 1: TypeError", False),
    ],
)
def test_a_peer_whose_training_fails_by_itself_is_no_rival(
    error: str, is_left_out: bool, tools: dict[str, Tool]
) -> None:
    failed = {key: value for key, value in record("fasttext-ova").items() if key in IDENTITY}
    records = [*winning(), {**failed, "error": error}]
    found = standing_of(records, COOKING, tools)
    assert ("fasttext-ova" not in found.peers) == is_left_out
    assert ("fasttext-ova-0.1" in found.peers) == is_left_out  # which stands in for it
    assert list(found.failed) == (["fasttext-ova"] if is_left_out else [])
    assert "fasttext-ova" in standing_of([*records, record("fasttext-ova")], COOKING, tools).peers
    page = overview(records, tools)
    assert f"- fasttext-ova, 1 thread: failed: {error}" in page
    assert (f"{COOKING} is without fasttext-ova, whose training failed there:" in page) == is_left_out
    with_more = [{**failed, "error": error, "threads": 2}]
    assert "fasttext-ova" in standing_of([*winning(), *with_more], COOKING, tools).peers


def test_one_stand_in_with_runs_is_enough(tools: dict[str, Tool]) -> None:
    failed = {key: value for key, value in record("fasttext-ova").items() if key in IDENTITY}
    records = [*winning(), {**failed, "error": "train: exit code 1: RuntimeError: NaN"}]
    both = {"fasttext-ova-0.1", "fasttext-ova-0.1-5"}
    assert both <= standing_of(records, COOKING, tools).peers.keys()
    records.append(record("fasttext-ova-0.1-5"))
    assert both & standing_of(records, COOKING, tools).peers.keys() == {"fasttext-ova-0.1-5"}
    assert "failed there: fasttext-ova-0.1 was not run, fasttext-ova-0.1-5 stands in." in overview(
        records, tools
    )
    records.append(record("fasttext-ova-0.1"))
    assert both <= standing_of(records, COOKING, tools).peers.keys()


@pytest.mark.parametrize(("n_runs", "shown"), [(1, "fewer than 3: extremetext 1"), (3, "3, extremetext")])
def test_a_peer_without_runs_of_one_thread_counts_with_more(
    n_runs: int, shown: str, tools: dict[str, Tool]
) -> None:
    ours = [record("labeltree-dense") for _ in range(3)] + [record("labeltree-xt") for _ in range(3)]
    ours.append(record("labeltree"))
    runs = [*ours, record("labeltree-fast", threads=2), record("extremetext", 9.0, threads=4)]
    runs += [record("extremetext", 20.0, -5.0, threads=2) for _ in range(n_runs)]
    found = standing_of([*runs, record("omikuji-1"), record("omikuji-1", threads=2)], COOKING, tools)
    counted = {tool: [run["threads"] for run in of_tool] for tool, of_tool in found.runs.items()}
    assert counted == {
        "labeltree": [1], "labeltree-dense": [1] * 3, "labeltree-xt": [1] * 3, "omikuji-1": [1],
        "extremetext": [2] * n_runs,
    }  # fmt: skip
    assert same_work(found)[0][-2] == f"{shown} with 2 threads"
    assert f"| extremetext     | {n_runs} with 2 threads |" in overview(runs, tools)
    note = f"{n_runs} run{'s' * (n_runs > 1)} with 2 threads"
    assert f"quickest to predict, the original ({note}) |" in readme_section(runs, tools)


def test_all_bars_reached() -> None:
    assert {cell for cells in verdicts(winning()).values() for cell in cells} == {"reached"}


@pytest.mark.parametrize(
    ("tool", "change", "bar", "expected"),
    [
        ("extremetext", {"train_cpu_s": 29.9}, "same work", ["MISSED"]),  # 3 s of ours: not 10 times more
        ("labeltree-xt", {"p@3": 34.79}, "same work", ["MISSED"]),  # 0.21 points below
        ("labeltree-xt", {"p@3": 34.81}, "same work", ["reached"]),
        ("fasttext-hs", {"p@5": 30.0}, "defaults", ["reached", "MISSED (fasttext-hs)"]),  # not above: equal
        ("fasttext-hs", {"train_cpu_s": 0.1}, "defaults", ["reached", "reached"]),  # faster, less accurate
        ("fasttext-hs", {"train_cpu_s": 0.1, "p@1": 60, "p@3": 40, "p@5": 30}, "defaults",
         ["MISSED (fasttext-hs)", "MISSED (fasttext-hs)"]),
        ("napkinxc-plt", {"p@1": 99, "p@3": 99, "p@5": 99, "train_cpu_s": 0.1}, "defaults", ["reached"] * 2),
        ("extremetext", {"p50_text_us": 199.0}, "single",
         ["MISSED (extremetext)", "reached", "reached", "reached"]),
        ("fasttext-hs", {"p50_text_us": 21.0}, "single", ["reached"] * 4),  # no tenfold bar for it
        ("vowpalwabbit-plt", {"p50_vectors_us": 7.9}, "single",
         ["reached", "reached", "reached", "MISSED (vowpalwabbit-plt)"]),
        ("vowpalwabbit-plt", {"batch_vectors_us": 5.0}, "batch", ["reached", "MISSED (vowpalwabbit-plt)"]),
        ("vowpalwabbit-plt", {"batch_vectors_us": 6.0}, "batch", ["reached", "reached"]),  # not our text
        ("extremetext", {"model_bytes": 1e6}, "size", ["MISSED"]),
        ("extremetext", {"p@1": 60.0}, "size", ["MISSED"]),
    ],
)  # fmt: skip
def test_one_number_decides(tool: str, change: Record, bar: str, expected: list[str]) -> None:
    changed = [run | change if run["tool"] == tool else run for run in winning()]
    assert verdicts(changed)[bar] == expected


def test_tools_without_runs_are_not_measured() -> None:
    found = verdicts([run for run in winning() if run["tool"] != "extremetext"])
    assert found["same work"] == found["size"] == ["not measured"]
    assert found["defaults"] == ["not measured (extremetext)"] * 2
    assert found["batch"] == ["not measured (extremetext)", "reached"]
    without_us = verdicts([run for run in winning() if run["tool"] != "labeltree-dense"])
    assert without_us["defaults"] == without_us["batch"] == ["not measured (labeltree-dense)"] * 2
    assert outcome({}) == "not measured"
    assert outcome({"a": None, "b": False}) == "MISSED (b)"  # that a may miss it too changes nothing


def test_bars_use_means_and_tell_of_few_runs() -> None:
    slow, fast = record("labeltree-dense", 3.0), record("labeltree-dense", 1.0)  # mean: 20 µs per text
    others = [run for run in winning() if run["tool"] != "labeltree-dense"]
    assert batches(standing(slow, fast, *others))[0][1] == "20.00"
    few = standing(slow, fast, fast, *others)
    assert shown_runs(few, ("labeltree-dense",)) == "3"
    assert shown_runs(few, ("labeltree-dense", "extremetext")) == "fewer than 3: extremetext 1"
    assert shown_runs(few, ("labeltree-dense", *PEERS)) == "fewer than 3: 4 of 5 tools, least 1"
    assert shown_runs(few, ("absent",)) == "0"
    section = bars_section([few])
    assert "; 10 of those reached rest on fewer than 3 runs" in section
    assert section.count("reached, few runs") == 10
    assert "0 MISSED, 0 not measured; 0 of those" in bars_section([standing(*3 * winning())])


def test_newest_runs_stand_side_by_side() -> None:
    old, peer = record("labeltree-dense", fingerprint="old"), record("extremetext", fingerprint="e")
    runs = [
        old,
        peer,
        record("labeltree-dense"),
        record("labeltree-dense"),
        record("labeltree-dense", data="bibtex"),
    ]
    assert newest(runs, COOKING) == [peer, *runs[2:4]]
    elsewhere = record("labeltree-dense", machine="another")
    assert newest([*runs, elsewhere], COOKING) == [elsewhere]  # times of two machines do not compare
    assert newest(runs, "absent") == []


def test_a_repeat_counts_once(tools: dict[str, Tool]) -> None:
    first, again, failed = (record("labeltree-dense", points=points, repeat=1) for points in (1.0, 2.0, 3.0))
    failed["error"] = "no memory"
    other = record("labeltree-dense", repeat=2)
    assert newest([first, other, again], COOKING) == [again, other]
    assert newest([first, failed], COOKING) == [first]
    assert newest([failed, first], COOKING) == [first]
    assert newest([first, record("labeltree-dense", repeat=1, threads=2)], COOKING)[0] == first


def test_tells_which_runs_are_of_an_earlier_state(tools: dict[str, Tool]) -> None:
    now = record("labeltree-dense", fingerprint=tools["labeltree-dense"].fingerprint)
    runs = [now, record("omikuji-1"), record("omikuji-1", data="bibtex"), record("gone")]
    assert outdated(runs, tools) == [f"omikuji-1 ({COOKING}, bibtex)", f"gone ({COOKING})"]


def test_standing_leaves_out_failures_and_more_threads(tools: dict[str, Tool]) -> None:
    failed = {"error": "no memory"}
    runs = [record("extremetext"), record("labeltree-dense"), record("labeltree-dense", threads=2),
            record("fasttext-hs") | failed, record("labeltree-dense") | failed]  # fmt: skip
    found = standing_of(runs, COOKING, tools)
    assert {tool: len(of_tool) for tool, of_tool in found.runs.items()} == {
        "labeltree-dense": 1,
        "extremetext": 1,
    }
    assert list(found.runs) == ["labeltree-dense", "extremetext"]  # in the order of the tools
    assert "labeltree-xt" not in found.peers
    assert found.peers["vowpalwabbit-plt"] == ("vectors",)


def test_overview_marks_the_best_and_names_circumstances(tools: dict[str, Tool]) -> None:
    runs = [record("labeltree-dense", parse_cpu_s=0.1, date="2030-01-02"), record("fasttext-hs", 2.0, 1.0),
            record("omikuji-1") | {"error": "no memory"}]  # fmt: skip
    page = overview(runs, tools)
    ours, theirs = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()
        if line.startswith(("| labeltree-dense ", "| fasttext-hs "))
    )  # fmt: skip
    best = ["labeltree-dense", "1", "60.00", "40.00", "30.00", "**2.00**", "0.100", "**1.00**"]
    assert ours[:8] == best
    assert theirs[:8] == ["fasttext-hs", "1", "**61.00**", "**41.00**", "**31.00**", "4.00", "-", "2.00"]
    assert f"[Every number with its spread]({COOKING}.md)" in page
    assert "Made on 2030-01-02" in page
    assert "fasttext-hs 1.0, labeltree-dense 1.0" in page
    assert "omikuji-1, 1 thread: failed: no memory" in page
    assert all(f"| {name} " in page for name in SETS)  # a bar without runs is there, too


def test_readme_shows_the_best_peers_only(tools: dict[str, Tool]) -> None:
    runs = [
        record("labeltree-fast"), record("labeltree", 1.0, 2.0), record("labeltree-best", 1.0, 3.0),
        record("labeltree-dense"), record("extremetext", 50.0, -9.0), record("fasttext-hs", 3.0, -1.0),
        record("napkinxc-plt", 30.0, 4.0), record("vowpalwabbit-plt", 2.0, -2.0),
        record("fasttext-ova", 9.0, -3.0), record("labeltree", data="bibtex"),
    ]  # fmt: skip
    section = readme_section(runs, tools)
    cells = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if "run)" in line]
    assert [row[2].removesuffix(" (1 run)") for row in cells] == [
        "**labeltree**", "**labeltree**, `--preset best`", "**labeltree**, `--preset fast`",
        "napkinxc-plt, most accurate peer",
        "vowpalwabbit-plt, quickest to train, quickest to predict", "extremetext, the original",
    ]  # fmt: skip
    assert cells[0][1] == f"{COOKING}, 1,234 labels"
    assert [row[3] for row in cells[:3]] == ["62.0", "63.0", "60.0"]
    assert cells[5][3:9] == ["51.0", "31.0", "21.0", "100", "500", "-"]
    assert "bibtex" not in section  # nothing to stand beside


def test_readme_is_replaced_between_its_markers_only(tmp_path: Path) -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_section(text, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(SystemExit, match="two lines"):
        replace_section(f"{END}\n{BEGIN}\n", "new")


def test_command_writes_both_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "none"))
    (tmp_path / "runs.jsonl").write_text(
        "".join(json.dumps(run) + "\n" for run in [*winning(), record("labeltree")])
    )
    readme = tmp_path / "front.md"
    readme.write_text(f"# x\n{BEGIN}\n{END}\n")
    compare.main(["--overview", "--readme", str(readme), "--output", str(tmp_path)])
    assert "| **labeltree** (1 run)" in readme.read_text()
    assert "## What we hold ourselves to" in (tmp_path / "README.md").read_text()
    with pytest.raises(SystemExit):
        compare.main(["--output", str(tmp_path)])


def test_a_page_per_data_set_has_every_tool(tools: dict[str, Tool], tmp_path: Path) -> None:
    runs = [*winning(), record("labeltree-dense", threads=2), record("labeltree-dense", data="bibtex")]
    write_pages(runs, tools, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{COOKING}.md", "bibtex.md", "README.md"}
    text = (tmp_path / f"{COOKING}.md").read_text()
    first = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    table = first[1 : first.index("tool", 1)]
    assert table == ["labeltree-dense", "labeltree-dense", "labeltree-xt", *PEERS]
    assert "(new): " in text  # of which state the runs are


def test_what_stands_in_the_readme_is_what_the_runs_give(tools: dict[str, Tool]) -> None:
    """After new runs: `python -m benchmarks.compare --readme`."""
    records = compare.Ledger(compare.ROOT / "docs" / "results").records
    readme = (compare.ROOT / "README.md").read_text(encoding="utf-8")
    assert replace_section(readme, readme_section(records, tools)) == readme


def test_what_stands_in_the_docs_is_what_the_runs_give(tools: dict[str, Tool], tmp_path: Path) -> None:
    """After new runs: `python -m benchmarks.compare --overview --plot`."""
    folder = compare.ROOT / "docs" / "results"
    records = compare.Ledger(folder).records
    for path in folder.glob("*.svg"):
        (tmp_path / path.name).touch()  # so that pages show the same figures
    write_pages(records, tools, tmp_path)
    for path in tmp_path.glob("*.md"):
        assert path.read_text(encoding="utf-8") == (folder / path.name).read_text(encoding="utf-8")


def test_the_bare_name_is_the_default_and_all_runs_have_names_of_today(tools: dict[str, Tool]) -> None:
    assert tools["labeltree"].settings == {}
    assert tools["labeltree-best"].settings == {"preset": "best"}
    assert tools["labeltree-dense"].settings == {"preset": "fast", "nodes": "dense"}
    records = compare.Ledger(compare.ROOT / "docs" / "results").records
    assert {record["tool"].removesuffix(feature_effect.SUFFIX) for record in records} <= set(tools)
