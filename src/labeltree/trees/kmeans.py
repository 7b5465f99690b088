"""Spherical k-means over label profiles, from the root down: similar labels share a subtree."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.pairs import guess_pairs
from labeltree.data.rows import SparseRows, TrainingRows
from labeltree.errors import ParameterError, TreeError
from labeltree.parallel import Pool, row_slices
from labeltree.storage.space import Space
from labeltree.tree import LabelTree, Shape
from labeltree.trees.builder import TreeBuilder, TreeInput
from labeltree.trees.profiles import ENTRIES_PER_LABEL, label_profiles, strongest_entries
from labeltree.trees.shapes import check_arity

# Groups with more entries are split step by step, their rows scored on all threads; the others are tasks of
# their own. It must not depend on the number of threads: the two ways may differ in the last bit.
_ENTRIES_OF_LARGE_GROUP = 1 << 21


_Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # indptr, indices, values


class Split(NamedTuple):
    """How a group of labels is split."""

    n_parts: int
    balanced: bool
    eps: float


def build_kmeans(
    profiles: SparseRows,
    arity: int,
    max_leaves: int,
    eps: float = 0.001,
    seed: int = 1,
    pool: Pool | None = None,
    balanced: bool = True,
) -> LabelTree:
    """Split groups of more than ``max_leaves`` labels into ``arity`` parts whose sizes differ by at most one.

    Each part starts with a random label's profile and takes the labels that fit it best, as far as there is
    room; then with the mean of what it took, until the labels' mean similarity to their part gains less than
    ``eps``. Profiles need not be of length 1.

    Not balanced (Bonsai), only that first start is; afterwards each label goes to its most similar part.
    Parts that lose all their labels vanish. Where one would keep more than nine tenths of the group (equal
    profiles, a few outliers) the group is split evenly after all, so that m labels need at most
    log(m) / log(10/9) levels.
    """
    arity, pool = check_arity(arity), pool or Pool(1)
    if profiles.n_rows < 1:
        raise TreeError("a tree needs at least one label, but there are no profiles")
    if max_leaves < 1:
        raise ParameterError(f"max_leaves must be at least 1, but is {max_leaves}")
    profiles = strongest_entries(profiles, ENTRIES_PER_LABEL)
    members = np.arange(profiles.n_rows, dtype=np.int32)  # labels, those of one group together
    starts, sizes = np.zeros(1, np.int64), np.full(1, profiles.n_rows)  # one level's groups: its nodes
    states = np.full(1, seed, np.uint64)
    how = Split(arity, balanced, eps)
    parent, label = [np.full(1, -1)], []
    n_nodes = 0
    while len(starts):
        label.append(np.where(sizes == 1, members[starts], -1))
        split = sizes > max(max_leaves, arity)
        part_sizes = _split_level(profiles, members, starts[split], sizes[split], states[split], how, pool)
        n_children = np.where(sizes == 1, 0, sizes)  # leaves, unless the group is split
        n_children[split] = np.count_nonzero(part_sizes, axis=1)
        first_child = np.cumsum(n_children) - n_children
        child_sizes = np.ones(int(n_children.sum()), np.int64)
        child_sizes[np.repeat(split, n_children)] = part_sizes[part_sizes > 0]
        parent.append(np.repeat(n_nodes + np.arange(len(starts)), n_children))
        n_nodes += len(starts)
        states = _child_states(states, n_children, first_child)
        # A group's children share out its members from its start on, in order.
        before = np.cumsum(child_sizes) - child_sizes
        inner = n_children > 0
        starts = before + np.repeat(starts[inner] - before[first_child[inner]], n_children[inner])
        sizes = child_sizes
    return LabelTree(np.concatenate(parent).astype(np.int32), np.concatenate(label).astype(np.int32))


def _child_states(
    states: NDArray[np.uint64], n_children: NDArray[np.int64], first_child: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """A random state for each child, from its parent's and its rank: a matter of place, not of order."""
    rank = np.arange(int(n_children.sum())) - np.repeat(first_child, n_children)
    mixed = np.repeat(states, n_children) * np.uint64(0xD1342543DE82EF95) + (rank + 1).astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(31))


def _split_level(
    profiles: SparseRows,
    members: NDArray[np.int32],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    states: NDArray[np.uint64],
    how: Split,
    pool: Pool,
) -> NDArray[np.int64]:
    """Reorder the members of each group by part; returns the parts' sizes (n_groups, n_parts)."""
    from labeltree.kernels.trees.clusters import split_groups

    part_sizes = np.empty((len(starts), how.n_parts), np.int64)
    if len(starts) == 0:
        return part_sizes
    stops = starts + sizes
    sums = np.concatenate([[0], np.cumsum(np.diff(profiles.indptr)[members])])
    n_entries = sums[stops] - sums[starts]
    for group in np.flatnonzero(n_entries > _ENTRIES_OF_LARGE_GROUP):
        group_members = members[starts[group] : stops[group]]
        split_large(profiles, group_members, states[group : group + 1], how, pool, part_sizes[group])

    def split_task(groups: NDArray[np.int64]) -> None:
        sizes_of_parts = np.empty((len(groups), how.n_parts), np.int64)
        split_groups(profiles, starts[groups], stops[groups], states[groups], *how, members, sizes_of_parts)
        part_sizes[groups] = sizes_of_parts

    small = np.flatnonzero(n_entries <= _ENTRIES_OF_LARGE_GROUP)
    pool.map(split_task, _tasks(small, n_entries[small], pool))
    return part_sizes


