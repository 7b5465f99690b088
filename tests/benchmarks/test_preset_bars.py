"""The bars of the defaults and presets, from records whose answers are known."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import compare, preset_bars
from benchmarks.overview import overview, standing_of
from benchmarks.pages import write_pages
from benchmarks.running import Tool, discover

Record = dict[str, Any]
WORDNET, COOKING = "wordnet-hypernyms", "cooking-stackexchange"
PEERS = ("napkinxc-plt", "napkinxc-3", "omikuji-1", "omikuji-3", "pecos-xrlinear", "sklearn-svc")


@pytest.fixture(scope="module")
def tools() -> dict[str, Tool]:
    return discover(compare.TOOLS)


def record(tool: str, factor: float = 1.0, data: str = COOKING, **given: Any) -> Record:
    """A run that costs ``factor`` times what ours does, as accurate as the best is to be."""
    costs = {"train_cpu_s": 10.0, "batch_vectors_us": 5.0, "p50_vectors_us": 8.0}
    bar = preset_bars.PRECISION_BARS["best"][data]
    return {
        "data": data, "tool": tool, "threads": 1, "repeat": 1, "fingerprint": "f", "digest": "d",
        "machine": "m", "n_train": 12, "n_test": 3, "n_features": 7, "n_labels": 735, "version": "1.0",
        "model_digest": "same", "ece@5": 0.014, "model_bytes": 1,
        **dict(zip(("p@1", "p@3", "p@5"), bar, strict=True)),
        **{field: cost * factor for field, cost in costs.items()}, **given,
    }  # fmt: skip


def winning(data: str = COOKING) -> list[Record]:
    """Runs with which every bar is reached."""
    ours = [record(tool, data=data, threads=threads) for tool in preset_bars.OURS for threads in (1, 2)]
    return [*ours, *(record(peer, 1.1, data) for peer in PEERS)]


def verdicts(records: list[Record], tools: dict[str, Tool], data: str = COOKING) -> dict[str, list[str]]:
    """The last cell of each row, by bar."""
    standing = standing_of(records, data, tools)
    return {bar.rows.__name__: [row[-1] for row in bar.rows(standing)] for bar in preset_bars.BARS}


@pytest.mark.parametrize("data", preset_bars.SETS)
def test_all_bars_reached(data: str, tools: dict[str, Tool]) -> None:
    found = verdicts(winning(data), tools, data)
    assert {name: len(cells) for name, cells in found.items()} == {
        "accuracy": 2, "probabilities": 1, "training": 2, "prediction": 2, "determinism": 1,
    }  # fmt: skip
    assert {cell for cells in found.values() for cell in cells} == {"reached"}


@pytest.mark.parametrize(
    ("tool", "change", "bar", "expected"),
    [
        ("labeltree", {"p@1": 73.6, "p@3": 46.4, "p@5": 31.7}, "accuracy", ["reached", "reached"]),
        ("labeltree", {"p@3": 46.3}, "accuracy", ["MISSED (labeltree)", "reached"]),
        ("labeltree-best", {"p@5": 32.3}, "accuracy", ["reached", "MISSED (labeltree-best)"]),
        ("labeltree-fast", {"p@1": 1.0}, "accuracy", ["reached", "reached"]),  # it has no such bar
        ("labeltree", {"ece@5": 0.015}, "probabilities", ["MISSED (labeltree)"]),
        ("labeltree-fast", {"ece@5": 0.5}, "probabilities", ["reached"]),
        ("omikuji-1", {"train_cpu_s": 10.0}, "training", ["MISSED (omikuji-1)", "reached"]),
        ("omikuji-3", {"train_cpu_s": 9.0}, "training", ["reached", "MISSED (omikuji-3)"]),
        ("sklearn-svc", {"batch_vectors_us": 5.0}, "prediction", ["MISSED (sklearn-svc)", "reached"]),
        ("pecos-xrlinear", {"p50_vectors_us": 7.9}, "prediction", ["reached", "MISSED (pecos-xrlinear)"]),
        ("pecos-xrlinear", {"p50_vectors_us": 7.9, "p@1": 73.6}, "prediction", ["reached", "reached"]),
        ("labeltree-best", {"model_digest": "by threads"}, "determinism", ["reached"]),
    ],
)  # fmt: skip
def test_one_number_decides(
    tool: str, change: Record, bar: str, expected: list[str], tools: dict[str, Tool]
) -> None:
    changed = [run | change if run["tool"] == tool else run for run in winning()]
    assert verdicts(changed, tools)[bar] == expected


def test_models_of_other_threads_must_be_the_same(tools: dict[str, Tool]) -> None:
    runs = [run | {"model_digest": str(run["threads"])} for run in winning() if run["tool"] != "labeltree"]
    assert verdicts(runs, tools)["determinism"] == ["MISSED (labeltree-best, labeltree-fast)"]
    without_fast = [run for run in winning() if (run["tool"], run["threads"]) != ("labeltree-fast", 2)]
    assert verdicts(without_fast, tools)["determinism"] == ["reached"]
    alone = [run for run in winning() if run["threads"] == 1]
    assert verdicts(alone, tools)["determinism"] == ["not measured (labeltree, labeltree-best)"]


def test_missing_runs_are_not_measured(tools: dict[str, Tool]) -> None:
    without = verdicts([run for run in winning() if run["tool"] not in ("omikuji-3", "sklearn-svc")], tools)
    assert without["training"] == ["reached", "not measured (omikuji-3)"]
    assert without["prediction"] == ["not measured (omikuji-3, sklearn-svc)"] * 2
    nothing = verdicts([], tools)
    assert {cell.partition(" (")[0] for cells in nothing.values() for cell in cells} == {"not measured"}


def test_a_peer_for_few_labels_is_not_waited_for_where_there_are_many(
    tools: dict[str, Tool], tmp_path: Any
) -> None:
    many = [run | {"n_labels": 2001} for run in winning(WORDNET) if run["tool"] != "sklearn-svc"]
    assert verdicts(many, tools, WORDNET)["prediction"] == ["reached"] * 2
    few = [run | {"n_labels": 2000} for run in many]
    assert verdicts(few, tools, WORDNET)["prediction"] == ["not measured (sklearn-svc)"] * 2
    page = overview(many, tools)
    assert f"{WORDNET} is without sklearn-svc, which is for up to 2,000 labels." in page
    line = "- sklearn-svc: not run, as it is for up to 2,000 labels"
    assert line in page
    assert "sklearn-svc, which is for" not in overview(few, tools)
    write_pages(many, tools, tmp_path)
    assert line in (tmp_path / f"{WORDNET}.md").read_text()


def test_page_has_the_section_once_there_are_runs(tools: dict[str, Tool]) -> None:
    title = "## What we hold ourselves to with the defaults and presets"
    assert title in overview(winning(), tools)
    assert title not in overview([record("labeltree-dense")], tools)


def test_every_set_has_a_bar_and_best_is_above_the_defaults() -> None:
    defaults, best = preset_bars.PRECISION_BARS.values()
    assert tuple(defaults) == tuple(best) == preset_bars.SETS
    assert all(a > b for data in best for a, b in zip(best[data], defaults[data], strict=True))
