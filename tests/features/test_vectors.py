"""Vector features: normalised rows, untouched input, tensors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    normal = fitted_rows(given_rows, make_config({"row_norm": row_norm}))
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
