"""The most likely numbers of a logistic model that has few of them, by Newton's method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_STEPS = 50


class Prior(NamedTuple):
    """A normal distribution of the numbers, cut off below."""

    mean: NDArray[np.float64]  # (n_numbers,) where the search begins
    precision: NDArray[np.float64]  # (n_numbers, n_numbers) the inverse of the covariance
    least: NDArray[np.float64]  # (n_numbers,)


def most_likely(
    features: NDArray[np.float64],
    offset: NDArray[np.float64],
    is_right: NDArray[np.bool_],
    weight: NDArray[np.float32],
    prior: Prior,
) -> NDArray[np.float64]:
    """The numbers by which sigmoid(numbers · features + offset) tells best what is right.

    ``features`` are (n_numbers, n_pairs). Steps are halved until they gain: a full one from the mean of the
    prior may lead far astray. A number at its bound is held there while it would fall below.
    """
    sign, weight_64 = np.where(is_right, 1.0, -1.0), weight.astype(np.float64)

    def losses(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.logaddexp(0.0, -sign * ((numbers[:, None] * features).sum(axis=0) + offset))

    def pull(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return (prior.precision * (numbers - prior.mean)).sum(axis=1)

    def objective(numbers: NDArray[np.float64]) -> float:
        distance = ((numbers - prior.mean) * pull(numbers)).sum()
        return float((weight_64 * losses(numbers)).sum() + 0.5 * distance)

    numbers, lowest = prior.mean.copy(), objective(prior.mean)
    for _ in range(_STEPS):
        wrong = -np.expm1(-losses(numbers))  # the probability of what is not so
        gradient = (features * (weight_64 * sign * wrong)).sum(axis=1) - pull(numbers)
        curvature = features * (weight_64 * wrong * (1.0 - wrong))
        hessian = np.array([[(row * other).sum() for other in features] for row in curvature])
        free = np.flatnonzero((numbers > prior.least) | (gradient > 0.0))
        step = np.zeros(len(numbers))
        # A few equations: small enough that no threads of a library change the result.
        try:
            step[free] = np.linalg.solve((hessian + prior.precision)[np.ix_(free, free)], gradient[free])
        except np.linalg.LinAlgError:  # weights so large that the prior is rounded away
            break
        while np.abs(step).max() > 1e-9:
            moved = np.maximum(numbers + step, prior.least)
            if objective(moved) < lowest:
                break
            step /= 2.0
        else:
            break
        numbers, lowest = moved, objective(moved)
    return numbers
