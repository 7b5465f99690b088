"""What is decided about tasks before any is solved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import Problem, problems
from support.sparse_problems import plan_of

from labeltree.config import Config
from labeltree.reference.training import Example, positive_nodes
from labeltree.trees.shapes import build_flat


@settings(max_examples=40)
@given(problem=problems(least_labels=1), link=st.sampled_from(["plt", "hsm"]))
def test_every_node_is_in_one_task_with_its_siblings(problem: Problem, link: str) -> None:
    plan, tree = plan_of(problem, Config(link=link)), problem.tree
    n_tasks = len(plan.cost)
    starts = [plan.starts_of(task).tolist() for task in range(n_tasks)]
    assert [start for task in starts for start in task[:-1]] == plan.start[:-1].tolist()
    for first, *_, last in starts:
        assert len(set(tree.parent[first:last].tolist())) == 1
    if link == "hsm":  # all siblings together
        assert n_tasks == 1 + np.count_nonzero(tree.n_children)
    else:
        assert n_tasks == plan.n_chunks
    learns = [bool(plan.is_learned[first:last].any()) for first, *_, last in starts]
    assert (plan.cost > 0).tolist() == learns


@settings(max_examples=40)
@given(problem=problems())
def test_positive_rows_are_those_with_a_label_below(problem: Problem) -> None:
    plan = plan_of(problem, Config())
    rows_of: list[list[int]] = [[] for _ in range(problem.tree.n_nodes)]
    for row, example in enumerate(problem.examples):
        for node in positive_nodes(problem.tree, example.labels) if example.weight > 0 else ():
            rows_of[node].append(row)
    for node, rows in enumerate(rows_of):
        assert plan.positive_rows(node, node + 1).tolist() == rows
    assert plan.all_rows.tolist() == [row for row, one in enumerate(problem.examples) if one.weight > 0]


def test_shares_are_the_parts_of_a_rows_labels() -> None:
    """And what is always, or never, among siblings is not learned."""
    examples = [Example({0: 1.0}, {0, 1}, 3.0), Example({0: 1.0}, {1}), Example({1: 1.0}, {0, 1, 2})]
    plan = plan_of(Problem(build_flat(4), examples), Config(link="hsm"))
    leaf = plan.tree.leaf_of_label
    shares = [plan.shares[plan.node_indptr[node] : plan.node_indptr[node + 1]].tolist() for node in leaf]
    expected = [[1.5, 1 / 3], [1.5, 1.0, 1 / 3], [1 / 3], []]
    assert shares == [pytest.approx(of_label) for of_label in expected]
    assert plan.is_learned[leaf].tolist() == [True, True, True, False]
    assert not plan.is_learned[0]
    pair = plan_of(Problem(build_flat(2), examples[:2]), Config(link="hsm"))
    assert pair.is_learned.tolist() == [False, True, False]


def test_rare_nodes_count_for_more() -> None:
    examples = [Example({0: 1.0}, {0})] * 3 + [Example({0: 1.0}, {1})]
    config = Config(positive_weight=2.0, rare_weight=6.0)
    plan = plan_of(Problem(build_flat(2), examples), config)
    assert plan.positive_weight[plan.tree.leaf_of_label].tolist() == [2.0 * 3.0, 2.0 * 7.0]


def test_weights_of_longer_rows_are_pruned_at_smaller_ones() -> None:
    examples = [Example({0: 3.0, 1: 4.0}, {0}), Example({}, {1}), Example({1: 5.0}, {1})]
    problem = Problem(build_flat(2), examples)
    assert plan_of(problem, Config(prune=0.1)).prune == 0.1
    assert plan_of(problem, Config(prune=0.1, row_norm="none")).prune == pytest.approx(0.02)
