"""Shares of entries become those of words as in the reference; none is lost."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.data.rows import read_only
from labeltree.kernels.explain.words import share_words
from labeltree.reference import explain as reference


@pytest.mark.parametrize("seed", range(5))
def test_words_have_what_the_reference_gives_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_words, n_places = 7, 30
    columns = np.sort(rng.choice(40, 15, replace=False)).astype(np.int32)
    shares, first = rng.normal(size=15), rng.integers(0, n_words - 2, n_places)
    column = rng.integers(0, 40, n_places).astype(np.int32)
    n = rng.choice([1, 2, 3, -3], n_places)
    found = np.empty(n_words)
    beside = share_words(read_only(columns), read_only(shares), column, first, n, found)
    places = list(zip(column.tolist(), first.tolist(), n.tolist(), strict=True))
    expected, expected_beside = reference.share_words(columns.tolist(), shares.tolist(), places, n_words)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert beside == pytest.approx(expected_beside)
    assert found.sum() + beside == pytest.approx(shares.sum())
