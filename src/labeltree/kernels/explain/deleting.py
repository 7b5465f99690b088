"""What a label's probability would be without some words of a text, from what was read to explain it.

The row is made anew of the places where its columns are, as a text without the words would make it. The nodes
of a path are scored by their weights. Of neighbours only those rows are known that are similar to the whole
text, and their similarities are not rounded again: their votes come out a little otherwise than in a search.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Matrix, borrow
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.search.answer import mapped
from labeltree.kernels.search.exact import map_logs
from labeltree.kernels.sorting import select_largest
from labeltree.kernels.text.rows import normalize_row, scale_row, tf_of_count


class Columns(NamedTuple):
    """What a text may have: distinct columns, rising, and what makes their weights of counts."""

    idf: NDArray[np.float32]  # (n_columns,)
    tf: int
    norm: int
    block_end: NDArray[np.int64]  # (n_blocks,) among these columns
    block_weight: NDArray[np.float32]
    block_most: NDArray[np.int64]


class Occurrences(NamedTuple):
    """Where these are."""

    column: NDArray[np.int64]  # (n_places,) its number among the columns
    first_word: NDArray[np.int64]
    n_words: NDArray[np.int64]  # negative of pairs, once those between them are deleted
    name: NDArray[np.int64]  # (n_words,) which word stands there: equal words are deleted together


class Paths(NamedTuple):
    """The nodes above a label in all trees."""

    weights: Matrix[np.float32]  # (n_nodes, n_columns)
    bias: NDArray[np.float32]
    end: NDArray[np.int64]  # (n_trees,) where the nodes of each tree end
    map: Matrix[np.float64]  # (n_trees, 3) of a path's probability
    part: NDArray[np.float64]  # (n_trees,) of the average


class Voters(NamedTuple):
    """Training rows that are similar to the whole text, or none."""

    shared: Matrix[np.int32]  # (n_words with a column, n_rows)
    has_label: NDArray[np.bool_]
    weight: NDArray[np.float32]
    n_voters: int  # that are counted, the most similar ones
    power: int
    part: float


@kernel
def distinct_columns(place_column, out_columns, out_number):
    """The distinct columns of places, rising, and the number of each place's column; returns how many."""
    ordered = np.sort(place_column)
    n = 0
    for k in range(len(ordered)):
        if k == 0 or ordered[k] != ordered[k - 1]:
            out_columns[n] = ordered[k]
            n += 1
    for k in range(len(place_column)):
        out_number[k] = np.searchsorted(out_columns[:n], place_column[k])
    return n


class _State(NamedTuple):
    """What is known of the text without the words that are gone."""

    is_there: NDArray[np.bool_]  # (n_places,)
    counts: NDArray[np.int64]  # (n_columns,) how often each is in it
    values: NDArray[np.float32]  # (n_columns,) TF times IDF
    sums: NDArray[np.int32]  # (n_rows,) similarities
    tried: NDArray[np.float32]  # as values, and ...
    similar: NDArray[np.int32]  # ... as sums, without one more word
    votes: NDArray[np.float32]  # (n_rows,)
    places: NDArray[np.int64]  # that each word has to do with, one word after another, ...
    start: NDArray[np.int64]  # (n_names + 1,) ... and where those of a word start


@kernel
def delete_words(
    columns, places, paths, voters, map, tried, is_gone, n, out_words, out_lowest, out_estimates
):
    """Delete up to n of the tried words, each time that without which the label is the least probable.

    ``is_gone`` (n_names,) says which words are deleted already. Fills the places among ``tried`` of the words
    and the probabilities without them, and ``out_estimates`` (n_tried,) with those of the last round. Ends
    where none lowers it. Returns how many were found. As :func:`labeltree.reference.explain.delete_words`.
    """
    # What is handed on is owned here, to the end.
    text, state = (columns, places, paths, voters), _make_state(columns, places, voters, is_gone)
    return _delete_one_by_one(text, state, map, tried, is_gone, n, out_words, out_lowest, out_estimates)


