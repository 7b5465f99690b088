"""K-means, balanced or not: shape, agreement with the dense twin, determinism, odd profiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeltree.trees.kmeans as kmeans_module
from labeltree.data.rows import SparseRows
from labeltree.errors import ParameterError, TreeError
from labeltree.kernels.trees import clusters as cluster
from labeltree.parallel import Pool
from labeltree.reference import tree as reference
from labeltree.storage.space import IN_MEMORY
from labeltree.trees.kmeans import build_kmeans


def from_dense(rows: np.ndarray) -> SparseRows:
    indptr = np.cumsum([0, *(rows != 0).sum(axis=1)])
    return SparseRows(
        indptr, np.nonzero(rows)[1].astype(np.int32), rows[rows != 0].astype(np.float32), rows.shape[1]
    )


def random_rows(n_rows: int, n_features: int, seed: int) -> np.ndarray:
    """Rows of length 1, about a quarter of their entries not zero."""
    random = np.random.default_rng(seed)
    rows = random.random((n_rows, n_features)) * (random.random((n_rows, n_features)) < 0.25)
    rows[:, 0] += 0.01
    return rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))


@given(
    st.integers(1, 60),
    st.integers(2, 9),
    st.integers(1, 12),
    st.sampled_from(["random", "zero", "identical", "doubled", "sparse", "outlier", "opposite"]),
    st.integers(0, 3),
    st.booleans(),
)
@settings(max_examples=200)
def test_shape_for_any_profiles(
    n_labels: int, arity: int, max_leaves: int, kind: str, seed: int, balanced: bool
) -> None:
    rows = random_rows(n_labels, 8, seed)
    if kind == "zero":
        rows[:] = 0.0
    elif kind == "identical":
        rows[:] = rows[0]
    elif kind == "doubled":
        rows = rows[np.arange(n_labels) // 2]
    elif kind == "sparse":
        rows[seed::2] = 0.0
    elif kind == "outlier":
        rows[1:] = rows[0]
        rows[0] = rows[0][::-1]
    elif kind == "opposite":
        rows[::2] *= -1.0
    tree = build_kmeans(from_dense(rows), arity, max_leaves, 0.001, seed, balanced=balanced)
    assert tree.n_labels == n_labels
    assert reference.imbalances(tree, arity, max_leaves, balanced) == []


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("n_parts", [2, 3, 7, 30])
@pytest.mark.parametrize("seed", range(8))
def test_split_agrees_with_the_dense_twin(n_parts: int, seed: int, balanced: bool) -> None:
    rows = random_rows(41, 30, seed)
    profiles, members = from_dense(rows), np.arange(41, dtype=np.int32)
    (indptr, indices, values), n_features = kmeans_module._gather_group(profiles, members, IN_MEMORY)
    dense = np.zeros((41, n_features))
    for i in range(41):
        dense[i, indices[indptr[i] : indptr[i + 1]]] = values[indptr[i] : indptr[i + 1]]
    assert np.sort(dense[0]) == pytest.approx(np.sort(rows[0]), abs=1e-6)
    first = np.empty((n_features, n_parts), np.float32)
    cluster.seed_sums(indptr, indices, values, n_parts, np.array([seed], np.uint64), first)
    part = np.empty(41, np.int32)
    state = np.array([seed], np.uint64)
    cluster.split_group(indptr, indices, values, n_features, n_parts, balanced, 1e-4, state, part)
    assert part.tolist() == reference.split_rows(
        dense, first.T.astype(np.float64), 1e-4, cluster.MAX_ITERATIONS, balanced
    )
    how, state = kmeans_module.Split(n_parts, balanced, 1e-4), np.array([seed], np.uint64)
    in_steps = kmeans_module._split_in_steps((indptr, indices, values), n_features, state, how, Pool(1))
    assert in_steps.tolist() == part.tolist()


SCORES = st.sampled_from([-1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0])


@given(st.integers(1, 6), st.integers(0, 25), st.data())
def test_placing_agrees_with_its_rule(n_parts: int, n_rows: int, data: st.DataObject) -> None:
    scores = data.draw(st.lists(SCORES, min_size=n_rows * n_parts, max_size=n_rows * n_parts))
    matrix = np.array(scores, np.float32).reshape(n_rows, n_parts)
    part = np.empty(n_rows, np.int32)
    cluster.place_rows(matrix, part)
    assert part.tolist() == reference.place_rows(matrix)


@given(st.integers(3, 6), st.integers(0, 25), st.data())
def test_the_nearest_part_is_the_first_of_the_greatest(
    n_parts: int, n_rows: int, data: st.DataObject
) -> None:
    scores = data.draw(st.lists(SCORES, min_size=n_rows * n_parts, max_size=n_rows * n_parts))
    matrix = np.array(scores, np.float32).reshape(n_rows, n_parts)
    part = np.empty(n_rows, np.int32)
    cluster.take_nearest(matrix, part)
    assert part.tolist() == matrix.argmax(axis=1).tolist()
    differences = np.ascontiguousarray(matrix[:, :1])
    cluster.take_nearest(differences, part)
    assert part.tolist() == [0 if difference >= 0.0 else 1 for difference in differences[:, 0]]


def test_a_part_that_lost_its_rows_has_no_direction() -> None:
    # Row 2 leaves part 1: what rounding leaves of its sum, 0.1 + 0.2 + 0.3 - each, must not remain.
    indptr, indices = np.arange(4), np.zeros(3, np.int32)
    values = np.array([0.1, 0.2, 0.3], np.float32)
    sums = np.array([[0.0, 1e-7 + values.sum(), 0.0]], np.float32)
    part, new_part = np.full(3, 1, np.int32), np.empty(3, np.int32)
    scores = np.array([[1.0, 0.0, 0.0]] * 3, np.float32)
    cluster.regroup_rows(indptr, indices, values, scores, False, part, new_part, sums)
    assert new_part.tolist() == [0, 0, 0]
    assert sums[0].tolist() == [pytest.approx(0.6), 0.0, 0.0]


@pytest.mark.parametrize(("largest", "expected"), [(9, False), (10, True)])
def test_lopsided_is_more_than_nine_tenths(largest: int, expected: bool) -> None:
    part = np.array([1] * largest + [0] * (10 - largest), np.int32)
    assert cluster.is_lopsided(part, 3) == expected


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=40))
def test_halving_puts_the_greater_scores_first(scores: list[float]) -> None:
    part = np.empty(len(scores), np.int32)
    cluster.halve_rows(np.array(scores, np.float32).reshape(-1, 1), part)
    order = sorted(range(len(scores)), key=lambda row: -scores[row])
    assert [row for row in range(len(scores)) if part[row] == 0] == sorted(order[: (len(scores) + 1) // 2])


@pytest.mark.parametrize("arity", [2, 4])
def test_finds_planted_groups(arity: int) -> None:
    random = np.random.default_rng(5)
    group = random.permutation(np.arange(400) % arity)
    rows = np.zeros((400, 20 * arity))
    for i in range(400):
        rows[i, 20 * group[i] + random.choice(20, 8, replace=False)] = random.random(8) + 0.5
    rows += 0.02 * random.random(rows.shape)
    best = 0.0
    for seed in range(5):
        tree = build_kmeans(from_dense(rows), arity, 100, 0.0001, seed)
        found = np.array([group[sorted(reference.labels_below(tree, node))] for node in range(1, arity + 1)])
        best = max(best, float(np.mean(found == np.median(found, axis=1, keepdims=True))))
    assert best == 1.0


@pytest.mark.parametrize("arity", [2, 4])
def test_finds_planted_groups_of_any_size(arity: int) -> None:
    random = np.random.default_rng(5)
    group = random.permutation(np.repeat(np.arange(arity), [340, 60] if arity == 2 else [160, 120, 80, 40]))
    rows = np.zeros((400, 20 * arity))
    for i in range(400):
        rows[i, 20 * group[i] + random.choice(20, 8, replace=False)] = random.random(8) + 0.5
    rows += 0.02 * random.random(rows.shape)
    expected = {frozenset(np.flatnonzero(group == a).tolist()) for a in range(arity)}

    def parts(seed: int, balanced: bool) -> set[frozenset[int]]:
        tree = build_kmeans(from_dense(rows), arity, 360, 0.0001, seed, balanced=balanced)
        below = [frozenset(reference.labels_below(tree, node)) for node in range(1, arity + 1)]
        return expected & set(below)

    # As any k-means it may end in a local optimum; some seed must find each group.
    assert max(len(parts(seed, False)) for seed in range(30)) == arity
    assert not any(parts(seed, True) for seed in range(30))


@pytest.mark.parametrize("arity", [2, 3])
def test_a_few_outliers_do_not_make_the_tree_deep(arity: int) -> None:
    rows = np.zeros((1000, 60))
    rows[:, 0] = 1.0
    rows[:50, 0] = 2.0 ** -np.arange(50)  # 50 labels, each further from the others than the one before
    rows[np.arange(50), np.arange(1, 51)] = 1.0
    tree = build_kmeans(from_dense(rows), arity, 5, 0.0, balanced=False)
    assert reference.imbalances(tree, arity, 5, balanced=False) == []
    assert tree.depth_of_leaves.max() <= 12


def test_equal_profiles_are_split_evenly() -> None:
    profiles = from_dense(np.ones((1000, 3)))
    for arity in (2, 10, 100):
        uneven = build_kmeans(profiles, arity, 10, balanced=False)
        assert reference.imbalances(uneven, arity, 10, balanced=True) == []


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("arity", [2, 3, 16, 100])
@pytest.mark.parametrize("entries_of_large_group", [0, 2000, 1 << 30])
def test_threads_do_not_matter(
    arity: int, entries_of_large_group: int, balanced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kmeans_module, "_ENTRIES_OF_LARGE_GROUP", entries_of_large_group)
    profiles = from_dense(random_rows(700, 50, seed=2))
    trees = []
    for threads in (1, 2, 5):
        with Pool(threads) as pool:
            trees.append(build_kmeans(profiles, arity, 10, 0.001, 7, pool, balanced))
    assert trees[0] == trees[1] == trees[2]
    assert reference.imbalances(trees[0], arity, 10, balanced) == []


def test_seed_and_length_of_profiles() -> None:
    rows = random_rows(200, 40, seed=2)
    tree = build_kmeans(from_dense(rows), 2, 10, 0.001, 1)
    assert tree == build_kmeans(from_dense(rows * 4.0), 2, 10, 0.001, 1)
    assert tree != build_kmeans(from_dense(rows), 2, 10, 0.001, 2)
    assert build_kmeans(from_dense(rows), 2, 10, 0.001, 2**63 - 1).n_labels == 200


def test_long_profiles_are_cut_to_their_strongest_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(100, 60, seed=4)
    strongest = np.sort(rows, axis=1)[:, -5:-4]
    expected = build_kmeans(from_dense(np.where(rows >= strongest, rows, 0.0)), 3, 5)
    monkeypatch.setattr(kmeans_module, "ENTRIES_PER_LABEL", 5)
    assert build_kmeans(from_dense(rows), 3, 5) == expected


def test_impossible_parameters_are_refused() -> None:
    profiles = from_dense(np.ones((3, 2)))
    with pytest.raises(ParameterError, match="arity must be at least 2, but is 1"):
        build_kmeans(profiles, 1, 100)
    with pytest.raises(ParameterError, match="max_leaves must be at least 1, but is 0"):
        build_kmeans(profiles, 2, 0)
    with pytest.raises(TreeError, match="at least one label"):
        build_kmeans(from_dense(np.ones((0, 2))), 2, 10)
