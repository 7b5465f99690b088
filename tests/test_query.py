"""Queries: whatever a caller gives is checked, however often it was asked before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labeltree.errors import ParameterError
from labeltree.query import ALL, DEFAULT_BEAM, NO_BEAM, Query, make_query, query_all


def test_what_is_given_becomes_one_query() -> None:
    usual = make_query(5)
    assert usual == Query(5, np.float32(0.0), False, NO_BEAM, True, is_bounded=True)
    assert type(usual.threshold) is np.float32
    assert make_query(np.int16(5), np.float64(0.0)) == usual
    assert make_query(3, 0.1, True, "beam", None, "nothing") == (
        3,
        np.float32(0.1),
        True,
        DEFAULT_BEAM,
        False,
        False,
        None,
        None,
    )
    assert make_query(3, search="beam", beam=10**20).beam < 1 << 32
    assert make_query(None, 0.5) == make_query(0, 0.5) == query_all(0.5) == Query(ALL, np.float32(0.5))
    assert query_all().threshold == 0.0  # all labels, whatever their probabilities


def test_only_auto_ends_before_all_is_proven() -> None:
    auto, exact, beam = (make_query(5, search=search) for search in ("auto", "exact", "beam"))
    assert auto == make_query(5)
    assert 5 < auto.budget < make_query(50).budget < exact.budget == beam.budget
    assert query_all(0.5).budget == exact.budget


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(k=True), "k must be at least 1, but is True"),
        (dict(k=1.0), "k must be at least 1, but is 1.0"),
        (dict(k=[1]), r"k must be at least 1, but is \[1\]"),
        (dict(threshold=True), "threshold must be a number from 0 to 1, but is True"),
        (dict(threshold=[0.0]), "threshold must be a number"),
        (dict(threshold=1.5), "threshold must be from 0 to 1, but is 1.5"),
        (dict(search="nearest"), "search must be one of auto, exact, beam, but is 'nearest'"),
        (dict(search=["exact"]), "search must be one of auto, exact, beam"),
        (dict(beam=1), "beam=1 has no effect where search is auto"),
        (dict(search="beam", beam=True), "beam must be at least 1, but is True"),
        (dict(if_unknown={}), "if_unknown must be one of labels, nothing"),
        (dict(k=0), "k 0 .* lists all labels above a threshold: give a threshold"),
        (dict(k=0, threshold=0.1, search="beam"), "search beam cannot find them"),
    ],
)
def test_what_is_like_something_right_is_still_wrong(given: dict[str, Any], message: str) -> None:
    """1 == 1.0 == True, and queries that were asked before are not made again."""
    make_query(1, 1, False, "exact", None)
    make_query(1, 0.0, False, "beam", 1)
    with pytest.raises(ParameterError, match=message):
        make_query(**{"k": 1, **given})