@inlined
def _delete_one_by_one(text, state, map, tried, is_gone, n, out_words, out_lowest, out_estimates):
    columns, places, paths, voters = borrow(text[0]), borrow(text[1]), borrow(text[2]), borrow(text[3])
    state = borrow(state)
    lowest = _probability(columns, paths, voters, map, state, state.values.copy(), state.sums)
    for found in range(n):
        best = -1
        for t in range(len(tried)):
            out_estimates[t] = np.inf
            if not is_gone[tried[t]]:
                out_estimates[t] = _without(columns, places, paths, voters, map, state, is_gone, tried[t])
            if out_estimates[t] < lowest:
                best, lowest = t, out_estimates[t]
        if best < 0:
            return found
        _delete(columns, places, voters, state, is_gone, tried[best])
        out_words[found], out_lowest[found] = best, lowest
    return n


@inlined
def _make_state(columns, places, voters, is_gone):
    n_columns, n_rows, n_names = len(columns.idf), voters.shared.shape[1], len(is_gone)
    state = _State(
        np.empty(len(places.column), np.bool_), np.zeros(n_columns, np.int64),
        np.empty(n_columns, np.float32), np.zeros(n_rows, np.int32), np.empty(n_columns, np.float32),
        np.empty(n_rows, np.int32), np.empty(n_rows, np.float32),
        np.empty(np.abs(places.n_words).sum() + 1, np.int64), np.zeros(n_names + 1, np.int64),
    )  # fmt: skip
    _list_by_words(places, state.places, state.start)
    for k in range(len(places.column)):
        state.is_there[k] = _is_there(places, k, is_gone)
        state.counts[places.column[k]] += state.is_there[k]
    for c in range(n_columns):
        state.values[c] = _value_of(columns, c, state.counts[c])
    for c in range(len(voters.shared)):
        if state.counts[c] > 0:
            for k in range(n_rows):
                state.sums[k] += voters.shared[c, k]
    return state


@inlined
def _list_by_words(places, out_places, out_start):
    """The places that a word has to do with: those that it is in, or that are pairs without it."""
    first_word, n_words, name = places.first_word, places.n_words, places.name
    for k in range(len(first_word)):
        for word in range(first_word[k], first_word[k] + abs(n_words[k])):
            out_start[name[word] + 1] += not _is_before(name, first_word[k], word)
    for word in range(1, len(out_start)):
        out_start[word] += out_start[word - 1]
    n = out_start[:-1].copy()
    for k in range(len(first_word)):
        for word in range(first_word[k], first_word[k] + abs(n_words[k])):
            if not _is_before(name, first_word[k], word):
                out_places[n[name[word]]] = k
                n[name[word]] += 1


@inlined
def _is_before(name, first, word):
    """Whether a word stands between the first and here as well."""
    is_before = False
    for other in range(first, word):
        is_before |= name[other] == name[word]
    return is_before


@inlined
def _is_there(places, k, is_gone):
    """Whether the feature of a place is left; a pair of distant words is, if those between are gone."""
    first_word, n_words, name = places.first_word, places.n_words, places.name
    first, last = first_word[k], first_word[k] + abs(n_words[k]) - 1
    is_there = not is_gone[name[first]] and not is_gone[name[last]]
    if n_words[k] < 0:
        for word in range(first + 1, last):
            is_there &= is_gone[name[word]]
    return is_there


@inlined
def _value_of(columns, c, count):
    if count == 0:
        return np.float32(0.0)
    return np.float32(tf_of_count(np.float64(count), columns.tf) * columns.idf[c])


@inlined
def _change_counts(places, state, is_gone, word, sign):
    """By what is there no more, or only now, once a word is gone too; times a sign, so as to take it back."""
    counts, column, of_words, is_there = state.counts, places.column, state.places, state.is_there
    n_words = places.n_words
    for k in range(state.start[word], state.start[word + 1]):
        place = of_words[k]
        if is_there[place]:  # and is no more: the word is one of its ends
            counts[column[place]] -= sign
        elif n_words[place] < 0:
            is_gone[word] = True
            counts[column[place]] += sign * _is_there(places, place, is_gone)
            is_gone[word] = False


