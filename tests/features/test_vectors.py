"""Vector features: normalised rows, untouched input, tensors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeltree
from labeltree.config import Config, make_config
from labeltree.data.rows import SparseRows
from labeltree.errors import CorruptedModelError, DataError
from labeltree.features.vectors import VectorFeatures
from labeltree.reference.text import normalize_row

values = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)


def make_rows(rows: list[list[float]]) -> SparseRows:
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    columns = [column for row in rows for column in range(len(row))]
    flat = [value for row in rows for value in row]
    return SparseRows(indptr, np.array(columns, np.int32), np.array(flat, np.float32), 10)


def fitted_rows(rows: SparseRows, config: Config) -> SparseRows:
    return VectorFeatures.fit(VectorFeatures.content(rows), config).rows


@given(st.lists(st.lists(values, max_size=9), max_size=5), st.sampled_from(["l2", "mean", "none"]))
def test_rows_are_normalised_as_in_reference(rows: list[list[float]], row_norm: str) -> None:
    given_rows = make_rows(rows)
    before = given_rows.values.copy()
    normal = fitted_rows(given_rows, make_config({"row_norm": row_norm, "idf": False}))
    expected = [v for row in rows for v in normalize_row(dict(enumerate(row)), row_norm).values()]
    np.testing.assert_allclose(normal.values, expected, rtol=1e-6, atol=1e-45)
    assert np.array_equal(normal.indptr, given_rows.indptr)
    assert np.array_equal(normal.indices, given_rows.indices)
    assert np.array_equal(given_rows.values, before)


def test_read_only_input_is_fine() -> None:
    rows = make_rows([[3, 4]])
    for array in rows[:3]:
        array.flags.writeable = False
    normal = fitted_rows(rows, make_config())
    np.testing.assert_allclose(normal.values, [0.6, 0.8])


def test_another_number_of_columns_is_an_error() -> None:
    features = VectorFeatures(make_config(), 12)
    with pytest.raises(DataError, match="X has 10 features, but the model was trained with 12"):
        features.prepared(make_rows([[1]]))


def test_tensors_round_trip() -> None:
    config = make_config({"row_norm": "mean"})
    features = VectorFeatures(config, 10)
    again = VectorFeatures.from_tensors(features.tensors(), config)
    assert again.n_columns == 10
    assert again.prepared(make_rows([[1, -3]])).values.tolist() == [0.25, -0.75]


@pytest.mark.parametrize("tensor", [np.zeros(0, np.int64), np.array([-1]), np.array([1, 2]), np.array([3.0])])
def test_corrupted_tensors_are_refused(tensor: np.ndarray) -> None:
    with pytest.raises(CorruptedModelError, match=r"features\.n_columns"):
        VectorFeatures.from_tensors({"features.n_columns": tensor}, make_config())


COUNTS = [[1.0, 2.0, 0.0, 1.0], [1.0, 0.0, 3.0], [1.0]]


def test_counts_are_weighed_by_the_root_of_their_idf() -> None:
    rows = fitted_rows(make_rows(COUNTS), Config())
    frequency = [3, 2, 2, 1]  # a 0 that is given counts as one of a row
    idf = [math.sqrt(1 + math.log(4 / (1 + n))) for n in frequency]
    for row, given_row in enumerate(COUNTS):
        weighed = {column: value * idf[column] for column, value in enumerate(given_row)}
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        np.testing.assert_allclose(rows.values[part], list(normalize_row(weighed, "l2").values()), rtol=1e-6)


@pytest.mark.parametrize("changed", [0.5, -1.0])
def test_other_numbers_are_not_weighed(changed: float) -> None:
    given_rows = make_rows([[changed, 1.0], *COUNTS])
    features = VectorFeatures.fit(VectorFeatures.content(given_rows), Config()).features
    assert not len(features.column_weight)
    for config in (Config(idf=False), Config(row_norm="none")):
        assert not len(
            VectorFeatures.fit(VectorFeatures.content(make_rows(COUNTS)), config).features.column_weight
        )


def test_a_single_row_is_weighed_as_in_a_batch(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    X = random.integers(0, 3, (200, 12))
    labels = [[f"label{column}" for column in np.flatnonzero(row[:5])] for row in X]
    model = labeltree.train(X, labels, neighbours=0)
    assert len(model.features.column_weight) == 12
    model.save(tmp_path / "m")
    for each in (model, labeltree.load(tmp_path / "m")):
        batch = each.predict(X[:20])
        for row in range(20):
            assert each.predict(X[row : row + 1]) == batch[row : row + 1]
            assert each.predict(make_rows([X[row].tolist()])._replace(n_columns=12)) == batch[row : row + 1]


@pytest.mark.parametrize("row_norm", ["l2", "mean", "none"])
def test_held_out_rows_have_no_column_of_their_own(row_norm: str) -> None:
    rows = make_rows([[0.5, 1.5, 2.5], [0.5, 3.5], [0.5, 1.0, 1.0, 4.5]])
    features, _, prepared, _ = VectorFeatures.fit(
        VectorFeatures.content(rows), make_config({"row_norm": row_norm})
    )
    unseen = features.as_unseen(prepared, np.array([2]))
    expected = normalize_row({0: 0.5, 1: 1.0, 2: 1.0}, row_norm)
    assert dict(zip(unseen.indices.tolist(), unseen.values.tolist(), strict=True)) == pytest.approx(expected)
    both = features.as_unseen(prepared, np.array([0, 2]))
    assert both.indices.tolist() == [0, 1, 0, 1]  # the third column is in held-out rows alone
