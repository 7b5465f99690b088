"""The bent map of an average: as likely as a general optimiser finds, rising, and that of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError
from labeltree.experts.calibration import fit_bends, fit_map
from labeltree.experts.combination import BENDS, Combination, log_odds_of
from labeltree.reference.bends import bend_loss, bent
from labeltree.reference.search import combined

STRAIGHT = np.array([1.0, 1.0, 0.0])
WAVE = np.array([-4.5, -3.2, -1.6, -0.6, -0.2, 0.5, 1.8, 3.4, 4.3])


def draw_pairs(n: int, seed: int, values: NDArray) -> tuple[NDArray, NDArray]:
    """Averages, and labels that are right as often as the bent map says."""
    random = np.random.default_rng(seed)
    p = random.beta(0.5, 0.9, n).astype(np.float32).clip(1e-6, 1 - 1e-6)
    log_odds = bent(log_odds_of(STRAIGHT, p.astype(np.float64)), values)
    return p, random.random(n) < 1.0 / (1.0 + np.exp(-log_odds))


@settings(max_examples=30)
@given(
    n=st.sampled_from([1, 30, 1000]),
    seed=st.integers(0, 999),
    values=st.sampled_from([WAVE, BENDS, 3.0 * BENDS, np.where(BENDS < 0, -0.1, 0.1) + 0.01 * BENDS]),
    map=st.sampled_from([STRAIGHT, np.array([0.7, 1.6, -0.5])]),
)
def test_the_bends_are_the_most_likely_ones(n: int, seed: int, values: NDArray, map: NDArray) -> None:
    from scipy.optimize import minimize

    p, is_right = draw_pairs(n, seed, values)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = fit_bends(map, p, is_right, np.ones(n, np.float32))
    assert (np.diff(found) >= 0.05 - 1e-9).all()
    given = log_odds_of(map, p.astype(np.float64).clip(1e-9, 1 - 1e-6)), is_right

    def loss(numbers: NDArray) -> float:
        return bend_loss(np.cumsum(numbers).tolist(), *given)

    best = minimize(
        loss, np.append(BENDS[0], np.diff(BENDS)), bounds=[(None, None)] + (len(BENDS) - 1) * [(0.05, None)]
    )
    assert bend_loss(found.tolist(), *given) <= best.fun + 1e-3 * (1 + best.fun)


def test_known_bends_are_found() -> None:
    p, is_right = draw_pairs(40_000, 1, WAVE)
    ones = np.ones(len(p), np.float32)
    map = fit_map(p, is_right, ones)
    combination = Combination(np.ones(1), np.concatenate([map, fit_bends(map, p, is_right, ones)]))
    averages = np.linspace(0.01, 0.99, 50)
    expected = 1.0 / (1.0 + np.exp(-bent(log_odds_of(STRAIGHT, averages), WAVE)))
    off = np.abs(combination.mapped(averages) - expected)
    unbent = np.abs(Combination(np.ones(1), map).mapped(averages) - expected)
    assert off.max() < 0.04
    assert off.mean() < 0.5 * unbent.mean()


def test_a_weight_counts_as_so_many_pairs() -> None:
    p, is_right = draw_pairs(300, 2, WAVE)
    times = np.random.default_rng(3).integers(0, 5, 300)
    found = fit_bends(STRAIGHT, p, is_right, times.astype(np.float32))
    repeated = np.repeat(p, times), np.repeat(is_right, times), np.ones(times.sum(), np.float32)
    np.testing.assert_allclose(found, fit_bends(STRAIGHT, *repeated), rtol=1e-6)


@pytest.mark.parametrize("p", [0.0, 1e-30, 0.5, 1.0])
@pytest.mark.parametrize("is_right", [True, False])
def test_odd_data_give_finite_bends_that_rise(p: float, is_right: bool) -> None:
    pairs = np.full(2000, p, np.float32), np.full(2000, is_right), np.ones(2000, np.float32)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = fit_bends(fit_map(*pairs), *pairs)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0.0).all()


@settings(max_examples=60)
@given(
    map=st.tuples(st.floats(0.05, 5.0), st.floats(0.05, 5.0), st.floats(-9.0, 9.0)),
    first=st.floats(-9.0, 2.0),
    slopes=st.lists(st.floats(0.05, 5.0), min_size=len(BENDS) - 1, max_size=len(BENDS) - 1),
    threshold=st.floats(0.125, 1.0, width=32),
)
def test_the_map_rises_and_is_that_of_the_reference(
    map: tuple[float, ...], first: float, slopes: list[float], threshold: float
) -> None:
    values = np.cumsum([first, *slopes])
    combination = Combination(np.ones(1), np.concatenate([map, values]))
    # Averages around every point, and where sums are rounded to one.
    around = 1.0 / (1.0 + np.exp(-np.array([np.nextafter(BENDS, -9.0), BENDS, np.nextafter(BENDS, 9.0)])))
    averages = np.sort(np.concatenate([[0.0, 1e-30, 1.0], around.ravel(), np.linspace(0.0, 1.0, 200)]))
    averages = averages.astype(np.float32).astype(np.float64)
    found = combination.mapped(averages)
    assert (found[0], found[-1]) == (0.0, 1.0)
    assert (np.diff(found) >= 0.0).all()
    expected = combined([averages], [1.0], combination.map.tolist())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
    least = combination.least_average(np.float32(threshold))
    assert (combination.mapped(averages[averages < least]) < threshold).all()
    assert (averages[found >= threshold] >= least).all()


def test_no_place_is_beyond_the_last_value() -> None:
    """Just below the last point, and the sum that tells its place is rounded up."""
    map = np.array([1.0, 1.0, np.nextafter(4.0, 0.0)])
    combination = Combination(np.ones(1), np.concatenate([map, WAVE]))
    assert combination.mapped(np.array([0.5]))[0] == pytest.approx(1.0 / (1.0 + np.exp(-WAVE[-1])))


@pytest.mark.parametrize(
    "map",
    [
        [1.0, 1.0, 0.0, *BENDS[:-1]],
        [1.0, 1.0, 0.0, *BENDS, 5.0],
        [1.0, 1.0, 0.0, *BENDS[::-1]],
        [1.0, 1.0, 0.0, *np.zeros(9)],
        [1.0, 1.0, 0.0, *BENDS[:-1], np.nan],
        [1.0, 1.0, 0.0, *BENDS[:-1], 1e7],
        [0.0, 1.0, 0.0, *BENDS],
        [1.0, 1.0],
    ],
)
def test_a_file_with_another_map_is_refused(map: list[Any]) -> None:
    with pytest.raises(CorruptedModelError, match=r"map is .*, but must be empty or three numbers"):
        Combination.from_saved([1.0], [float(value) for value in map])
    with pytest.raises(CorruptedModelError, match="map is"):
        Combination.from_saved([1.0], "map")
    assert Combination.from_saved([1.0], [1.0, 1.0, 0.0, *BENDS.tolist()]).map.tolist()[3:] == BENDS.tolist()
