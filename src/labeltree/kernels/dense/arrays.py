"""The arrays that the kernels of dense training work on, grouped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Examples(NamedTuple):
    """Training rows and their labels (CSR), and the weight of each example."""

    x_indptr: NDArray[np.int64]
    x_indices: NDArray[np.int32]
    x_values: NDArray[np.float32]
    y_indptr: NDArray[np.int64]
    y_indices: NDArray[np.int32]
    weight: NDArray[np.float32]


class Chunks(NamedTuple):
    """The tree as training sees it: siblings in chunks. Chunk 0 is the root's own classifier.

    A parent of very many children has several chunks, so that they are several tasks.
    """

    parent: NDArray[np.int32]  # (n_nodes,), -1 at the root
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    start: NDArray[np.int32]  # (n_chunks + 1,) chunk b holds the nodes start[b] .. start[b + 1] - 1
    first: NDArray[np.int32]  # (n_nodes,) the first chunk of a node's children, -1 at leaves
    last: NDArray[np.int32]  # (n_nodes,) and the last one, -2 at leaves
    is_constant: NDArray[np.bool_]  # (n_chunks,) nothing to learn: no score changes any probability
    link: Any  # one of kernels/links.py: kernels are compiled for each type
    picks_label: bool  # examples are of one label each, picked at random
    seed: int  # of these picks


class Parameters(NamedTuple):
    """What is learned, each with the sum of squared gradients per row (Adagrad; mean over the row)."""

    embedding: NDArray[np.float32]  # (n_features, dim)
    weights: NDArray[np.float32]  # (n_nodes, dim)
    bias: NDArray[np.float32]  # (n_nodes,), +-inf where a node is constant
    embedding_squares: NDArray[np.float32]  # (n_features,)
    weight_squares: NDArray[np.float32]  # (n_nodes,)
    bias_squares: NDArray[np.float32]  # (n_nodes,)


class Step(NamedTuple):
    """How far to go. A row moves by rate * gradient / (squares + smallest)**power; power 0 is plain SGD."""

    first_rate: float  # at the first batch of the call
    last_rate: float  # after its last batch
    embedding_rate: float  # relative to the rate of the nodes
    embedding_power: float
    node_power: float
    smallest_squares: float
    l2: float
    batch_size: int


class Plan(NamedTuple):
    """Scratch: who visits which chunk, and which example uses which feature, in one batch.

    A visit is an example at a chunk, all of whose nodes it trains.
    """

    positive: NDArray[np.int32]  # (capacity,) positive nodes of all examples, sorted within each
    node_stamp: NDArray[np.int64]  # (n_nodes,) last example that reached the node
    chunk_slot: NDArray[np.int32]  # (n_chunks,) scratch, -1 between batches
    visit_chunk: NDArray[np.int32]  # (capacity,) visits by example
    visit_example: NDArray[np.int32]
    visit_positive: NDArray[np.int32]  # (capacity, 2) where the visit's positive nodes start and end
    example_visit: NDArray[np.int32]  # (batch_size + 1,) example e's visits start here
    by_chunk: NDArray[np.int32]  # (capacity,) visits grouped by chunk
    chunk: NDArray[np.int32]  # (capacity,) touched chunks
    chunk_visit: NDArray[np.int32]  # (capacity + 1,) touched chunk t's visits start here in by_chunk
    feature_slot: NDArray[np.int32]  # (n_features,) scratch, -1 between batches
    feature: NDArray[np.int32]  # (max_entries,) touched features
    feature_entry: NDArray[np.int32]  # (max_entries + 1,) touched feature t's entries start here
    entry_example: NDArray[np.int32]  # (max_entries,)
    entry_value: NDArray[np.float32]  # (max_entries,)
    sizes: NDArray[np.int64]  # (3,) touched chunks, visits, touched features


class Buffers(NamedTuple):
    """Scratch: hidden vectors and gradients of one batch."""

    hidden: NDArray[np.float32]  # (batch_size, dim)
    example_gradient: NDArray[np.float32]  # (batch_size, dim)
    nothing: NDArray[np.float32]  # (batch_size,) 0, or NaN where an example's vectors are no longer finite
    visit_gradient: NDArray[np.float32]  # (capacity, dim)
    visit_loss: NDArray[np.float64]  # (capacity,)
    sync: NDArray[
        np.int64
    ]  # (112,) barrier count, generation, four task counters, abandoned; a cache line each


class Scratch(NamedTuple):
    """One thread's own memory."""

    gradients: NDArray[np.float32]  # (max_chunk * batch_size,), visitors of a child together
    visitors: NDArray[np.int32]  # (batch_size,)
    gradient: NDArray[np.float32]  # (1, dim) of one row
    scores: NDArray[np.float32]  # (max_chunk,)
