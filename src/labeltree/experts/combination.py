"""How the evidence of several experts becomes one probability: an average with weights, then a map.

Both keep the order in which labels of a row can be bounded: a label that no expert gives more than p has an
average of at most p, and the map rises. So the best labels are found exactly (:mod:`.ensemble`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import read_only
from labeltree.errors import CorruptedModelError, show

NO_MAP: NDArray[np.float64] = np.empty(0)
BENDS: NDArray[np.float64] = np.arange(-4.0, 5.0)
_LARGEST = 1e6  # of a file's numbers


class Combination(NamedTuple):
    """The weights of a model's experts, and the map of their average."""

    weights: NDArray[np.float64]  # (n_experts,) at least 0, not all 0; their sum is what the average is of
    # (3,) a, b, c of sigmoid(a log p - b log(1 - p) + c); or, with what the log-odds BENDS should rather be,
    # (3 + len(BENDS),): between these points it is a line, beyond them as far off as there. Or none.
    map: NDArray[np.float64] = NO_MAP

    def mapped(self, average: NDArray[np.float64]) -> NDArray[np.float32]:
        """The probabilities of labels whose evidence has these averages."""
        if not len(self.map):
            return average.astype(np.float32)
        from labeltree.kernels.search.answer import map_averages

        probabilities = np.empty(average.shape, np.float32)
        map_averages(read_only(self.map), read_only(average.ravel()), probabilities.ravel())
        return probabilities

    def probability_of(self, average: float) -> float:
        """As :meth:`mapped`, of one label and in 64 bits."""
        if not len(self.map) or average in (0.0, 1.0):
            return average
        a, b, c, *bends = self.map.tolist()
        log_odds = _bent(a * math.log(average) - b * math.log1p(-average) + c, bends)
        return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else math.exp(log_odds)

    def least_average(self, threshold: np.float32) -> float:
        """No label of a smaller average reaches the threshold."""
        from labeltree.kernels.search.answer import fill_least_average

        least = np.empty(1, np.float32)
        fill_least_average(read_only(self.map), threshold, least)
        return float(least[0])

    @classmethod
    def from_saved(cls, weights: Sequence[Any], map: Any) -> Combination:
        """With the numbers that a model file has, checked."""
        if not all(_is_number(weight) and weight >= 0 for weight in weights) or not any(weights):
            raise CorruptedModelError(
                f"the weights of the experts are {show(weights)}, but must be at least 0, and one above"
            )
        lengths = 0, 3, 3 + len(BENDS)
        is_map = isinstance(map, list) and len(map) in lengths and all(_is_number(value) for value in map)
        if not is_map or any(value <= 0 for value in map[:2]) or np.any(np.diff(map[3:]) <= 0):
            raise CorruptedModelError(
                f"map is {show(map)}, but must be empty or three numbers, the first two above 0, "
                f"maybe with {len(BENDS)} more that rise"
            )
        return cls(np.array(weights, np.float64), np.array(map, np.float64))


def _bent(log_odds: float, values: Sequence[float]) -> float:
    """What log-odds become by the values of BENDS, if there are any."""
    if not values:
        return log_odds
    last = 0.5 * (len(values) - 1)
    if abs(log_odds) >= last:
        return log_odds + (values[-1] - last if log_odds > 0 else values[0] + last)
    place = min(int(log_odds + last), len(values) - 2)
    low, high = values[place], values[place + 1]
    return low + (high - low) * (log_odds + last - place)


def log_odds_of(map: NDArray[np.float64], average: NDArray[np.float64]) -> NDArray[np.float64]:
    """Before they are bent."""
    return map[0] * np.log(average) - map[1] * np.log1p(-average) + map[2]


def _is_number(value: Any) -> bool:
    """Whether it is one that can be reckoned with."""
    return type(value) in (int, float) and abs(value) <= _LARGEST


def equal_weights(n_experts: int) -> Combination:
    """The plain average."""
    return Combination(np.ones(n_experts))
