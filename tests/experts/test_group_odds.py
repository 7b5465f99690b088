"""Log-odds of groups: what they change, and that those which help held-out rows are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from support.problems import random_problem
from support.small_data import make_toy
from support.sparse_problems import fit
from support.strategies import sparse_rows

import labeltree
from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.experts.group_odds import SUMMANDS, choose_summand, gain_of_found
from labeltree.experts.held_out import HeldOut
from labeltree.experts.tree_expert import TreeExpert
from labeltree.nodes import KINDS
from labeltree.parallel import Pool
from labeltree.reference.metrics import ndcg_at
from labeltree.reference.sparse import scores
from labeltree.trees.shapes import build_complete


def held_out(labels: list[list[int]], n_labels: int) -> HeldOut:
    """Rows without features that have these labels."""
    indptr = np.cumsum([0, *map(len, labels)])
    indices = np.array([label for row in labels for label in row], np.int32)
    nothing = SparseRows(*sparse_rows([{} for _ in labels], 1))
    weight = np.ones(len(labels), np.float32)
    return HeldOut(np.arange(len(labels)), nothing, LabelRows(indptr, indices, n_labels), weight)


def test_groups_alone_become_likelier() -> None:
    problem = random_problem(build_complete([1] * 12, 3), 400, seed=3)
    fitted, _ = fit(problem, Config(arity=3, C=1.0))
    changed = KINDS["sparse"].with_group_odds(fitted.parameters, problem.tree, 0.5)
    features = dict(problem.examples[0].features)
    before, after = (scores(problem.tree, each, features) for each in (fitted.parameters, changed))
    is_group = problem.tree.n_children > 0
    is_group[0] = False
    np.testing.assert_array_equal(after[~is_group], before[~is_group])
    np.testing.assert_allclose(after[is_group], before[is_group] + 0.5, rtol=1e-5)


@pytest.mark.parametrize("labels", [[[0, 2]], [[1], [0, 1, 2]], [[], [3]]])
def test_gain_is_the_sum_of_ndcg(labels: list[list[int]]) -> None:
    ids = np.array([[0, 1, 2], [2, 3, -1]], np.int32)[: len(labels)]
    expected = sum(
        ndcg_at([[label for label in found if label >= 0]], [true], 3) if true else 0.0
        for found, true in zip(ids.tolist(), labels, strict=True)
    )
    assert gain_of_found(ids, held_out(labels, 4)) == pytest.approx(expected)


@pytest.mark.parametrize("best", range(len(SUMMANDS)))
def test_the_summand_that_gains_is_found(best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def expert_of(summand: float) -> TreeExpert:
        asked.append(summand)
        return expert

    asked: list[float] = []
    problem = random_problem(build_complete([1] * 4, 2), 30, seed=1)
    fitted, _ = fit(problem, Config(arity=2))
    expert = TreeExpert(problem.tree, "sparse", fitted.parameters, problem.n_features)
    module = "labeltree.experts.group_odds"
    monkeypatch.setattr(f"{module}.gain_of_found", lambda *_: -abs(SUMMANDS.index(asked[-1]) - best))
    monkeypatch.setattr(f"{module}.best_of_rows", lambda *_: (None, None, None))
    with Pool(1) as pool:
        assert choose_summand(expert_of, held_out([[0]], 4), pool).summand == SUMMANDS[best]
    assert len(asked) <= len(SUMMANDS)


@pytest.mark.parametrize("link", ["plt", "hsm"])
def test_a_model_of_one_level_has_no_groups(link: str) -> None:
    data = make_toy(600, seed=4)
    model = labeltree.train(data.X, data.Y, neighbours=0, tree="flat", link=link)
    assert model.is_calibrated
