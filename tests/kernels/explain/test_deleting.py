"""What a label would be without words: as the reference says it."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.data.rows import read_only
from labeltree.kernels.explain.deleting import (
    Columns,
    Occurrences,
    Paths,
    Voters,
    delete_words,
    distinct_columns,
)
from labeltree.kernels.text.rows import NORM_L2, NORM_MEAN, NORM_NONE, TF_BINARY, TF_COUNT, TF_LOG
from labeltree.reference import explain as reference

N_WORDS, N_NAMES, N_COLUMNS, N_ROWS = 12, 9, 25, 30


def random_text(rng: np.random.Generator, tf: int, norm: int) -> tuple[Columns, Occurrences]:
    """Words are the first columns, one each; then n-grams of characters, then pairs."""
    name = np.append(np.arange(N_NAMES), rng.integers(0, N_NAMES, N_WORDS - N_NAMES))
    ngrams = rng.integers(N_NAMES, 18, 20), rng.integers(0, N_WORDS, 20)
    pairs = rng.integers(18, N_COLUMNS, 20), rng.integers(0, N_WORDS - 3, 20)
    column = np.concatenate([name, ngrams[0], pairs[0]])
    first = np.concatenate([np.arange(N_WORDS), ngrams[1], pairs[1]])
    n_words = np.concatenate([np.ones(N_WORDS + 20, np.int64), rng.choice([2, -3, -4], 20)])
    ends, most = np.array([N_NAMES, 18, N_COLUMNS]), np.array([0, 5, 5])
    weights = np.array([1.0, 0.7, 0.4], np.float32)
    idf = rng.uniform(0.5, 3.0, N_COLUMNS).astype(np.float32)
    columns = Columns(idf, tf, norm, ends, read_only(weights), read_only(most))
    return columns, Occurrences(column, first, n_words, name)


def random_evidence(rng: np.random.Generator) -> tuple[Paths, Voters]:
    weights = rng.normal(size=(5, N_COLUMNS)).astype(np.float32)
    maps = np.array([[1.0, 1.0, 0.0], [1.2, 0.9, 0.3]])
    bias = rng.normal(size=5).astype(np.float32)
    paths = Paths(weights, bias, np.array([2, 5]), maps, np.array([0.5, 0.25]))
    shared = rng.integers(0, 900, (N_NAMES, N_ROWS)).astype(np.int32)
    weight = rng.choice([1.0, 2.0], N_ROWS).astype(np.float32)
    return paths, Voters(shared, rng.random(N_ROWS) < 0.5, weight, 8, 3, 0.25)


@pytest.mark.parametrize("tf", [TF_COUNT, TF_LOG, TF_BINARY])
@pytest.mark.parametrize("norm", [NORM_NONE, NORM_L2, NORM_MEAN])
def test_it_deletes_what_the_reference_deletes(tf: int, norm: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        text, said = random_text(rng, tf, norm), random_evidence(rng)
        map_of_average = np.array([1.1, 0.9, 0.2])
        tried = rng.permutation(N_NAMES)[:7]
        is_gone, words, lowest, estimates = (
            np.zeros(N_NAMES, np.bool_),
            np.empty(4, np.int64),
            np.empty(4),
            np.empty(7),
        )
        given = *text, *said, read_only(map_of_average), tried, is_gone
        n = delete_words(*given, 4, words, lowest, estimates)
        expected = reference.delete_words(text, said, map_of_average, tried.tolist(), 4)
        assert tried[words[:n]].tolist() == [word for word, _ in expected]
        np.testing.assert_allclose(lowest[:n], [p for _, p in expected], rtol=1e-3)
        assert np.flatnonzero(is_gone).tolist() == sorted(word for word, _ in expected)


def test_columns_are_numbered_as_they_rise() -> None:
    place_column = np.array([7, 3, 7, 9, 3], np.int32)
    columns, number = np.empty(5, np.int32), np.empty(5, np.int64)
    n = distinct_columns(place_column, columns, number)
    assert columns[:n].tolist() == [3, 7, 9]
    assert number.tolist() == [1, 0, 1, 2, 0]
