"""The searches as kernels: made for a kind of nodes and a link, whose code they hold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from labeltree.kernels.addresses import frozen
from labeltree.kernels.jit import kernel_of
from labeltree.kernels.search.beam import search_beam
from labeltree.kernels.search.combined import search_combined, trees_at
from labeltree.kernels.search.exact import (
    score_labels,
    search_above,
    search_prepared,
    search_row,
    search_topk,
)
from labeltree.kernels.search.weighted import Weights, search_weighted
from labeltree.kernels.text.short import row_at, transform_text


class Kernels(NamedTuple):
    """The searches of one kind of nodes with one link; all take a table of the nodes' arrays first."""

    topk: Callable[..., None]
    topk_row: Callable[..., int]
    topk_text: Callable[..., bool]
    beam: Callable[..., None]
    above: Callable[..., int]
    labels: Callable[..., None]
    combined: Callable[..., None]
    weighted: Callable[..., None]


@functools.lru_cache(None, typed=True)  # links without fields are equal, but for their types
def make_kernels(kind: str, nodes_at: Callable[..., Any], link: Any) -> Kernels:
    """Each is compiled when it is first called.

    ``nodes_at(table, indices, values)`` gives them the nodes, which may hold the rows that are searched for.
    """

    @kernel_of(kind, link)
    def topk(table, indptr, indices, values, k, threshold, budget, out_ids, out_probabilities, out_exact):
        """:func:`.exact.search_topk`."""
        nodes, rows = nodes_at(table, indices, values), (indptr, indices, values)
        search_topk(nodes, link, *rows, k, threshold, budget, out_ids, out_probabilities, out_exact)

    @kernel_of(kind, link)
    def topk_row(
        table, indices, values, n, norm, k, threshold, budget, out_ids, out_probabilities, out_exact
    ):
        """:func:`.exact.search_row`."""
        nodes = nodes_at(table, frozen(indices), frozen(values))
        return search_row(
            nodes, link, indices, values, n, norm, k, threshold, budget, out_ids, out_probabilities, out_exact
        )

    @kernel_of(kind, link)
    def topk_text(table, text_table, text, k, threshold, budget, out_ids, out_probabilities, out_exact):
        """:func:`.exact.search_prepared` of a short text."""
        n = transform_text(text_table, frozen(text))
        indices, values = row_at(text_table)
        nodes = nodes_at(table, frozen(indices), frozen(values))
        return search_prepared(
            nodes, link, indices, values, n, k, threshold, budget, out_ids, out_probabilities, out_exact
        )

    @kernel_of(kind, link)
    def beam(table, indptr, indices, values, k, beam, threshold, out_ids, out_probabilities, out_exact):
        """:func:`.beam.search_beam`."""
        nodes, rows = nodes_at(table, indices, values), (indptr, indices, values)
        search_beam(nodes, link, *rows, k, beam, threshold, out_ids, out_probabilities, out_exact)

    @kernel_of(kind, link)
    def above(table, indptr, indices, values, row, threshold, out_indptr, out_ids, out_probabilities):
        """:func:`.exact.search_above`."""
        nodes = nodes_at(table, indices, values)
        rows = indptr, indices, values
        return search_above(nodes, link, *rows, row, threshold, out_indptr, out_ids, out_probabilities)

    @kernel_of(kind, link)
    def labels(table, indptr, indices, values, label_indptr, labels, out_probabilities):
        """:func:`.exact.score_labels`."""
        nodes = nodes_at(table, indices, values)
        score_labels(nodes, link, indptr, indices, values, label_indptr, labels, out_probabilities)

    @kernel_of(kind, link)
    def combined(
        table, indptr, indices, values, vote_indptr, vote_ids, votes, k, threshold, budget,
        out_ids, out_probabilities, out_exact,
    ):  # fmt: skip
        """:func:`.combined.search_combined`, of trees in a table."""
        trees, rows, lists = trees_at(table, ()), (indptr, indices, values), (vote_indptr, vote_ids, votes)
        nodes = nodes_at(trees.tables, indices, values)  # of the first
        search_combined(
            nodes, trees, link, rows, lists, k, threshold, budget, out_ids, out_probabilities, out_exact
        )

    @kernel_of(kind, link)
    def weighted(
        table, indptr, indices, values, vote_indptr, vote_ids, votes, weight, summand, bounds, share, total,
        map, lowest, least, is_filled, k, budget, out_ids, out_values, out_probabilities, out_exact,
    ):  # fmt: skip
        """:func:`.weighted.search_weighted`."""
        nodes, rows = nodes_at(table, indices, values), (indptr, indices, values)
        weights = Weights(weight, summand, bounds, share, total, map, lowest, least, is_filled)
        lists, out = (vote_indptr, vote_ids, votes), (out_ids, out_values, out_probabilities, out_exact)
        search_weighted(nodes, link, rows, lists, weights, k, budget, *out)

    return Kernels(topk, topk_row, topk_text, beam, above, labels, combined, weighted)
