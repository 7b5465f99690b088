"""What is chosen by the data: the shape of trees and the weight of the loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeltree.config import Config, chosen_by_data
from labeltree.nodes import KINDS
from labeltree.nodes.kind import Facts
from labeltree.nodes.sparse.defaults import MANY_CHILDREN, choose_cost, has_rare_labels

MANY_ENTRIES = 10**9  # too many for a flat tree


def arity(n_labels: int, examples_per_label: float = 30.0, kind: str = "sparse", **given: int) -> int:
    return KINDS[kind].resolve(Config(**given), Facts(n_labels, examples_per_label, MANY_ENTRIES)).arity


def test_a_given_arity_stays() -> None:
    assert arity(100_000, arity=7) == 7
    assert arity(100_000, arity=7, kind="dense") == 7


def test_dense_nodes_have_sixteen_children() -> None:
    assert {arity(n, kind="dense") for n in (1, 1000, 10**6)} == {16}


@pytest.mark.parametrize(
    ("n_labels", "examples_per_label", "expected"),
    [
        (1, 30.0, 16),
        (1024, 30.0, 16),
        (1025, 30.0, 17),  # one level of groups of at most 64 labels, as long as that is possible
        (4096, 3.0, 64),
        (4097, 30.0, 14),
        (5000, 3.0, 9),
        (10_000, 3.0, 13),
        (20_000, 30.0, 31),  # two levels, groups of about 21
        (20_000, 3.0, 18),  # rare labels: groups of about 64
        (108_000, 3.0, 42),
        (260_000, 3.0, 64),
        (10**6, 3.0, 125),  # more children rather than a third level of groups
        (128**2 * 64 + 1, 3.0, 26),
    ],
)
def test_sparse_nodes_have_as_many_children_as_few_levels_need(
    n_labels: int, examples_per_label: float, expected: int
) -> None:
    assert arity(n_labels, examples_per_label) == expected


@given(st.integers(1, 10**7), st.integers(1, 1 << 20), st.floats(0.0, 100.0))
def test_no_tree_is_deeper_than_nodes_of_many_children_need(
    n_labels: int, max_leaves: int, examples_per_label: float
) -> None:
    found = arity(n_labels, examples_per_label, max_leaves=max_leaves)
    assert found >= (16 if n_labels <= 64 * max_leaves else 2)
    groups = n_labels / max_leaves
    least = max(1, math.ceil(math.log(max(groups, 1)) / math.log(MANY_CHILDREN) - 1e-9))
    assert found ** (least + 1) * max_leaves >= n_labels  # at most one level more, for smaller groups


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        (dict(), "sparse", dict(arity=17, max_leaves=64, C=0.5)),
        (dict(loss="log"), "sparse", dict(arity=17, max_leaves=64, C=5.0)),
        (dict(link="hsm"), "sparse", dict(arity=17, max_leaves=64, C=5.0)),
        (dict(arity=4), "sparse", dict(max_leaves=64, C=0.5)),
        (dict(arity=4, C=2.0), "sparse", dict(max_leaves=64)),
        (dict(solver="sgd"), "sparse", dict(arity=17, max_leaves=64)),
        (dict(tree="flat"), "sparse", dict(C=0.5)),
        (dict(nodes="dense"), "dense", dict(arity=16, max_leaves=64)),
        (dict(nodes="both"), "dense", dict(arity=16, max_leaves=64)),
        (dict(nodes="both"), "sparse", dict(arity=17, max_leaves=64, C=0.5)),
        (dict(nodes="dense", tree="some/file"), "dense", dict()),
    ],
)
def test_the_data_chooses_what_is_left_to_it_and_has_an_effect(
    given: dict[str, Any], kind: str, expected: dict[str, Any]
) -> None:
    config = Config(**given)
    resolved = KINDS[kind].resolve(config, Facts(1025, 30.0, 1000))
    assert chosen_by_data(config, resolved) == expected
    assert KINDS[kind].resolve(resolved, Facts(10, 1.0, 1000)) == resolved, "what is resolved stays"


@pytest.mark.parametrize(
    ("n_labels", "n_entries", "given", "expected"),
    [
        (10, 1000, dict(), 64),
        (1000, 2_000_000, dict(), 1000),
        (1001, 1000, dict(), 64),
        (1000, 2_000_001, dict(), 64),
        (1000, 1000, dict(arity=8), 64),
        (1000, 1000, dict(max_leaves=30), 30),
    ],
)
def test_few_labels_are_all_below_the_root_while_that_costs_little(
    n_labels: int, n_entries: int, given: dict[str, Any], expected: int
) -> None:
    resolved = KINDS["sparse"].resolve(Config(**given), Facts(n_labels, 30.0, n_entries))
    assert resolved.max_leaves == expected


def test_rare_labels_have_fewer_than_ten_examples_each() -> None:
    assert has_rare_labels(9.9)
    assert not has_rare_labels(10.0)
    rare, common = Facts(2000, 9.9, 1000), Facts(2000, 10.0, 1000)
    assert choose_cost(Config(), rare) == 1.0
    assert choose_cost(Config(), common) == 0.5
    assert choose_cost(Config(loss="log"), rare) == 10.0
    assert choose_cost(Config(loss="log"), common) == 5.0
    assert choose_cost(Config(link="hsm"), common) == 5.0
    assert choose_cost(Config(), Facts(100, 10.0, 1000)) == 0.3  # all below the root
