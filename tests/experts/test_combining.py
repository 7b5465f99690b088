"""How experts are weighed: by rows that none of them saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.small_data import LABELS, make_toy

import labeltree
from labeltree.data.rows import Arrays
from labeltree.experts import EXPERTS
from labeltree.experts.combination import BENDS
from labeltree.experts.expert import Above, Expert, Labels, Saved, Trained
from labeltree.experts.held_out import LEAST_ROWS
from labeltree.experts.job import TrainingJob
from labeltree.experts.shares import Cases, fit_shares
from labeltree.query import Query, query_all
from labeltree.storage.tensors import take_tensor

TOY, TEST = make_toy(1500, seed=4), make_toy(300, seed=5)


class Table(Expert):
    """Knows by heart the labels of the row that has the same features, and has no other labels."""

    kind = "table"
    lists_all = scores_alike = True
    usual_share = 0.05

    def __init__(self, sums: NDArray[np.float32], labels: NDArray[np.int32], n_labels: int) -> None:
        self.sums, self.labels, self.n_labels = sums, labels, n_labels

    def nonzero(self, arrays: Arrays) -> Above:
        indptr, end = arrays[0], arrays[0][-1]
        keys = np.add.reduceat(np.append(arrays[2][:end] * (1 + arrays[1][:end]), 0.0), indptr[:-1])
        place = np.searchsorted(self.sums, keys.astype(np.float32)).clip(max=len(self.sums) - 1)
        ids = self.labels[place]
        return np.ones(len(ids), np.int64), ids, np.full(len(ids), 0.9, np.float32)

    def topk(self, arrays: Arrays, query: Query, *out: Any) -> None:
        raise AssertionError("it lists its labels")

    def above(self, arrays: Arrays, query: Query) -> Above:
        raise AssertionError("it lists its labels")

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        _, ids, votes = self.nonzero(arrays)
        rows = np.repeat(np.arange(len(ids)), np.diff(labels[0]))
        return np.where(ids[rows] == labels[1], votes[rows], np.float32(0.0))

    @property
    def parameter_bytes(self) -> int:
        return self.sums.nbytes

    def statistics(self) -> dict[str, Any]:
        return {}

    def tensors(self, number: int) -> dict[str, NDArray]:
        return {f"table.{number}.sums": self.sums, f"table.{number}.labels": self.labels}

    @classmethod
    def from_saved(cls, saved: Saved) -> Table:
        names = f"table.{saved.number}.sums", f"table.{saved.number}.labels"
        arrays = (
            take_tensor(saved.tensors, names[0], np.float32),
            take_tensor(saved.tensors, names[1], np.int32),
        )
        return cls(*arrays, saved.n_labels)

    @classmethod
    def train(cls, job: TrainingJob) -> list[Trained]:
        X, Y = job.rows.X, job.rows.Y
        keys = np.add.reduceat(X.values * (1 + X.indices), X.indptr[:-1]).astype(np.float32)
        first = Y.indices[np.minimum(Y.indptr[:-1], len(Y.indices) - 1)]
        return [cls._trained(job, keys, cls.learned(first))]

    @classmethod
    def _trained(cls, job: TrainingJob, keys: NDArray[np.float32], labels: NDArray[np.int32]) -> Trained:
        order, n_labels = np.argsort(keys, kind="stable"), job.rows.Y.n_labels
        whole = cls(keys[order], labels[order], n_labels)
        # What it learned of the held-out rows is what decides, so that it can be a cheat or a fool.
        return Trained(whole, whole if len(job.held_out.numbers) else None)

    learned: Callable[[NDArray[np.int32]], NDArray[np.int32]] = staticmethod(lambda labels: labels)


class Fool(Table):
    """Has learned wrong labels by heart."""

    usual_share = 0.6

    learned = staticmethod(lambda labels: (labels + 1) % len(LABELS))


class Undecided(Table):
    """Has learned labels by heart, but tells wrong ones: a variant of it tells the right ones."""

    summand = 1

    @property
    def variants(self) -> list[Undecided]:
        return [self._telling(summand) for summand in (1, 0, 2)]

    def _telling(self, summand: int) -> Undecided:
        other = type(self)(self.sums, self.labels, self.n_labels)
        other.summand = summand
        return other

    def nonzero(self, arrays: Arrays) -> Above:
        lengths, ids, votes = super().nonzero(arrays)
        return lengths, ((ids + self.summand) % self.n_labels).astype(np.int32), votes

    def score_variants(self, arrays: Arrays, labels: Labels) -> NDArray[np.float32]:
        return np.stack([variant.score(arrays, labels, query_all()) for variant in self.variants])


@pytest.fixture(params=[Table, Fool])
def expert(request: pytest.FixtureRequest) -> Iterator[type[Table]]:
    EXPERTS.add("table", request.param)
    yield request.param
    EXPERTS.remove("table")


def share(model: labeltree.Model) -> float:
    """Of the last expert."""
    weights = model.combination.weights
    return float(weights[-1] / weights.sum())


@pytest.mark.parametrize("parameters", [{}, {"trees": 2}, {"nodes": "both", "dim": 8, "epochs": 2}])
def test_an_expert_counts_as_much_as_it_helps(expert: type[Table], parameters: dict[str, Any]) -> None:
    """The one is asked where labels are those of other rows, which can only be known by heart."""
    labels = [*TOY.Y[7:], *TOY.Y[:7]] if expert is Table else TOY.Y
    model = labeltree.train(TOY.X, labels, **parameters)
    assert [each.kind for each in model.experts][-1] == "table"
    assert share(model) > 0.1 if expert is Table else share(model) < 0.5
    assert len(model.combination.map) == 3 + len(BENDS)
    of_trees = model.combination.weights[:-1]
    if parameters.get("trees") == 2:
        assert of_trees[0] == of_trees[1]


@pytest.mark.parametrize("threads", [1, 2])
def test_held_out_rows_choose_a_variant(threads: int) -> None:
    labels = [*TOY.Y[7:], *TOY.Y[:7]]  # as other rows have them, which can only be known by heart
    EXPERTS.add("table", Undecided)
    try:
        model = labeltree.train(TOY.X, labels, threads=threads)
        toy = make_toy(LEAST_ROWS - 1, seed=6)
        few = labeltree.train(toy.X, toy.Y)
    finally:
        EXPERTS.remove("table")
    chosen, first = model.experts[-1], few.experts[-1]
    assert isinstance(chosen, Undecided)
    assert isinstance(first, Undecided)
    assert (chosen.summand, first.summand) == (0, 1)
    assert share(model) > 0.1
    assert any(expert.kind == "neighbours" for expert in model.experts)


def test_without_rows_to_judge_by_it_has_its_usual_share(expert: type[Table]) -> None:
    toy = make_toy(LEAST_ROWS - 1, seed=6)
    few = labeltree.train(toy.X, toy.Y)
    plain = labeltree.train(TOY.X, TOY.Y, calibrate=False, trees=3)
    for model in (few, plain):
        assert share(model) == pytest.approx(expert.usual_share)
        assert not len(model.combination.map)


def test_the_file_keeps_weights_and_map(expert: type[Table], tmp_path: Path) -> None:
    for threads in (1, 2):
        labeltree.train(TOY.X, TOY.Y, threads=threads).save(tmp_path / f"{threads}")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    model, again = labeltree.train(TOY.X, TOY.Y), labeltree.load(tmp_path / "1")
    assert again.combination.weights.tolist() == model.combination.weights.tolist()
    assert again.combination.map.tolist() == model.combination.map.tolist()
    assert again.predict(TEST.X) == model.predict(TEST.X)


def test_dense_nodes_are_calibrated_too() -> None:
    """By the map of the average, which is one tree's here; without it they are as they were."""
    parameters = dict(nodes="dense", dim=8, epochs=8, neighbours=0)
    model = labeltree.train(TOY.X, TOY.Y, **parameters)
    plain = labeltree.train(TOY.X, TOY.Y, calibrate=False, **parameters)
    assert len(model.combination.map) == 3 + len(BENDS)
    assert not len(plain.combination.map)
    ids, probabilities = model.predict_arrays(TEST.X, 5)
    plain_ids, plain_probabilities = plain.predict_arrays(TEST.X, 5)
    assert np.array_equal(ids, plain_ids)
    expected = model.combination.mapped(plain_probabilities.astype(np.float64))
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)


