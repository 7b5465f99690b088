"""Which rows are held out, and what is asked about them."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_data import make_toy

from labeltree.config import Config
from labeltree.data.rows import LabelRows, TrainingRows
from labeltree.experts.held_out import BLOCK, choose_rows, hold_out
from labeltree.training.data import read_training_data


@pytest.mark.parametrize("n_rows", [1, 249, 250, 1234, 60_000])
def test_a_fifth_of_the_rows_is_held_out_evenly(n_rows: int) -> None:
    weight = np.ones(n_rows, np.float32)
    rows = choose_rows(weight)
    assert len(rows) <= min(n_rows // 5, 5000)
    assert (len(rows) > 0) == (n_rows >= 250)
    if len(rows):
        assert (np.diff(rows) > 0).all()
        assert rows[-1] < n_rows
        assert len(rows) >= 0.8 * min(n_rows // 5, 5000)
        halves = np.array([np.count_nonzero(rows < n_rows // 2), np.count_nonzero(rows >= n_rows // 2)])
        assert halves.max() <= halves.min() + BLOCK
        weight[rows[::2]] = 0.0
        assert np.array_equal(choose_rows(weight), rows[1::2])


def test_they_are_asked_about_with_their_labels() -> None:
    toy = make_toy(600, seed=4)
    data = read_training_data(toy.texts, toy.Y, Config())
    rows = TrainingRows(data.X, data.Y, np.ones(600, np.float32))
    held_out = hold_out(data.features, rows, Config())
    assert np.array_equal(held_out.numbers, choose_rows(rows.weight))
    assert held_out.X.n_rows == held_out.Y.n_rows == len(held_out.weight) == len(held_out.numbers)
    for place, number in enumerate(held_out.numbers.tolist()):
        own = _labels(held_out.Y, place)
        assert own == _labels(data.Y, number)
        every = np.arange(data.Y.n_labels, dtype=np.int32)
        are_right = held_out.are_right(every, np.full(len(every), place))
        assert np.flatnonzero(are_right).tolist() == own


def test_none_where_nothing_is_calibrated() -> None:
    toy = make_toy(600, seed=4)
    data = read_training_data(toy.texts, toy.Y, Config())
    rows = TrainingRows(data.X, data.Y, np.ones(600, np.float32))
    held_out = hold_out(data.features, rows, Config(calibrate=False))
    assert len(held_out.numbers) == held_out.X.n_rows == held_out.Y.n_rows == 0


def _labels(Y: LabelRows, row: int) -> list[int]:
    return Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
