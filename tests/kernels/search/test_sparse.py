"""Search over chunks that training has packed: every weight is found (see also test_search.py)."""

from __future__ import annotations

import numpy as np
import pytest
from support.problems import random_problem
from support.sparse_problems import METHODS, fit, marginals
from support.strategies import chain_tree, pack_chunks, sparse_rows

from labeltree.config import Config
from labeltree.experts.tree_expert import TreeExpert
from labeltree.kernels.check import buckets_fit
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.kernels.sparse.chunk import bucket_of
from labeltree.query import make_query
from labeltree.reference import search as reference
from labeltree.trees.shapes import build_flat

ZERO = np.float32(0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["flat", "chain"])
def test_what_was_packed_is_found(method: str, shape: str) -> None:
    """Chunks of one to many buckets, of several hundred features."""
    tree = build_flat(130) if shape == "flat" else chain_tree(9)
    problem = random_problem(tree, 150, seed=2, n_features=900)
    config = Config(**METHODS[method], max_iterations=3, epochs=1, prune=0.02, C=0.3)
    parameters = fit(problem, config)[0].parameters
    assert np.diff(parameters.chunk_bucket).max() > 50
    parameters = parameters._replace(calibration=np.array([0.8, 1.3, -0.2], np.float32))
    rows = [dict(example.features) for example in problem.examples[:12]]
    rows += [dict.fromkeys(range(900), 0.01), {}, {899: -1.0}]
    found = marginals(tree, parameters, rows, 900)
    for row, features in enumerate(rows):
        expected = reference.marginals([(tree, parameters)], features)
        np.testing.assert_allclose(found[row], expected, rtol=2e-4, atol=1e-6)
        ids, best = np.empty((1, 5), np.int32), np.empty((1, 5), np.float32)
        arrays = sparse_rows([features], 900)[:3]
        TreeExpert(tree, "sparse", parameters, 900).topk(arrays, make_query(5), ids, best)
        np.testing.assert_allclose(best[0], reference.top_k(expected, 5)[1], rtol=2e-4, atol=1e-6)


def test_buckets_are_those_of_the_file_format() -> None:
    """docs/model-file.md: feature * 2654435769 mod 2**32, times the number of buckets, by 2**32."""
    for feature in (0, 1, 2, 77, 10**6, 2**31 - 1):
        for n_buckets in (1, 2, 3, 1000, 2**31 - 1):
            expected = (feature * 2654435769 % 2**32) * n_buckets >> 32
            assert bucket_of(np.int32(feature), n_buckets) == expected
            assert 0 <= expected < n_buckets


def test_values_as_large_as_they_may_be() -> None:
    """They count as 1e30: sums stay finite, and opposite ones do not become NaN."""
    tree = build_flat(3)
    weights = [{}, {0: 127, 1: -127}, {0: 127, 1: 127}, {1: -1}]
    scale, bias = np.array([0.0, 0.5, 0.5, 1e-30], np.float32), np.zeros(4, np.float32)
    bias[0] = np.inf
    parameters = pack_chunks(tree, weights, scale, bias)
    rows = [{0: 3e38, 1: 3e38}, {0: -3e38, 1: 3e38}, {0: 1e30}]
    found = marginals(tree, parameters, rows, 2)
    one = pytest.approx(1 / (1 + np.e))  # a score of -1e30 * 1e-30
    differing = found[0, 0], found[1, 1]  # of two huge numbers: rounding decides
    assert np.isfinite(differing).all()
    assert found.tolist() == [[differing[0], 1.0, one], [0.0, differing[1], one], [1.0, 1.0, 0.5]]


@pytest.mark.parametrize("n_rows", [0, 1])
def test_nodes_without_any_weight(n_rows: int) -> None:
    tree = chain_tree(4)
    parameters = pack_chunks(
        tree, [{}] * tree.n_nodes, np.zeros(tree.n_nodes, np.float32), np.zeros(tree.n_nodes, np.float32)
    )
    assert len(parameters.bucket) == 0
    found = marginals(tree, parameters, [{0: 1.0}] * n_rows, 1)
    assert found.tolist() == [[pytest.approx(0.5**depth) for depth in tree.depth_of_leaves + 1]] * n_rows


def fits(parameters: SparseParameters) -> bool:
    chunk_bucket, bucket, chunk_row, _, length, chunk_entry, entry, *_ = parameters
    return bool(buckets_fit(chunk_bucket, bucket, chunk_row, length, chunk_entry, len(entry)))


def test_buckets_that_point_elsewhere_are_noticed() -> None:
    problem = random_problem(build_flat(130), 150, seed=2, n_features=900)
    parameters = fit(problem, Config(max_iterations=3, prune=0.02))[0].parameters
    assert fits(parameters)
    random = np.random.default_rng(1)
    for name in ("bucket", "length", "chunk_row", "chunk_entry"):
        for _ in range(40):
            changed = getattr(parameters, name).copy()
            place = random.integers(changed.size)
            changed.flat[place] += random.choice([-1, 1])
            # what lies behind all chunks is the affair of the check of their pointers
            is_behind = name == "chunk_entry" and place == changed.size - 1
            assert fits(parameters._replace(**{name: changed})) == is_behind, (name, place)
    assert not fits(parameters._replace(entry=parameters.entry[:-1]))
    assert not fits(parameters._replace(bucket=parameters.bucket + np.int32(2**30)))
