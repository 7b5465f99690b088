"""A new kind of expert is a class and an entry of the table: all else takes it as it takes trees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.searches import N_FEATURES, make_model, random_rows
from support.strategies import random_parameters, random_sparse, sparse_rows

import labeltree
from labeltree.cli.reports import inspect_lines
from labeltree.config import Config
from labeltree.data.rows import Arrays
from labeltree.errors import NewerModelError
from labeltree.experts import EXPERTS
from labeltree.experts.expert import Above, Expert, Labels, Saved, Trained
from labeltree.experts.job import TrainingJob
from labeltree.model import Model
from labeltree.query import Query
from labeltree.storage.tensors import take_tensor
from labeltree.trees.shapes import build_flat

N_LABELS = 30


class Prior(Expert):
    """Every row has each label with the label's frequency."""

    kind = "prior"
    scores_alike = True

    def __init__(self, share: NDArray[np.float32]) -> None:
        self.share, self.n_labels = share, len(share)

    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        best = np.argsort(-self.share, kind="stable")[: query.k]
        is_asked = self.share[best] >= query.threshold
        out_ids[:] = np.where(is_asked, best, -1)
        out_probabilities[:] = np.where(is_asked, self.share[best], 0.0)
        return np.ones(len(out_ids), np.bool_)

    def above(self, arrays: Arrays, query: Query) -> Above:
        n_rows, ids = len(arrays[0]) - 1, np.flatnonzero(self.share >= query.threshold).astype(np.int32)
        return np.full(n_rows, len(ids)), np.tile(ids, n_rows), np.tile(self.share[ids], n_rows)

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        return np.where(labels[1] >= 0, self.share[labels[1]], np.float32(0.0))

    @property
    def parameter_bytes(self) -> int:
        return self.share.nbytes

    def statistics(self) -> dict[str, Any]:
        return {"largest": float(self.share.max())}

    def tensors(self, number: int) -> dict[str, NDArray]:
        return {f"prior.{number}.share": self.share}

    @classmethod
    def from_saved(cls, saved: Saved) -> Prior:
        return cls(take_tensor(saved.tensors, f"prior.{saved.number}.share", np.float32, (saved.n_labels,)))

    @classmethod
    def train(cls, job: TrainingJob) -> list[Trained]:
        Y = job.rows.Y
        return [Trained(cls((np.bincount(Y.indices, minlength=Y.n_labels) / Y.n_rows).astype(np.float32)))]


@pytest.fixture(autouse=True)
def in_the_table() -> Iterator[None]:
    EXPERTS.add("prior", Prior)
    yield
    EXPERTS.remove("prior")


def some_prior(seed: int = 0) -> Prior:
    """Some are equal and some are 0."""
    random = np.random.default_rng(seed)
    return Prior(random.choice([0.0, 0.01, 0.2, 0.4, 0.9], N_LABELS).astype(np.float32))


def beside_trees(*others: Expert) -> tuple[Model, Model]:
    """A model of two trees and these, and one of the trees alone."""
    tree = build_flat(N_LABELS)
    nodes = random_parameters(tree, N_FEATURES, Config().dim, 1), random_sparse(tree, N_FEATURES, 2)
    trees = make_model([(tree, parameters) for parameters in nodes])
    parts = trees.config, trees.features, trees.labels, trees.label_counts, trees.n_examples
    return Model(*parts, [*trees.experts, *others]), trees


