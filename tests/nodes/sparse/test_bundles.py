"""Tasks in bundles: each once, of about the same cost, and as arrays what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.small_data import make_toy

from labeltree.config import Config
from labeltree.data.rows import LabelRows
from labeltree.experts.held_out import choose_rows
from labeltree.nodes import KINDS
from labeltree.nodes.kind import Facts
from labeltree.nodes.sparse import bundles
from labeltree.nodes.sparse.bundles import bundle_tensors, bundles_of, solved_of_bundle
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.plan import Plan, make_plan
from labeltree.nodes.sparse.tasks import Solved, gather, solve
from labeltree.trees.shapes import build_shuffled

TOY = make_toy(100)
WEIGHT = np.ones(len(TOY.texts), np.float32)


def plan_of(**parameters: Any) -> Plan:
    rows, columns = np.nonzero(TOY.indicator)
    indptr = np.searchsorted(rows, np.arange(len(TOY.texts) + 1)).astype(np.int64)
    Y = LabelRows(indptr, columns.astype(np.int32), TOY.indicator.shape[1])
    config = KINDS["sparse"].resolve(Config(**parameters), Facts(Y.n_labels, 5.0, len(TOY.X.indices)))
    tree = build_shuffled(Y.n_labels, 2, seed=0)
    return make_plan(TOY.X, Y, tree, config, weight=WEIGHT, held_out=choose_rows(WEIGHT), seed=1)


def plan_of_cost(cost: Any) -> Plan:
    return plan_of()._replace(cost=np.array(cost, np.float64))


@pytest.mark.parametrize("most", [1, 3, 256])
def test_every_task_with_a_cost_is_in_one_bundle(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MOST_BUNDLES", most)
    monkeypatch.setattr(bundles, "FEWEST_BUNDLES", 1)
    monkeypatch.setattr(bundles, "WORTH_A_BUNDLE", 1)
    cost = np.random.default_rng(0).integers(0, 100, 1000)
    found = bundles_of(plan_of_cost(cost))
    tasks = np.concatenate(found)
    assert sorted(tasks) == np.flatnonzero(cost).tolist()
    assert np.all(np.diff(cost[tasks]) <= 0), "heaviest first"
    assert len(found) <= most
    sums = [int(cost[bundle].sum()) for bundle in found]
    assert max(sums) <= cost.sum() / most + 100


def test_a_large_task_is_one_by_itself() -> None:
    found = bundles_of(plan_of_cost([1, 1000, 1, 1]))
    assert [bundle.tolist() for bundle in found] == [[1], [0, 2, 3]]


@pytest.mark.parametrize(("worth", "n_bundles"), [(1.0, 256), (1e2, 20), (1e6, 8)])
def test_small_trees_have_fewer_bundles(
    worth: float, n_bundles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "WORTH_A_BUNDLE", worth)
    assert len(bundles_of(plan_of_cost(np.ones(2000)))) == n_bundles


@pytest.mark.parametrize("cost", [[], [0.0, 0.0]])
def test_nothing_to_learn(cost: list[float]) -> None:
    assert bundles_of(plan_of_cost(cost)) == []


@pytest.mark.parametrize("parameters", [{}, dict(link="hsm"), dict(loss="log"), dict(prune=100.0)])
def test_a_bundle_is_what_it_was_made_of(parameters: dict[str, Any]) -> None:
    plan = plan_of(**parameters)
    scratch = Scratch(plan)
    numbers = np.flatnonzero(plan.cost).tolist()
    solved = {number: solve(gather(plan, number, scratch)) for number in reversed(numbers)}
    found = dict(solved_of_bundle(bundle_tensors(solved)))
    assert list(found) == numbers
    for number in numbers:
        for part in Solved._fields:
            pairs = zip(getattr(solved[number], part), getattr(found[number], part), strict=True)
            for before, after in pairs:
                arrays = zip((*before.chunk, before.bias), (*after.chunk, after.bias), strict=True)
                for old, new in arrays:
                    assert old.dtype == new.dtype
                    assert old.shape == new.shape
                    assert old.tobytes() == new.tobytes()
