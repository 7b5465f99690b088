"""The thread pool: order, errors, one thread, and slices that cover everything once."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeltree.errors import ParameterError
from labeltree.parallel import Pool, available_threads, check_threads, row_slices


def test_available_threads() -> None:
    assert 1 <= available_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_results_keep_the_order_of_the_items(threads: int) -> None:
    with Pool(threads) as pool:
        assert pool.threads == (threads or available_threads())
        assert pool.map(lambda item: item * item, range(100)) == [item * item for item in range(100)]
        assert pool.map(str, iter("ab")) == ["a", "b"]
        assert pool.map(str, []) == []


@pytest.mark.parametrize("threads", [-1, 0.5, "2", None, True])
def test_bad_numbers_of_threads(threads: Any) -> None:
    with pytest.raises(ParameterError, match="threads must be at least 0"):
        Pool(threads)
    with pytest.raises(ParameterError, match="threads must be at least 0"):
        check_threads(threads)


def test_numbers_of_numpy_are_numbers_of_threads() -> None:
    assert check_threads(np.int64(3)) == 3
    with Pool(np.int32(1)) as pool:
        assert pool.threads == 1


def test_one_thread_and_single_items_run_in_the_caller() -> None:
    caller = threading.get_ident()
    with Pool(1) as pool:
        assert pool.map(lambda _: threading.get_ident(), range(3)) == [caller] * 3
    with Pool(2) as pool:
        assert pool.map(lambda _: threading.get_ident(), [0]) == [caller]


def test_items_really_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=20)
    with Pool(3) as pool:
        pool.map(lambda _: meeting.wait(), range(3))  # a single thread would wait for ever


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_reach_the_caller_and_no_thread_stays(threads: int, error: type[BaseException]) -> None:
    before = threading.active_count()

    def fail(item: int) -> int:
        if item == 3:
            raise error("item 3")
        return item

    with pytest.raises(error, match="item 3"), Pool(threads) as pool:
        pool.map(fail, range(10))
    assert threading.active_count() == before


def test_waiting_items_are_cancelled_by_an_error() -> None:
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError("stop")
        threading.Event().wait(0.002)

    with pytest.raises(ValueError, match="stop"), Pool(2) as pool:
        pool.map(work, range(2000))
    assert len(begun) < 1000


@given(n_rows=st.integers(0, 500), parts=st.integers(1, 600))
def test_slices_cover_all_rows_once_and_evenly(n_rows: int, parts: int) -> None:
    slices = row_slices(n_rows, parts)
    assert [row for part in slices for row in range(part.start, part.stop)] == list(range(n_rows))
    lengths = [part.stop - part.start for part in slices]
    assert max(lengths) - min(lengths) <= 1
    assert len(slices) == max(1, min(n_rows, parts))
