"""Shares of a row's entries as shares of the words that these are in."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel


@inlined
def entry_of(columns, column):
    """Where a column is among the sorted ones of a row, or -1."""
    place = np.searchsorted(columns, column)
    return place if place < len(columns) and columns[place] == column else -1


@kernel
def share_words(columns, shares, place_column, first_word, n_words, out_words):
    """Share out each entry evenly among the places where it is, and there among its words.

    Places of less than 0 words are none yet. Returns what belongs to entries that are nowhere in the text. As
    :func:`labeltree.reference.explain.share_words`.
    """
    entry, n_places = np.empty(len(place_column), np.int64), np.zeros(len(columns), np.int64)
    for k in range(len(place_column)):
        entry[k] = entry_of(columns, place_column[k]) if n_words[k] > 0 else -1
        if entry[k] >= 0:
            n_places[entry[k]] += 1
    out_words[:] = 0.0
    for k in range(len(entry)):
        if entry[k] >= 0:
            part = shares[entry[k]] / (n_places[entry[k]] * n_words[k])
            for word in range(first_word[k], first_word[k] + n_words[k]):
                out_words[word] += part
    beside = 0.0
    for e in range(len(columns)):
        if n_places[e] == 0:
            beside += shares[e]
    return beside
