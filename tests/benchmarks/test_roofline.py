"""The roofline benchmark: work counted by hand, its formula, its page, and a quick run of everything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from benchmarks import roofline
from benchmarks.datasets import MissingData
from benchmarks.roofline import Counts, count_epoch, training_work
from benchmarks.roofline_page import ROOFS, Part, Rates, Result, Work, find_bound, table, write_page
from benchmarks.roofline_search import node_logs, opened_nodes, search_work
from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows
from labeltree.nodes.dense.fitting import DenseParameters, Trainer
from labeltree.nodes.kind import FitInput
from labeltree.parallel import Pool
from labeltree.reference import search as reference
from labeltree.tree import LabelTree

#        0
#       / \
#      1   2        leaves 1 (label 1), 3 (label 0), 4 (label 2)
#         / \
#        3   4
TREE = LabelTree(np.array([-1, 0, 0, 2, 2]), np.array([-1, 1, -1, 0, 2]))


def label_rows(*rows: list[int]) -> LabelRows:
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    return LabelRows(indptr.astype(np.int64), np.array(list(chain(*rows)), np.int32), 3)


def feature_rows(*rows: list[int]) -> SparseRows:
    indices = np.array(list(chain(*rows)), np.int32)
    indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return SparseRows(indptr, indices, np.ones(len(indices), np.float32), 4)


def test_visits_and_touched_rows_of_a_small_tree() -> None:
    X = feature_rows([0, 1], [1, 2], [0], [1, 3])
    Y = label_rows([1], [0], [0, 1], [2])
    order = np.array([0, 1, 3, 2])
    counts, touched = count_epoch(X, Y, TREE, order, 2)
    # All rows have labels, so the root is constant; all other nodes are learned. All rows visit the children
    # of 0, the rows 1, 2 and 3 also those of 2: 7 groups of two nodes each.
    assert counts == Counts(entries=7, labels=5, visits=14, groups=7, touched_features=6, touched_nodes=8)
    assert touched.tolist() == [0, 1, 2, 1, 3, 0]  # of the batches (0, 1) and (3, 2)
    assert counts.visits == (TREE.cost(Y) - 1) * 4


def test_constant_nodes_count_nothing() -> None:
    X = feature_rows([0], [1], [2])
    # Nobody has label 2, so below node 2 all have node 3: both are constant.
    counts, _ = count_epoch(X, label_rows([0], [1], [0]), TREE, np.arange(3), 3)
    assert (counts.visits, counts.groups, counts.touched_nodes) == (6, 3, 2)
    # A row without labels makes the root's own classifier learn; it is the only node that judges the row.
    counts, _ = count_epoch(X, label_rows([0], [], [1]), TREE, np.arange(3), 2)
    assert (counts.visits, counts.groups, counts.touched_nodes) == (2 * 2 + 3, 2 + 3, 2 + 2 + 2)


def test_counts_are_those_of_a_planned_batch() -> None:
    X, Y = feature_rows([0, 1], [1, 2], [0], [1, 3]), label_rows([1], [0], [], [0, 2])
    counts, _ = count_epoch(X, Y, TREE, np.arange(4), 64)
    with Pool(1) as pool:
        rows = TrainingRows(X, Y, np.ones(4, np.float32))
        trainer = Trainer(FitInput(rows, TREE, Config(nodes="dense", dim=4), 1, pool))
        trainer.train(np.arange(4), 0)
    n_groups, n_visits, n_features = trainer.plan.sizes.tolist()
    assert (counts.groups, counts.touched_features) == (n_visits, n_features)
    assert n_groups == 3  # the root's own, its children, those of node 2
    assert counts.touched_nodes == 4  # all but node 3, which all rows of its parent have


def test_work_of_training_by_hand() -> None:
    work = training_work(Counts(7, 5, 14, 7, 6, 8), 10)
    assert work["embed"] == Work(2 * 10 * 7, 40 * 7, 40 * 6 + 8 * 7)
    assert work["chunks"] == Work(6 * 10 * 14 + 5 * 10 * 8, 80 * 7 + 80 * 8, 80 * 8 + 4 * 5)
    assert work["features"] == Work(2 * 10 * 7 + 5 * 10 * 6, 40 * 7 + 80 * 6, 40 * 6)
    assert set(work) == set(roofline.PHASES)
    assert search_work(3, 20, 10)["scores"] == Work(400, 0, 18 * 20)
    assert Work(1, 2, 3).times(2) == (2, 4, 6)


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_opened_nodes_are_those_of_the_search(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(k)
    children = [1, 2, 3, 4, 5, 6]  # a tree of four levels of two children
    tree = LabelTree.from_parents(
        [-1, *(node for node in [0, *children] for _ in range(2))], [-1] * 7 + list(range(8))
    )
    parameters = DenseParameters(*(random.normal(size=s).astype(np.float32) for s in ((4, 3), (15, 3), 15)))
    X = feature_rows([0, 1], [2], [1, 2, 3], [])
    opened = opened_nodes(tree, node_logs(tree, parameters, X), k)
    asked: list[int] = []
    children_of = reference.children_of

    def watched(tree: LabelTree, node: int) -> Sequence[int]:
        asked.append(node)
        return children_of(tree, node)

    for i, nodes in enumerate(opened):
        features = {int(j): 1.0 for j in X.indices[X.indptr[i] : X.indptr[i + 1]]}
        conditionals = reference.log_conditionals(tree, parameters, features)
        asked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(reference, "children_of", watched)
            reference.best_first(tree, conditionals, k)
        assert sorted(asked) == nodes.tolist()


def test_the_slowest_roof_binds() -> None:
    rates = Rates(flops=100.0, cache_bytes=20.0, memory_bytes=10.0)
    assert find_bound([Part("embed", 1.0, Work(50, 2, 1), rates)]) == (0.5, 0.1, 0.1)
    assert find_bound([Part("embed", 1.0, Work(50, 2, 1), rates)]).name == "FMA"
    parts = [Part("embed", 2.0, Work(50, 2, 4), rates), Part("blocks", 2.0, Work(0, 0, 4), rates)]
    assert find_bound(parts) == (0.5, 0.1, pytest.approx(0.8))
    assert (find_bound(parts).name, find_bound(parts).seconds) == ("memory", pytest.approx(0.8))
    assert find_bound([Part("plan", 1.0, Work(0, 0, 0), rates)]).name == ""


def result() -> Result:
    rates = Rates(2e9, 1e9, 1e9)
    training = [Part("plan", 1.0, Work(0, 0, 0), rates), Part("embed", 3.0, Work(4e9, 1e9, 1e9), rates)]
    return Result(
        name="some-set", n_examples=10, n_labels=3, n_features=4, n_nodes=5, epochs=1, dim=2,
        counts=Counts(20, 10, 30, 15, 10, 8)._asdict(), stage_seconds=5.0, training=training, n_searched=1000,
        features_per_row=2.0, opened=1.5, scored=3.5,
        prediction=[Part("query", 0.004, Work(2e6, 0, 1e6), rates)],
    )  # fmt: skip


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_table_shows_parts_and_whole() -> None:
    lines = table(result().training, 5.0, 1.0, "s")
    titles = cells(lines[0])
    rows = {row[0]: dict(zip(titles, row, strict=True)) for row in map(cells, lines[2:])}
    embed, whole = rows["h: sum of embeddings"], rows["whole"]
    assert (embed["CPU s"], embed["share"], embed["GFLOP/s"], embed["GB/s"]) == ("3", "60 %", "1.3", "0.3")
    assert (embed["FMA s"], embed["memory s"], embed["roofline s"]) == ("2", "1", "2")
    assert (embed["bound by"], embed["efficiency"]) == ("FMA", "67 %")
    assert (whole["CPU s"], whole["efficiency"]) == ("5", "40 %")
    assert rows["plan of the batch"]["efficiency"] == ""


def test_page_has_roofs_sets_and_what_is_missing() -> None:
    page = write_page("command", dict.fromkeys(ROOFS, 3e9), [result()], ["other: skipped"])
    assert page.count("| 3.0 GB/s |") == 4
    assert page.count("| 3.0 GFLOP/s |") == 4
    assert "Per example 2.0 features and 3.0 nodes to learn in 1.5 groups" in page
    assert "1.5 nodes opened and 3.5 scored per row" in page
    assert "| h: sum of embeddings | 4 | 100 % | 0.5 | 0.2 | 1 |  | 1 | 1 | FMA | 25 % |" in page
    assert page.endswith("- other: skipped\n")


@pytest.mark.slow
def test_quick_run_measures_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    roofline.main(["--quick", "--page", str(page)])
    text = page.read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    whole = [cells(line) for line in text.splitlines() if line.startswith("| whole |")]
    assert len(whole) == 2  # training and prediction
    for row in whole:
        assert float(row[1]) > 0
        assert 0 < float(row[8]) < 1e6
    assert "600 examples" in text


def test_missing_data_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(name: str, *rest: object) -> None:
        raise MissingData(f"{name}: skipped")

    monkeypatch.setattr(roofline, "measure", refuse)
    monkeypatch.setattr(roofline, "train", lambda *arguments, **options: None)
    monkeypatch.setattr(roofline, "measure_roofs", lambda machine: dict.fromkeys(ROOFS, 1e9))
    roofline.main(["--data", "one,two"])
    printed = capsys.readouterr().out
    assert "- one: skipped" in printed
    assert "- two: skipped" in printed
    assert "`python -m benchmarks.roofline --data one,two`" in printed