@inlined
def _without(columns, places, paths, voters, map, state, is_gone, word):
    """The probability without one more word."""
    values, tried, similar, shared = state.values, state.tried, state.similar, voters.shared
    _change_counts(places, state, is_gone, word, 1)
    tried[:] = values
    for k in range(state.start[word], state.start[word + 1]):
        c = places.column[state.places[k]]
        tried[c] = _value_of(columns, c, state.counts[c])
    _change_counts(places, state, is_gone, word, -1)
    similar[:] = state.sums
    for c in range(len(shared)):
        if values[c] > 0.0 and tried[c] == 0.0:
            for k in range(len(similar)):
                similar[k] -= shared[c, k]
    return _probability(columns, paths, voters, map, state, tried, similar)


@inlined
def _delete(columns, places, voters, state, is_gone, word):
    """For good."""
    _change_counts(places, state, is_gone, word, 1)
    is_gone[word] = True
    values, sums, shared = state.values, state.sums, voters.shared
    for k in range(state.start[word], state.start[word + 1]):
        place = state.places[k]
        state.is_there[place] = _is_there(places, place, is_gone)
    for c in range(len(values)):
        value = _value_of(columns, c, state.counts[c])
        if c < len(shared) and values[c] > 0.0 and value == 0.0:
            for k in range(len(sums)):
                sums[k] -= shared[c, k]
        values[c] = value


@inlined
def _probability(columns, paths, voters, map, state, values, similar):
    """Of the label, for a row of these values, which are scaled."""
    _scale_row(columns, values)
    average = _score_paths(paths, values)
    if len(similar) > 0:
        average += voters.part * _count_votes(voters, similar, state.votes)
    return np.float64(mapped(map, min(average, 1.0)))


@inlined
def _scale_row(columns, values):
    """As :func:`labeltree.kernels.text.rows.make_rows`; what a block does not keep becomes 0."""
    _, _, norm, block_end, block_weight, block_most = columns
    bits, first = values.view(np.int32), 0
    for b in range(len(block_end)):
        end, n_kept = block_end[b], 0
        if 0 < block_most[b] < end - first:
            for c in range(first, end):
                n_kept += bits[c] > 0
            if n_kept > block_most[b]:
                limit, n_equal = select_largest(bits[first:end], block_most[b])
                for c in range(first, end):
                    n_equal -= bits[c] == limit
                    values[c] = 0.0 if bits[c] < limit or (bits[c] == limit and n_equal < 0) else values[c]
        normalize_row(values, first, end, norm)
        scale_row(values, first, end, block_weight[b])
        first = end
    if len(block_end) > 1:
        normalize_row(values, 0, len(values), norm)


@inlined
def _score_paths(paths, values):
    """What the trees say, each with its part of the average."""
    weights, bias, end, map, part = paths
    average, node = 0.0, 0
    for t in range(len(end)):
        inverse = 1.0
        while node < end[t]:
            score = np.float32(0.0)
            for c in range(len(values)):
                score += weights[node, c] * values[c]
            inverse *= 1.0 + math.exp(-(np.float64(score) + bias[node]))
            node += 1
        if inverse == 1.0:
            average += part[t]
        elif inverse < math.inf:
            odds = map_logs(map[t], -math.log(inverse), math.log1p(-1.0 / inverse))
            average += part[t] / (1.0 + math.exp(-odds))
    return average


@inlined
def _count_votes(voters, similar, votes):
    """The part of the votes for the label. What similarities are scaled by does not matter."""
    _, has_label, weight, n_voters, power, _ = voters
    limit, largest = np.int32(1), np.int32(0)
    for k in range(len(similar)):
        largest = max(largest, similar[k])
    if largest == 0:
        return 0.0
    if len(similar) > n_voters:
        limit = max(limit, select_largest(similar, n_voters)[0])
    scale = np.float32(1.0) / np.float32(largest)
    for k in range(len(similar)):
        votes[k] = weight[k] if similar[k] >= limit else np.float32(0.0)
    for _ in range(power):
        for k in range(len(similar)):
            votes[k] *= np.float32(similar[k]) * scale
    total, own = np.float32(0.0), np.float32(0.0)
    for k in range(len(similar)):
        total += votes[k]
        own += votes[k] if has_label[k] else np.float32(0.0)
    return np.float64(own) / total
