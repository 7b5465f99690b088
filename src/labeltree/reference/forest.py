"""Forests in plain NumPy: how a node's rows are halved, what its split minimises, what leaves say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def discounts(n: int) -> NDArray[np.float64]:
    """Of the places of an order, from the first on."""
    return 1.0 / np.log2(np.arange(n) + 2.0)


def gains(Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_rows,) one over the greatest discounted sum that an order can give each row; 0 without labels."""
    best = -np.sort(-Y, axis=1) @ discounts(Y.shape[1])
    return np.divide(1.0, best, out=np.zeros(len(Y)), where=best > 0)


class Halves(NamedTuple):
    side: NDArray[np.int64]  # (n_rows,) 1 or -1
    objectives: list[float]  # of each round, never falling


def halve(
    Y: NDArray[np.float64], weight: NDArray[np.float64], side: NDArray[np.int64], rounds: int = 50
) -> Halves:
    """From given halves by alternation: the best order of labels for each half, the best half for each row.

    ``Y`` (n_rows, n_labels) is what a row's labels count, 1 or more for rare ones, else 0.
    """
    occurs = np.flatnonzero(Y.any(axis=0))
    Y, gain = Y[:, occurs], gains(Y[:, occurs])
    of_row, discount, objectives = gain[:, None] * Y, discounts(len(occurs)), []
    for _ in range(rounds):
        lead, objective = np.zeros(len(occurs)), 0.0
        for sign in (1, -1):
            chosen = side == sign
            score = (weight[chosen, None] * of_row[chosen]).sum(axis=0)
            order = np.argsort(-score.astype(np.float32), kind="stable")
            lead[order] += sign * discount
            objective += float(discount @ score[order])
        ahead = of_row @ lead
        side = np.where(ahead > 1e-10, 1, np.where(ahead < -1e-10, -1, side))
        objectives.append(objective)
        if not np.any(np.abs(ahead) > 1e-10):
            return Halves(np.full(len(Y), -1), objectives)
        if len(set(side.tolist())) < 2 or np.diff([-1.0, *objectives])[-1] < 1e-6 * len(Y):
            break
    return Halves(side, objectives)


def costs(side: NDArray[np.int64], weight: NDArray[np.float64], cost: float) -> NDArray[np.float64]:
    """(n_rows,) what each row's loss counts: both sides the same together."""
    n_of_side = np.where(side > 0, np.count_nonzero(side > 0), np.count_nonzero(side < 0))
    return cost * len(side) / n_of_side * weight


def l1_objective(
    w: NDArray[np.float64], X: NDArray[np.float64], side: NDArray[np.int64], cost: NDArray[np.float64]
) -> float:
    """What the split "l1" minimises; the last column of X is the bias."""
    return float(np.abs(w).sum() + cost @ np.logaddexp(0.0, -side * (X @ w)))


def l2_objective(
    w: NDArray[np.float64], X: NDArray[np.float64], side: NDArray[np.int64], cost: NDArray[np.float64]
) -> float:
    """What the split "l2" minimises."""
    return float(0.5 * w @ w + cost @ np.maximum(0.0, 1.0 - side * (X @ w)) ** 2)


class Node(NamedTuple):
    """An inner node has children and columns with weights; a leaf has labels with shares, and its bias is the
    share of a label that all its rows have."""

    entries: Mapping[int, float]
    bias: float = 0.0
    children: Sequence[int] = ()


def leaf_gains(Y: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n_rows,) what one of a row's labels, in the first place, would add to its nDCG@5."""
    n_counted = np.clip(Y.sum(axis=1), 1, min(5, Y.shape[1]))
    return 1.0 / np.cumsum(discounts(5))[n_counted - 1]


def shares(Y: NDArray[np.bool_], weight: NDArray[np.float64], most: int) -> dict[int, float]:
    """The labels of a leaf's rows, the largest ones; ties to the lower label."""
    mean = (weight * leaf_gains(Y)) @ Y / weight.sum()
    kept = sorted(np.flatnonzero(mean).tolist(), key=lambda label: (-mean[label], label))[:most]
    return {label: float(mean[label]) for label in sorted(kept)}


def leaf_of(nodes: Sequence[Node], root: int, row: Mapping[int, float]) -> int:
    """The number of the leaf that a row comes to: the first child where its score is at least 0."""
    number = root
    while nodes[number].children:
        node = nodes[number]
        score = node.bias + sum(weight * row.get(column, 0.0) for column, weight in node.entries.items())
        number = node.children[0 if score >= 0.0 else 1]
    return number


def vote(nodes: Sequence[Node], roots: Sequence[int], row: Mapping[int, float]) -> dict[int, float]:
    """The share of each label over the leaves of all trees, of what these count together."""
    votes: dict[int, float] = {}
    leaves = [nodes[leaf_of(nodes, root, row)] for root in roots]
    for leaf in leaves:
        for label, share in leaf.entries.items():
            votes[label] = votes.get(label, 0.0) + share / sum(leaf.bias for leaf in leaves)
    return dict(sorted(votes.items()))


def rank(
    votes: Mapping[int, float],
    row: Mapping[int, float],
    weight: Sequence[float],
    means: Sequence[Mapping[int, float]],
    share: float,
    sharpness: float,
) -> dict[int, float]:
    """What PfastreXML ranks labels by: votes times weights, and how near the row is to the labels' mean rows.

    The row and the means have length 1, so that half the square of their distance is 1 - cosine.
    """
    ranked = {}
    for label, vote in votes.items():
        cosine = sum(value * row.get(column, 0.0) for column, value in means[label].items())
        near = 1.0 / (1.0 + np.exp(sharpness * (1.0 - cosine)))
        ranked[label] = float((vote * weight[label]) ** (1.0 - share) * near**share)
    return ranked
