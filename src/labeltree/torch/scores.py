"""Scores of the visited nodes only, and their gradients: a product of matrices at the places of a pattern.

No weights are gathered or copied: what a step costs is the pairs of rows and nodes, not the labels.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from torch import Tensor

from labeltree.torch.visits import Pattern


def pair_scores(h: Tensor, weight: Tensor, bias: Tensor, pattern: Pattern, sparse: bool) -> Tensor:
    """(n_pairs,) w·h + b of each pair. Gradients of weight and bias are sparse tensors if ``sparse``."""
    on_device = Pattern(*(torch.from_numpy(array).to(h.device) for array in pattern))
    return _PairScores.apply(h, weight, bias, on_device, sparse)


class _PairScores(torch.autograd.Function):
    """``pattern`` is a :class:`Pattern` of tensors."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, pattern: Any, sparse: bool) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.pattern, ctx.sparse = pattern, sparse
        places = _matrix(pattern.indptr, pattern.node, bias[pattern.node], (len(h), len(weight)))
        return torch.sparse.sampled_addmm(places, h, weight.t()).values()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (h, weight), pattern = ctx.saved_tensors, ctx.pattern
        gradient = gradient.contiguous()
        needs_h, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        of_h = of_weight = of_bias = None
        if needs_h:
            of_pairs = _matrix(pattern.indptr, pattern.node, gradient, (len(h), len(weight)))
            of_h = torch.sparse.mm(of_pairs, weight)
        if needs_weight or needs_bias:
            size = len(pattern.visited), len(h)
            row, values = pattern.row[pattern.by_node], gradient[pattern.by_node]
            of_pairs = _matrix(pattern.visited_indptr, row, values, size)
            if needs_weight:
                of_weight = _placed(torch.sparse.mm(of_pairs, h), weight, ctx)
            if needs_bias:
                ones = torch.ones_like(h[:, :1])
                of_bias = _placed(torch.sparse.mm(of_pairs, ones).squeeze(1), weight[:, 0], ctx)
        return of_h, of_weight, of_bias, None, None


def _placed(rows: Tensor, parameter: Tensor, ctx: Any) -> Tensor:
    """The gradient of a parameter of which only the visited rows have one."""
    if ctx.sparse:
        return torch.sparse_coo_tensor(
            ctx.pattern.visited[None], rows, parameter.shape, is_coalesced=True, check_invariants=False
        )
    return torch.zeros_like(parameter).index_copy_(0, ctx.pattern.visited, rows)


def _matrix(indptr: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    _hear_of_beta_state()
    return torch.sparse_csr_tensor(indptr, columns, values, size, check_invariants=False)


@functools.cache
def _hear_of_beta_state() -> None:
    """The first such matrix of a process warns of a state that nobody can do anything about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


def log_sum_exp(scores: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """(..., n_groups): log of the sum of exp over the last axis' entries of each group; -inf of none."""
    where = group.expand(scores.shape)
    empty = scores.new_full((*scores.shape[:-1], n_groups), -torch.inf)
    largest = empty.scatter_reduce(-1, where, scores.detach(), "amax")
    finite = torch.where(torch.isfinite(largest), largest, 0.0)
    sums = torch.zeros_like(empty).scatter_add(-1, where, torch.exp(scores - finite.gather(-1, where)))
    return finite + torch.log(sums)