def _tasks(groups: NDArray[np.int64], n_entries: NDArray[np.int64], pool: Pool) -> list[NDArray[np.int64]]:
    """Neighbouring groups with about equally many entries; more tasks than threads balance the load."""
    n_tasks = 1 if pool.threads == 1 else 4 * pool.threads
    ends = np.cumsum(n_entries + 1)  # even a group without entries takes time
    edges = np.searchsorted(ends, ends.max(initial=0) * np.arange(n_tasks + 1) // n_tasks)
    return [groups[start:stop] for start, stop in pairwise([*edges[:-1], len(groups)]) if stop > start]


def split_large(
    profiles: SparseRows, members: NDArray[np.int32], state: NDArray[np.uint64], how: Split, pool: Pool,
    out_sizes: NDArray[np.int64],
) -> None:  # fmt: skip
    """What the kernel ``split_groups`` does with a group: the same steps, but scoring on all threads."""
    from labeltree.kernels.trees.clusters import is_lopsided, sort_members

    rows, n_features = _gather_group(profiles, members, pool.space)
    part = _split_in_steps(rows, n_features, state, how, pool)
    if not how.balanced and is_lopsided(part, how.n_parts):
        part = _split_in_steps(rows, n_features, state, how._replace(balanced=True), pool)
    sort_members(members, part, how.n_parts, out_sizes)


def _split_in_steps(
    rows: _Rows, n_features: int, state: NDArray[np.uint64], how: Split, pool: Pool
) -> NDArray[np.int32]:
    """What the kernel ``split_group`` does."""
    from labeltree.kernels.trees import clusters

    n_rows, n_columns = len(rows[0]) - 1, 1 if how.n_parts == 2 else how.n_parts
    space = pool.space
    sums = space.empty((n_features, how.n_parts), np.float32)
    centroids = space.empty((n_features, 1), np.float32) if how.n_parts == 2 else sums
    scale = np.empty(n_columns, np.float32)
    scores = space.empty((n_rows, n_columns), np.float32)
    part, new_part = np.full(n_rows, -1, np.int32), np.empty(n_rows, np.int32)

    def score(part_of_rows: slice) -> None:
        clusters.score_rows(*rows, centroids, scale, part_of_rows.start, part_of_rows.stop, scores)

    clusters.seed_sums(*rows, how.n_parts, state, sums)
    clusters.make_centroids(sums, centroids, scale)
    before = -1.0
    for iteration in range(clusters.MAX_ITERATIONS):
        pool.map(score, row_slices(n_rows, pool.threads))
        is_first = iteration == 0
        if is_first:
            sums[:] = 0.0  # the seeds'
        clusters.regroup_rows(*rows, scores, how.balanced or is_first, part, new_part, sums)
        similarity = clusters.make_centroids(sums, centroids, scale) / n_rows
        if similarity < before:
            break
        part, new_part = new_part, part
        if similarity < before + how.eps:
            break
        before = similarity
    return part


def _gather_group(profiles: SparseRows, members: NDArray[np.int32], space: Space) -> tuple[_Rows, int]:
    """The members' rows with features numbered anew, and how many features there are."""
    from labeltree.kernels.trees.clusters import gather_rows

    n_entries = int(np.diff(profiles.indptr)[members].sum())
    indptr = np.empty(len(members) + 1, np.int64)
    indices, values = space.empty(n_entries, np.int32), space.empty(n_entries, np.float32)
    local_of_feature = np.full(profiles.n_columns, -1, np.int32)
    features = np.empty(min(n_entries, profiles.n_columns), np.int32)
    n_features = gather_rows(profiles, members, local_of_feature, indptr, indices, values, features)
    return (indptr, indices, values), int(n_features)


class _KMeans(TreeBuilder):
    def prepare(self, given: TreeInput) -> SparseRows:
        X, Y, _ = given.rows
        return label_profiles(X, Y, given.pool, ENTRIES_PER_LABEL, given.config.profiles, given.parts)

    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        config = given.config
        tree = build_kmeans(
            prepared, config.arity, config.max_leaves, config.kmeans_eps, seed, given.pool, config.balanced
        )
        return tree.collapse(config.collapse)

    def warm_large(self, given: TreeInput) -> None:
        X, Y, _ = given.rows
        profiles = label_profiles(X, Y, given.pool, max_entries=2)
        members, state = np.arange(Y.n_labels, dtype=np.int32), np.ones(1, np.uint64)
        split_large(profiles, members, state, Split(3, False, 0.001), given.pool, np.empty(3, np.int64))

    def working_bytes(self, rows: TrainingRows, config: Config) -> int:
        X, Y, _ = rows
        return 2 * 8 * guess_pairs(X, Y)

    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        """All groups are split until none is too large."""
        n_groups = math.ceil(n_labels / config.max_leaves)
        n_levels = math.ceil(math.log(n_groups) / math.log(config.arity))
        n_inner = min(sum(config.arity**level for level in range(n_levels + 1)), n_labels)
        return Shape(n_inner, min(max(config.arity, config.max_leaves), n_labels), n_levels + 1)


KMEANS = _KMeans()
