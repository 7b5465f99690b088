"""Vectors of 16 numbers do as NumPy does, wherever they begin."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.kernels.jit import kernel
from labeltree.kernels.lanes import (
    LANES,
    add_scaled,
    add_sizes,
    load_lanes,
    no_lanes,
    scaled,
    store_lanes,
    sum_lanes,
)


@kernel
def _change(target, at, keep, factor, source, start):
    kept = scaled(keep, load_lanes(target, at))
    store_lanes(target, at, add_scaled(kept, factor, load_lanes(source, start)))


@kernel
def _sum_rows(source, out):
    total = no_lanes()
    for row in range(source.shape[0]):
        total = add_scaled(total, np.float32(1.0), load_lanes(source, row * source.shape[1]))
    store_lanes(out, 0, total)


@kernel
def _size(source):
    return sum_lanes(add_sizes(load_lanes(source, 0), load_lanes(source, LANES)))


@pytest.mark.parametrize(("at", "start"), [(0, 0), (3, 0), (0, 5), (7, 11), (16, 16)])
def test_change_is_that_of_the_range_alone(at: int, start: int) -> None:
    rng = np.random.default_rng(at + start)
    target, source = (rng.normal(size=(2, 20)).astype(np.float32) for _ in range(2))
    expected = target.copy()
    part = slice(at, at + LANES)
    expected.flat[part] = (
        np.float32(0.5) * target.flat[part] + np.float32(3.0) * source.flat[start : start + LANES]
    )
    _change(target, at, np.float32(0.5), np.float32(3.0), source, start)
    np.testing.assert_allclose(target, expected, rtol=1e-6, atol=1e-6)
    outside = np.ones(target.size, np.bool_)
    outside[part] = False
    assert np.array_equal(target.ravel()[outside], expected.ravel()[outside])


def test_sum_of_rows() -> None:
    source = np.arange(5 * 20, dtype=np.float32).reshape(5, 20)
    out = np.full(LANES, np.nan, np.float32)
    _sum_rows(source, out)
    assert np.array_equal(out, source[:, :LANES].sum(axis=0))


def test_sizes_count_without_their_sign() -> None:
    source = np.arange(-20, 12, dtype=np.float32)
    assert _size(source) == source[:LANES].sum() + np.abs(source[LANES:]).sum()


def test_what_is_not_finite_stays_so() -> None:
    source = np.zeros(LANES, np.float32)
    source[3], source[7] = np.nan, np.inf
    out = np.zeros(LANES, np.float32)
    _change(out, 0, np.float32(1.0), np.float32(1.0), source, 0)
    assert np.isnan(out[3])
    assert out[7] == np.inf
    assert np.isfinite(np.delete(out, [3, 7])).all()
