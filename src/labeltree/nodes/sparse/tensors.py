"""Sparse parameters from a model file, checked: kernels take them on trust."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes.chunks import chunk_starts
from labeltree.nodes.tensors import Tensors, take_bias, take_finite
from labeltree.storage.tensors import take_tensor
from labeltree.tree import LabelTree


def take(tensors: Tensors, prefix: str, tree: LabelTree, n_features: int, link: str) -> SparseParameters:
    """Those of a tree's nodes. A weight of a feature that no row has does no harm."""
    n_chunks = len(chunk_starts(tree)) - 1
    parameters = SparseParameters(
        chunk_bucket=take_tensor(tensors, f"{prefix}.chunk_bucket", np.int64, (n_chunks + 1,)),
        bucket=take_tensor(tensors, f"{prefix}.bucket", np.int32, (None, 2)),
        chunk_row=take_tensor(tensors, f"{prefix}.chunk_row", np.int64, (n_chunks + 1,)),
        feature=take_tensor(tensors, f"{prefix}.feature", np.int32),
        length=take_tensor(tensors, f"{prefix}.length", np.uint8),
        chunk_entry=take_tensor(tensors, f"{prefix}.chunk_entry", np.int64, (n_chunks + 1,)),
        entry=take_tensor(tensors, f"{prefix}.entry", np.uint16),
        scale=take_finite(tensors, f"{prefix}.scale", tree.n_nodes),
        bias=take_bias(tensors, prefix, tree.n_nodes, link),
        calibration=take_finite(tensors, f"{prefix}.calibration", 3),
    )
    _check_chunks(parameters, prefix)
    if np.any(np.isinf(parameters.bias) & (parameters.scale != 0.0)):
        raise CorruptedModelError(f"{prefix}.scale is not 0 at a node of infinite bias")
    return parameters


def _check_chunks(parameters: SparseParameters, prefix: str) -> None:
    """Every place that a search may look at must exist."""
    from labeltree.kernels.check import buckets_fit

    chunk_bucket, bucket, chunk_row, feature, length, chunk_entry, entry, _, _, calibration = parameters
    _check_pointers(f"{prefix}.chunk_bucket", chunk_bucket, len(bucket))
    _check_pointers(f"{prefix}.chunk_row", chunk_row, len(feature))
    _check_pointers(f"{prefix}.chunk_entry", chunk_entry, len(entry))
    if len(length) != len(feature):
        raise CorruptedModelError(f"{prefix}.length has {len(length)} rows instead of {len(feature)}")
    if calibration[:2].min() <= 0.0:
        raise CorruptedModelError(f"{prefix}.calibration has the factor {calibration[:2].min()}; not above 0")
    if not buckets_fit(chunk_bucket, bucket, chunk_row, length, chunk_entry, len(entry)):
        raise CorruptedModelError(f"{prefix}.bucket does not fit the rows and entries of its chunks")


def _check_pointers(name: str, indptr: NDArray[np.int64], n: int) -> None:
    # compared, not subtracted: a difference of two huge numbers could wrap around to a positive one
    if indptr[0] != 0 or indptr[-1] != n or np.any(indptr[1:] < indptr[:-1]):
        raise CorruptedModelError(f"{name} does not rise from 0 to {n}")
