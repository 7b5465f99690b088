"""Label profiles against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeltree.trees.profiles as profiles_module
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import DataError
from labeltree.kernels.trees.shapes import keep_strongest
from labeltree.parallel import Pool
from labeltree.reference import tree as reference
from labeltree.trees.profiles import label_profiles

N_FEATURES = 9000  # more than a word of the upper bit map


def sparse_rows(rows: list[dict[int, float]], n_columns: int = N_FEATURES) -> SparseRows:
    indices = [feature for row in rows for feature in sorted(row)]
    values = [row[feature] for row in rows for feature in sorted(row)]
    indptr = np.cumsum([0, *map(len, rows)])
    return SparseRows(indptr, np.array(indices, np.int32), np.array(values, np.float32), n_columns)


def label_rows(label_sets: list[set[int]], n_labels: int) -> LabelRows:
    indices = [label for labels in label_sets for label in sorted(labels)]
    return LabelRows(np.cumsum([0, *map(len, label_sets)]), np.array(indices, np.int32), n_labels)


def as_dicts(rows: SparseRows) -> list[dict[int, float]]:
    edges = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True)) for a, b in edges]


def random_data(n_rows: int, n_labels: int, seed: int) -> tuple[SparseRows, LabelRows]:
    random = np.random.default_rng(seed)
    rows = [
        {int(f): float(random.random()) for f in random.integers(0, N_FEATURES, 20)} for _ in range(n_rows)
    ]
    sets = [set(random.integers(0, n_labels, 3).tolist()) for _ in range(n_rows)]
    return sparse_rows(rows), label_rows(sets, n_labels)


FEATURES = st.sampled_from([0, 1, 63, 64, 65, 4095, 4096, 8191, 8192, N_FEATURES - 1])
ROWS = st.dictionaries(FEATURES, st.floats(0.125, 8.0, width=32), max_size=6)


@given(st.lists(st.tuples(ROWS, st.sets(st.integers(0, 4))), max_size=10))
def test_agrees_with_dictionaries(data: list[tuple[dict[int, float], set[int]]]) -> None:
    rows, sets = [row for row, _ in data], [labels for _, labels in data]
    result = label_profiles(sparse_rows(rows), label_rows(sets, 5), Pool(1))
    assert result.n_rows == 5
    assert result.values.dtype == np.float32
    for found, expected in zip(as_dicts(result), reference.profiles(rows, sets, 5), strict=True):
        assert list(found) == sorted(expected)
        assert found == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.tuples(ROWS, st.sets(st.integers(0, 4))), max_size=10))
def test_profiles_from_labels_agree_with_dictionaries(data: list[tuple[dict[int, float], set[int]]]) -> None:
    rows, sets = [row for row, _ in data], [labels for _, labels in data]
    X, Y = sparse_rows(rows), label_rows(sets, 5)
    labels = label_profiles(X, Y, Pool(1), kind="labels")
    assert (labels.n_rows, labels.n_columns) == (5, 5)
    expected = reference.profiles(reference.label_features(sets, 5), sets, 5)
    for found, profile in zip(as_dicts(labels), expected, strict=True):
        assert list(found) == sorted(profile)
        assert found == pytest.approx(profile, rel=1e-6)
    both = label_profiles(X, Y, Pool(1), kind="both")
    assert (both.n_rows, both.n_columns) == (5, N_FEATURES + 5)
    joined = zip(as_dicts(both), as_dicts(label_profiles(X, Y, Pool(1))), as_dicts(labels), strict=True)
    for found, from_features, from_labels in joined:
        moved = {N_FEATURES + label: value for label, value in from_labels.items()}
        assert found == from_features | moved
        assert list(found) == sorted(found)


def similarity(profiles: SparseRows, left: int, right: int) -> float:
    rows = as_dicts(profiles)
    return sum(value * rows[right].get(column, 0.0) for column, value in rows[left].items())


def test_labels_are_similar_by_the_company_they_keep() -> None:
    # 0 and 1 always together; 2 and 3 never, but both with 4; 5 alone; 6 is on nearly every row.
    sets = [{0, 1, 6}] * 3 + [{2, 4, 6}] * 3 + [{3, 4, 6}] * 3 + [{5}]
    profiles = label_profiles(sparse_rows([{}] * 10), label_rows(sets, 7), Pool(1), kind="labels")
    assert similarity(profiles, 0, 1) == pytest.approx(1.0)
    assert similarity(profiles, 2, 3) > 0.3
    assert similarity(profiles, 2, 3) > 2.0 * similarity(profiles, 0, 2)  # what is frequent says little
    assert similarity(profiles, 0, 2) > 0.0
    assert similarity(profiles, 0, 5) == 0.0


def test_profiles_from_labels_without_any_or_with_unknown_ones() -> None:
    Y = LabelRows(np.array([0, 2, 2, 4]), np.array([-1, 0, 0, 2], np.int32), 4)
    found = as_dicts(label_profiles(sparse_rows([{}] * 3), Y, Pool(1), kind="labels"))
    known = LabelRows(np.array([0, 1, 1, 3]), np.array([0, 0, 2], np.int32), 4)
    assert found == as_dicts(label_profiles(sparse_rows([{}] * 3), known, Pool(1), kind="labels"))
    assert found[1] == found[3] == {}
    assert set(found[0]) == {0, 2}


@pytest.mark.parametrize("kind", ["labels", "both"])
def test_other_profiles_are_cut_and_do_not_depend_on_threads(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = random_data(300, 70, seed=4)
    whole = label_profiles(X, Y, Pool(1), 3, kind)
    assert np.diff(whole.indptr).max() == 3
    expected = profiles_module.strongest_entries(label_profiles(X, Y, Pool(1), kind=kind), 3)
    assert all(np.array_equal(a, b) for a, b in zip(whole[:3], expected[:3], strict=True))
    monkeypatch.setattr(profiles_module, "_ENTRIES_PER_TASK", 100)
    with Pool(2) as pool:
        again = label_profiles(X, Y, pool, 3, kind)
    assert all(np.array_equal(a, b) for a, b in zip(whole[:3], again[:3], strict=True))


def test_columns_of_both_kinds_must_fit_together() -> None:
    X = SparseRows(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 2**31 - 3)
    with pytest.raises(DataError, match="features and 3 labels are more than 2147483647 columns"):
        label_profiles(X, label_rows([{0}], 3), Pool(1), kind="both")


def test_values_of_any_size_and_sums_of_zero() -> None:
    rows = [{0: 3e38}, {0: 3e38, 1: 4e38 / 2}, {2: 1.0}, {2: -1.0}, {3: 1e-40}]
    result = label_profiles(sparse_rows(rows), label_rows([{0}, {0}, {1}, {1}, {2}], 3), Pool(1))
    large, cancelled, tiny = as_dicts(result)
    assert sum(value * value for value in large.values()) == pytest.approx(1.0)
    assert cancelled == {}
    assert tiny == {3: pytest.approx(1.0)}


def test_unknown_labels_are_left_out() -> None:
    Y = LabelRows(np.array([0, 2]), np.array([-1, 0], np.int32), 1)
    assert as_dicts(label_profiles(sparse_rows([{5: 2.0}]), Y, Pool(1))) == [{5: 1.0}]


def test_threads_and_tasks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = random_data(300, 70, seed=3)
    whole = label_profiles(X, Y, Pool(1))
    for entries_per_task in (1, 100, 5000):
        monkeypatch.setattr(profiles_module, "_ENTRIES_PER_TASK", entries_per_task)
        for threads in (1, 2, 5):
            with Pool(threads) as pool:
                again = label_profiles(X, Y, pool)
            assert all(np.array_equal(a, b) for a, b in zip(whole[:3], again[:3], strict=True))


@pytest.mark.parametrize("entries_per_task", [100, 1 << 21])
def test_cut_in_each_task_or_afterwards(monkeypatch: pytest.MonkeyPatch, entries_per_task: int) -> None:
    monkeypatch.setattr(profiles_module, "_ENTRIES_PER_TASK", entries_per_task)
    X, Y = random_data(300, 70, seed=4)
    whole = profiles_module.strongest_entries(label_profiles(X, Y, Pool(1)), 3)
    again = label_profiles(X, Y, Pool(1), 3)
    assert np.diff(again.indptr).max() == 3
    assert all(np.array_equal(a, b) for a, b in zip(whole[:3], again[:3], strict=True))


def test_rows_must_match() -> None:
    with pytest.raises(DataError, match="X has 1 rows, but Y has 2"):
        label_profiles(sparse_rows([{}]), label_rows([set(), set()], 1), Pool(1))


@given(
    st.lists(st.dictionaries(st.integers(0, 30), st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0]))),
    st.integers(1, 9),
)
def test_strongest_entries(rows: list[dict[int, float]], n_kept: int) -> None:
    expected = []
    for row in rows:
        kept = sorted(row, key=lambda feature: (-abs(row[feature]), feature))[:n_kept]
        expected.append({feature: row[feature] for feature in sorted(kept)})
    n_entries = sum(map(len, expected))
    indptr = np.zeros(len(rows) + 1, np.int64)
    indices, values = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    keep_strongest(sparse_rows(rows), n_kept, indptr, indices, values)
    assert as_dicts(SparseRows(indptr, indices, values, N_FEATURES)) == expected
