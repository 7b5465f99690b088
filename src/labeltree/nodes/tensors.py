"""Node parameters from a model file, checked: kernels take them on trust."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes import LINKS
from labeltree.nodes.dense.quantized import QuantizedParameters
from labeltree.nodes.sparse.tasks import chunk_starts
from labeltree.storage.tensors import take_tensor
from labeltree.tree import LabelTree

Tensors = Mapping[str, NDArray]


def take_dense(tensors: Tensors, prefix: str, shape: tuple[int, int, int], link: str) -> QuantizedParameters:
    """Those of so many features, nodes and dimensions."""
    n_features, n_nodes, dim = shape
    return QuantizedParameters(
        take_tensor(tensors, f"{prefix}.embedding", np.int8, (n_features, dim)),
        _take_finite(tensors, f"{prefix}.embedding_scale", n_features),
        take_tensor(tensors, f"{prefix}.weights", np.int8, (n_nodes, dim)),
        _take_finite(tensors, f"{prefix}.weight_scale", n_nodes),
        _take_bias(tensors, prefix, n_nodes, link),
    )


def take_sparse(tensors: Tensors, prefix: str, tree: LabelTree, link: str) -> SparseParameters:
    n_chunks = len(chunk_starts(tree)) - 1
    n_buckets = len(tensors.get(f"{prefix}.bucket", ()))
    parameters = SparseParameters(
        chunk_bucket=take_tensor(tensors, f"{prefix}.chunk_bucket", np.int64, (n_chunks + 1,)),
        bucket=take_tensor(tensors, f"{prefix}.bucket", np.int32, (n_buckets, 2)),
        chunk_row=take_tensor(tensors, f"{prefix}.chunk_row", np.int64, (n_chunks + 1,)),
        feature=take_tensor(tensors, f"{prefix}.feature", np.int32),
        length=take_tensor(tensors, f"{prefix}.length", np.uint8),
        chunk_entry=take_tensor(tensors, f"{prefix}.chunk_entry", np.int64, (n_chunks + 1,)),
        entry=take_tensor(tensors, f"{prefix}.entry", np.uint16),
        scale=_take_finite(tensors, f"{prefix}.scale", tree.n_nodes),
        bias=_take_bias(tensors, prefix, tree.n_nodes, link),
        calibration=_take_finite(tensors, f"{prefix}.calibration", 3),
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


def _take_finite(tensors: Tensors, name: str, n: int) -> NDArray[np.float32]:
    array = take_tensor(tensors, name, np.float32, (n,))
    if not np.all(np.isfinite(array)):
        raise CorruptedModelError(f"{name} has values that are not finite")
    return array


def _take_bias(tensors: Tensors, prefix: str, n_nodes: int, link: str) -> NDArray[np.float32]:
    """Biases may be infinite, of constant nodes; with a softmax the root is the only certain one."""
    array = take_tensor(tensors, f"{prefix}.bias", np.float32, (n_nodes,))
    if np.any(np.isnan(array)):
        raise CorruptedModelError(f"{prefix}.bias has values that are not finite")
    if LINKS[link].picks_label and (array[0] != np.inf or np.any(array[1:] == np.inf)):
        raise CorruptedModelError(
            f"{prefix}.bias is not +infinity at the root alone, as it is with link {link}"
        )
    return array
