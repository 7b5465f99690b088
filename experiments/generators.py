"""The three distributions of the paper's Appendix E.1, seeded, with the exact marginals of every label.

All are made of linear scores w_j·x. What the text leaves open is a :class:`Reading`; its defaults are the
text taken literally.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, softmax

KINDS = ("multi-class", "independent", "dependent")
N_LABELS = 32
SHARPNESS = 10.0  # the paper's c, of the multi-class distribution
ROWS_AT_ONCE = 20_000

Generator = np.random.Generator
Array = NDArray[np.float64]


class Reading(NamedTuple):
    """How the sentences of the appendix are understood."""

    instances: str = "ball"  # x: uniform in a ball, on its "sphere", of uniform "radius", in a "cube"
    weights: str = "sphere"  # w: uniform on a sphere, or in a "ball"
    n_features: int = 3
    offset: bool = False  # w has one more coordinate, the score at x = 0
    mixed: str = "scores"  # M(Wx + e), or only the noise: Wx + M e
    noise: float = 0.25  # standard deviation of e


class Sample(NamedTuple):
    X: NDArray[np.float32]  # (n_rows, n_features)
    Y: NDArray[np.bool_]  # (n_rows, N_LABELS)
    marginals: Array  # (n_rows, N_LABELS) P(y_j = 1 | x)


def generate(kind: str, reading: Reading, n_rows: int, seed: int) -> Sample:
    """A draw of the weights, and rows from it. The same seed gives the same x and w to every kind."""
    model = draw_model(kind, reading, seed)
    random = np.random.default_rng([seed, 1])
    X = draw_points(random, n_rows, reading.n_features, reading.instances).astype(np.float32)
    parts = [slice(first, first + ROWS_AT_ONCE) for first in range(0, n_rows, ROWS_AT_ONCE)]
    drawn = [model.draw(X[part], random) for part in parts]
    marginals = [model.marginals(X[part]) for part in parts]
    return Sample(X, np.concatenate(drawn), np.concatenate(marginals))


class LabelModel(NamedTuple):
    """P(y | x) for given weights."""

    kind: str
    reading: Reading
    weights: Array  # (N_LABELS, n_features)
    offset: Array  # (N_LABELS,)
    mixing: Array  # (N_LABELS, N_LABELS)

    def scores(self, X: NDArray[np.float32]) -> Array:
        return X.astype(np.float64) @ self.weights.T + self.offset

    def marginals(self, X: NDArray[np.float32]) -> Array:
        """P(y_j = 1 | x), exactly. Mixed noise is normal too: row j of M gives it the deviation |M_j|."""
        scores = self.scores(X)
        if self.kind == "multi-class":
            return softmax(SHARPNESS * scores, axis=1)
        if self.kind == "independent":
            return expit(scores)
        if self.reading.mixed == "scores":
            scores = scores @ self.mixing.T
        return ndtr(scores / (self.reading.noise * np.linalg.norm(self.mixing, axis=1)))

    def draw(self, X: NDArray[np.float32], random: Generator) -> NDArray[np.bool_]:
        scores = self.scores(X)
        if self.kind == "multi-class":
            # The largest of scores with Gumbel noise is a draw from their softmax.
            best = np.argmax(SHARPNESS * scores + random.gumbel(size=scores.shape), axis=1)
            return best[:, None] == np.arange(N_LABELS)
        if self.kind == "independent":
            return random.random(scores.shape) < expit(scores)
        noise = random.normal(0.0, self.reading.noise, scores.shape)
        if self.reading.mixed == "scores":
            return (scores + noise) @ self.mixing.T > 0
        return scores + noise @ self.mixing.T > 0


def draw_model(kind: str, reading: Reading, seed: int) -> LabelModel:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, but is {kind!r}")
    if reading.mixed not in ("scores", "noise"):
        raise ValueError(f"mixed must be scores or noise, but is {reading.mixed!r}")
    random = np.random.default_rng([seed, 0])
    n_weights = reading.n_features + reading.offset
    weights = draw_points(random, N_LABELS, n_weights, reading.weights)
    mixing = random.uniform(-1.0, 1.0, (N_LABELS, N_LABELS))
    offset = weights[:, -1] if reading.offset else np.zeros(N_LABELS)
    return LabelModel(kind, reading, weights[:, : reading.n_features], offset, mixing)


def draw_points(random: Generator, n: int, n_features: int, shape: str) -> Array:
    """Points (n, n_features) of radius at most 1; those of a cube lie between -1 and 1."""
    if shape == "cube":
        return random.uniform(-1.0, 1.0, (n, n_features))
    normal = random.normal(size=(n, n_features))
    directions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    if shape == "sphere":
        return directions
    if shape not in ("ball", "radius"):
        raise ValueError(f"points can be in a ball, sphere, radius or cube, but not in {shape!r}")
    radius = random.random((n, 1))
    return directions * (radius ** (1.0 / n_features) if shape == "ball" else radius)


def best_precision(marginals: Array) -> float:
    """The best possible precision@1, in percent: of predicting the label of the highest marginal."""
    return 100.0 * float(marginals.max(axis=1).mean())


def noise_reaching(precision: float, reading: Reading, seeds: range, n_rows: int) -> float:
    """The noise of dependent labels for which the best precision@1, over all draws, is this; by bisection."""
    cleared: list[Array] = []  # marginals are ndtr(cleared / noise)
    for seed in seeds:
        model = draw_model("dependent", reading, seed)
        X = draw_points(np.random.default_rng([seed, 1]), n_rows, reading.n_features, reading.instances)
        scores = model.scores(X.astype(np.float32))
        scores = scores @ model.mixing.T if reading.mixed == "scores" else scores
        cleared.append((scores / np.linalg.norm(model.mixing, axis=1)).max(axis=1))
    highest = np.concatenate(cleared)
    low, high = 1e-3, 1e3
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        reached = 100.0 * float(ndtr(highest / middle).mean())
        low, high = (middle, high) if reached > precision else (low, middle)
    return float(np.sqrt(low * high))