@pytest.mark.parametrize("n_others", [1, 2])
def test_its_probabilities_are_averaged_exactly(n_others: int) -> None:
    others = [some_prior(seed) for seed in range(n_others)]
    model, trees = beside_trees(*others)
    X = sparse_rows(random_rows(40), N_FEATURES)
    names = model.label_names
    total = 2 * trees.probability(X, names).astype(np.float64) + sum(other.share for other in others)
    expected = total / (2 + n_others)
    np.testing.assert_allclose(model.probability(X, names), expected, rtol=1e-6)
    for k in (1, 3, N_LABELS):
        ids, probabilities = model.predict_arrays(X, k)
        np.testing.assert_allclose(probabilities, -np.sort(-expected)[:, :k], rtol=1e-5)
        np.testing.assert_allclose(np.take_along_axis(expected, ids, axis=1), probabilities, rtol=1e-5)
    found = model.predict_rows(X, 0.4)
    assert found.indptr[-1] == np.count_nonzero(expected >= 0.4) > 0
    np.testing.assert_allclose(found.values, expected[expected >= 0.4], rtol=1e-5)


def test_it_can_be_the_only_one() -> None:
    expert = some_prior()
    both, _ = beside_trees(expert)
    parts = both.config, both.features, both.labels, both.label_counts, both.n_examples
    model = Model(*parts, [expert])
    X = sparse_rows(random_rows(3), N_FEATURES)
    expected = np.argsort(-expert.share, kind="stable")[:4]
    assert model.predict_arrays(X, 4)[0].tolist() == [expected.tolist()] * 3
    one = sparse_rows(random_rows(1), N_FEATURES)
    assert model.predict_arrays(one, 4)[0].tolist() == [expected.tolist()]  # no quick way, and none needed
    assert model.label_trees == []


def test_it_says_what_it_is() -> None:
    model, trees = beside_trees(some_prior())
    assert repr(model).endswith("2 trees, 1 prior>")
    facts = model.inspect()
    assert facts["trees"] == trees.inspect()["trees"]
    assert facts["priors"] == [{"largest": pytest.approx(0.9)}]
    assert facts["parameter_bytes"] == trees.inspect()["parameter_bytes"] + 4 * N_LABELS
    assert inspect_lines(facts)[-2:] == ["prior 1:", "  largest: 0.9"]


def test_it_is_trained_beside_trees() -> None:
    model = labeltree.train(["a b", "b c", "c"], [["x"], ["x", "y"], []])
    assert [expert.kind for expert in model.experts] == ["tree", "neighbours", "prior"]
    prior = model.experts[-1].tensors(0)["prior.0.share"]
    np.testing.assert_allclose(prior, [2 / 3, 1 / 3], rtol=1e-6)


def test_it_is_kept_in_the_model_file(tmp_path: Path) -> None:
    model, _ = beside_trees(some_prior())
    model.save(tmp_path / "m")
    again = labeltree.load(tmp_path / "m")
    assert [expert.kind for expert in again.experts] == ["tree", "tree", "prior"]
    X = sparse_rows(random_rows(10), N_FEATURES)
    assert again.predict(X) == model.predict(X)
    EXPERTS.remove("prior")
    with pytest.raises(NewerModelError, match="expert 'prior' is unknown"):
        labeltree.load(tmp_path / "m")
    EXPERTS.add("prior", Prior)


class Counter(Prior):
    """Labels are the more probable the more a row has; nobody says which of it counts."""

    kind = "counter"

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        n_entries = np.diff(arrays[0])[0]
        return super().score(arrays, labels, query) / np.float32(1.0 if n_entries else 2.0)


def test_what_it_does_not_explain_is_due_to_nothing_in_particular() -> None:
    share = np.full(N_LABELS, 0.4, np.float32)
    model, trees = beside_trees(Counter(share))
    one = sparse_rows(random_rows(1), N_FEATURES)
    label, alone = (each.explain(one, [trees.label_names[3]]).labels[0] for each in (model, trees))
    assert alone.rest == 0.0
    assert label.rest > 0.0
    nothing = sparse_rows([{}], N_FEATURES)
    change = np.log(model.probability(one, [label.label]) / model.probability(nothing, [label.label]))
    assert label.total == pytest.approx(change.item(), abs=1e-5)
    assert sum(term.share for term in label.terms) + label.rest == pytest.approx(label.total)
