"""The best labels of a row so far, and its votes, in a search of several trees."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.search.exact import from_odds, map_logs
from labeltree.kernels.search.heap import keep_best, pop

HIGHER = 1 + 1e-5  # bounds are a bit high, as sums and logarithms are rounded
N_SMOOTH = 3  # numbers of a map before those that bend it
LABELS, VOTES = range(2)  # of Answer.size


class Answer(NamedTuple):
    """A row's best labels so far, a heap as :func:`.heap.keep_best` makes it; and a heap of its votes."""

    average: NDArray[np.float32]  # (k,)
    label: NDArray[np.int32]
    vote: NDArray[np.float64]  # (most votes of a row,)
    place: NDArray[np.int64]  # of the vote among those of all rows
    size: NDArray[np.int64]  # (2,) labels, votes


@inlined
def make_answer(k, n_votes):
    return Answer(
        np.empty(k, np.float32), np.empty(k, np.int32), np.empty(n_votes, np.float64),
        np.empty(n_votes, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


@inlined
def worst_of(answer, least):
    """The average that a label must reach."""
    return -answer.average[0] if answer.size[LABELS] == len(answer.label) else least


@inlined
def offer(answer, evidence, total, least, label):
    """To the best labels; impossible ones come later."""
    average = np.float32(evidence / total)
    if average > 0.0 and average >= least:
        found, k = answer.size[LABELS], len(answer.label)
        answer.size[LABELS] = keep_best(answer.average, answer.label, found, k, average, label)


@inlined
def largest_vote(answer):
    return answer.vote[0] if answer.size[VOTES] > 0 else 0.0


@inlined
def add_impossible(answer, leaf_of_label, n_children):
    """Where there are places left: labels of probability 0, the lowest first, that no mask leaves out."""
    n_found, k = answer.size[LABELS], len(answer.label)
    if n_found == k:
        return
    taken = np.sort(-answer.label[:n_found])
    found, place = n_found, 0
    for label in range(len(leaf_of_label)):
        if place < n_found and taken[place] == label:
            place += 1
        elif n_children[leaf_of_label[label]] < 0:
            continue
        elif found < k:
            found = keep_best(answer.average, answer.label, found, k, np.float32(0.0), label)
        else:
            break
    answer.size[LABELS] = found


@inlined
def write_answer(answer, map, threshold, out_ids, out_probabilities):
    """Best first; -1 and 0 where there are no more labels of at least the threshold."""
    out_ids[:], out_probabilities[:] = -1, 0.0
    found = answer.size[LABELS]
    for place in range(found - 1, -1, -1):
        probability = mapped(map, -answer.average[0])
        if probability >= threshold:
            out_ids[place], out_probabilities[place] = -answer.label[0], probability
        found = pop(answer.average, answer.label, found)


@inlined
def mapped(map, average):
    """The probability of a label whose evidence has this average."""
    if len(map) == 0:
        return np.float32(average)
    p = np.float64(average)
    return from_odds(_bent(map, map_logs(map, math.log(p), math.log1p(-p))))


@inlined
def _bent(map, log_odds):
    """What log-odds become: at whole numbers around 0 what the map says, between them on a line, beyond them
    as far off as the last ones. Maps of three numbers bend nothing."""
    n = len(map) - N_SMOOTH
    if n == 0:
        return log_odds
    last = 0.5 * (n - 1)
    if log_odds <= -last:
        return log_odds + (map[N_SMOOTH] + last)
    if log_odds >= last:
        return log_odds + (map[N_SMOOTH + n - 1] - last)
    place = min(int(log_odds + last), n - 2)  # the sum may be rounded up
    low, high = map[N_SMOOTH + place], map[N_SMOOTH + place + 1]
    return low + (high - low) * (log_odds + last - place)


@kernel
def map_averages(map, averages, out_probabilities):
    """:func:`mapped` of each: what is computed here and in a search has the same bits."""
    for k in range(len(averages)):
        out_probabilities[k] = mapped(map, averages[k])


@inlined
def least_average(map, threshold):
    """No label of a lower average reaches the threshold; a bit low. By halving: the map has no inverse."""
    if threshold <= 0.0:
        return np.float32(0.0)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if mapped(map, middle) < threshold:
            low = middle
        else:
            high = middle
    return np.float32(low / HIGHER)


@kernel
def fill_least_average(map, threshold, out_average):
    """``out_average[0]`` = :func:`least_average`, for searches that are not kernels."""
    out_average[0] = least_average(map, threshold)


@kernel
def best_of_votes(map, indptr, ids, votes, total, labels, left_out, k, threshold, out_ids, out_probabilities):
    """The best k labels of each row by its votes alone: others are impossible, and come last.

    ``labels`` are all numbers of labels, ``left_out`` is negative for those that may not be given.
    """
    k = min(k, len(labels))
    least = least_average(map, threshold)
    answer = make_answer(k, 0)
    for i in range(len(indptr) - 1):
        answer.size[LABELS] = 0
        for e in range(indptr[i], indptr[i + 1]):
            offer(answer, votes[e], total, least, ids[e])
        if threshold <= 0.0:
            add_impossible(answer, labels, left_out)
        write_answer(answer, map, threshold, out_ids[i], out_probabilities[i])
