"""Tasks in bundles: what is solved and kept at once, where training can go on after its end or is shared out.

A bundle is kept as arrays (a part of a work dir), and does not depend on who solved it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import pointers
from labeltree.kernels.sparse.arrays import Chunk
from labeltree.nodes.sparse.packing import PackedChunk
from labeltree.nodes.sparse.plan import Plan
from labeltree.nodes.sparse.tasks import Solved

MOST_BUNDLES = 256  # of a tree, about; a task that is larger than its share is one by itself
FEWEST_BUNDLES = 8  # about: so many workers share even a small tree
WORTH_A_BUNDLE = 4e7  # of a task's cost: about .2 s, where starting and keeping a bundle takes .02

_FIELDS = (*Chunk._fields, "bias")


def bundles_of(plan: Plan) -> list[NDArray[np.int64]]:
    """The numbers of tasks with anything to learn, heaviest first, in bundles of about the same cost."""
    order = np.argsort(-plan.cost, kind="stable")
    order = order[plan.cost[order] > 0]
    if not len(order):
        return []
    total = plan.cost.sum()
    before = np.cumsum(plan.cost[order]) - plan.cost[order]
    bundle = np.floor(before / total * np.clip(total / WORTH_A_BUNDLE, FEWEST_BUNDLES, MOST_BUNDLES))
    return np.split(order, np.flatnonzero(np.diff(bundle)) + 1)


def bundle_tensors(solved: Mapping[int, Solved]) -> dict[str, NDArray[Any]]:
    """Solved tasks by number, as arrays."""
    numbers = sorted(solved)
    tensors: dict[str, NDArray[Any]] = {"tasks": np.array(numbers, np.int64)}
    for part in Solved._fields:
        of_tasks = [getattr(solved[number], part) for number in numbers]
        chunks = [chunk for own in of_tasks for chunk in own]
        tensors[f"{part}.n_chunks"] = np.array([len(own) for own in of_tasks], np.int64)
        for field in _FIELDS:
            arrays = [_field(chunk, field) for chunk in chunks]
            tensors[f"{part}.{field}"] = np.concatenate(arrays)
            tensors[f"{part}.{field}.start"] = pointers([len(array) for array in arrays])
    return tensors


def solved_of_bundle(tensors: Mapping[str, NDArray[Any]]) -> Iterator[tuple[int, Solved]]:
    """What :func:`bundle_tensors` was made of, as views of the arrays."""
    both = [_tasks_of(tensors, part) for part in Solved._fields]
    for number, *own in zip(tensors["tasks"].tolist(), *both, strict=True):
        yield number, Solved(*own)


def _tasks_of(tensors: Mapping[str, NDArray[Any]], part: str) -> Iterator[list[PackedChunk]]:
    pieces = []
    for field in _FIELDS:
        array, start = tensors[f"{part}.{field}"], tensors[f"{part}.{field}.start"].tolist()
        pieces.append([array[a:b] for a, b in pairwise(start)])
    chunks = iter(zip(*pieces, strict=True))
    for n in tensors[f"{part}.n_chunks"].tolist():
        own = (next(chunks) for _ in range(n))
        yield [PackedChunk(Chunk(*fields[:-1]), fields[-1]) for fields in own]


def _field(chunk: PackedChunk, name: str) -> NDArray[Any]:
    return chunk.bias if name == "bias" else getattr(chunk.chunk, name)
