"""The sort of a row's entries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from labeltree.kernels.sorting import MOST_RANKED, make_key, number_of, place_of, select_largest, sort_keys


@settings(max_examples=100)
@given(st.lists(st.integers(-5, 10**6), max_size=3 * MOST_RANKED))
def test_keys_are_sorted_and_equal_numbers_keep_their_order(numbers: list[int]) -> None:
    keys = np.array([make_key(number, place) for place, number in enumerate(numbers)] + [-1], np.int64)
    sort_keys(keys, len(numbers), np.empty(MOST_RANKED, np.int64))
    assert keys[-1] == -1  # what is behind the first n stays
    order = np.argsort(numbers, kind="stable")
    assert [place_of(key) for key in keys[:-1]] == order.tolist()
    assert [number_of(key) for key in keys[:-1]] == [numbers[place] for place in order]


@settings(max_examples=100)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.25, 3.0, 7.5, 1e30]), min_size=2, max_size=50), st.data())
def test_the_largest_are_selected(numbers: list[float], data: st.DataObject) -> None:
    values = np.array(numbers, np.float32)
    n_kept = data.draw(st.integers(1, len(numbers) - 1))
    limit, n_equal = select_largest(values.view(np.int32), n_kept)
    bits = values.view(np.int32)
    kept = [*values[bits > limit], *values[bits == limit][:n_equal]]
    assert sorted(kept) == sorted(numbers)[-n_kept:]