@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("parameters", [dict(neighbours=0), dict()], ids=["forest", "and neighbours"])
def test_every_label_reaches_the_threshold_0(parameters: dict[str, Any], calibrate: bool) -> None:
    """Also those that are in no list."""
    model = labeltree.train(TOY.X, TOY.Y, trees=0, forest=3, calibrate=calibrate, **parameters)
    found = model.predict_rows(TEST.X, 0.0)
    assert np.all(np.diff(found.indptr) == model.n_labels)
    expected = model.probability(TEST.X, model.label_names)
    np.testing.assert_array_equal(found.values.reshape(expected.shape), expected)


def test_the_usual_share_can_be_chosen() -> None:
    """Where nothing speaks against it: held-out rows of one label each, which both groups know."""
    usual = np.array([0.25, 0.75])
    labels = np.arange(4), np.zeros(3, np.int32)
    cases = Cases(labels, np.ones((2, 3), np.float32), np.ones(3, np.bool_), np.ones(3))
    np.testing.assert_array_equal(fit_shares(cases, usual, np.zeros(len(usual), bool)), usual)


@pytest.mark.parametrize("n_rows", [4, 400])
@pytest.mark.parametrize("n_right", [2, 3])
def test_a_group_that_must_pay_has_a_share_where_it_surely_gains(n_rows: int, n_right: int) -> None:
    """The first group is sure of a wrong label in half the rows, the other one knows ``n_right`` of four."""
    labels = 2 * np.arange(n_rows + 1), np.tile(np.array([0, 1], np.int32), n_rows)
    first, second = np.tile([0.6, 0.4], n_rows), np.zeros(2 * n_rows)
    is_right = np.arange(2 * n_rows) % 2 == np.repeat(np.arange(n_rows) % 2, 2)
    knows = np.repeat(np.arange(n_rows) % 4 < n_right, 2)
    second[is_right == knows] = 1.0
    by_group = np.stack([first, second]).astype(np.float32)
    cases = Cases(labels, by_group, is_right, np.ones(n_rows))
    shares = fit_shares(cases, np.array([0.85, 0.15]), np.array([False, True]))
    assert shares.sum() == pytest.approx(1.0)
    assert (shares[1] > 0.0) == (n_right == 3 and n_rows == 400)


def test_what_must_pay_by_itself_has_all() -> None:
    cases = Cases(
        (np.arange(4), np.zeros(3, np.int32)), np.ones((1, 3), np.float32), np.ones(3, bool), np.ones(3)
    )
    assert fit_shares(cases, np.ones(1), np.ones(1, bool)).tolist() == [1.0]
