"""Trees with parameters to search in, and models of several."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.strategies import (
    feature_dicts,
    kept,
    label_trees,
    pack_chunks,
    random_direct,
    random_parameters,
    random_sparse,
    sparse_rows,
    trees_of,
    with_link,
)

from labeltree import LabelTree
from labeltree.config import Config
from labeltree.experts.tree_expert import TreeExpert
from labeltree.features.strings import StringTable
from labeltree.features.vectors import VectorFeatures
from labeltree.model import Model
from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.query import NO_BEAM
from labeltree.reference import search as reference

N_FEATURES = 6


ZERO = np.float32(0.0)


CLOSE = dict(rtol=1e-4, atol=1e-6)


class Tight(NamedTuple):
    """A query whose budget is given."""

    k: int
    budget: int
    threshold: np.float32 = ZERO
    normalize: bool = False
    beam: int = NO_BEAM


class Case(NamedTuple):
    tree: LabelTree
    parameters: reference.Parameters
    features: list[dict[int, float]]
    link: str = "plt"

    @property
    def search(self) -> TreeExpert:
        return TreeExpert(self.tree, *kept(self.parameters), N_FEATURES, self.link)

    @property
    def arrays(self) -> tuple[NDArray, NDArray, NDArray]:
        return sparse_rows(self.features, N_FEATURES)[:3]

    def marginals(self, row: int, normalize: bool = False) -> NDArray[np.float64]:
        return reference.marginals([(self.tree, self.parameters)], self.features[row], normalize, self.link)

    @property
    def close(self) -> dict[str, float]:
        """How near the probabilities can be: a softmax compares scores, which are rounded by their size."""
        if self.link == "plt":
            return CLOSE
        scores = [reference.node_scores(self.tree, self.parameters, row) for row in self.features]
        largest = max((np.abs(row[np.isfinite(row)]).max(initial=0.0) for row in scores), default=0.0)
        return dict(rtol=1e-4 + 4e-6 * largest, atol=1e-6)


calibrations = st.sampled_from([(1.0, 1.0, 0.0), (0.4, 0.6, -0.5), (1.5, 0.5, 0.7), (0.7, 2.0, -2.0)])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Scores from mild to extreme, some nodes constant, rows from empty to full, both links."""
    tree, link = draw(label_trees()), draw(st.sampled_from(["plt", "hsm"]))
    # The softmax of extreme scores is all or nothing: see the tests of huge values.
    scale = draw(st.sampled_from([0.3, 1.0, 8.0, 60.0] if link == "plt" else [0.3, 1.0, 8.0]))
    constants = draw(st.sampled_from([0.0, 0.3]))
    dim, seed = draw(st.sampled_from([1, 3, 8, None, N_FEATURES])), draw(st.integers(0, 999))
    parameters: reference.Parameters
    if dim is None:
        parameters = random_sparse(
            tree, N_FEATURES, seed, scale=scale, constants=constants, calibration=draw(calibrations),
            rows_per_bucket=draw(st.sampled_from([1, 3, 100])),
        )  # fmt: skip
    elif dim == N_FEATURES:  # the nodes see the features themselves
        parameters = random_direct(tree, N_FEATURES, seed, scale=scale, constants=constants)
    else:
        parameters = random_parameters(tree, N_FEATURES, dim, seed, scale=scale, constants=constants)
    rows = draw(feature_dicts(N_FEATURES, draw(st.integers(1, 3))))
    return Case(tree, with_link(parameters, link), rows, link)


@st.composite
def tied_cases(draw: st.DrawFn) -> Case:
    """Every node has probability 0, 1/2 or 1, so very many labels are exactly equal."""
    tree = draw(label_trees())
    bias = draw(
        st.lists(
            st.sampled_from([-math.inf, 0.0, 0.0, 0.0, math.inf]),
            min_size=tree.n_nodes,
            max_size=tree.n_nodes,
        )
    )
    return Case(tree, biases_only(tree, np.array(bias, np.float32), draw(st.booleans())), [{}, {2: 1.0}])


def biases_only(tree: LabelTree, bias: NDArray[np.float32], is_sparse: bool = False) -> reference.Parameters:
    """Nodes that look at no feature."""
    if is_sparse:
        return pack_chunks(tree, [{}] * tree.n_nodes, np.zeros(tree.n_nodes, np.float32), bias)
    embedding, weights = np.zeros((N_FEATURES, 2), np.float32), np.zeros((tree.n_nodes, 2), np.float32)
    return DenseParameters(embedding, weights, bias)


Trees = list[tuple]


@st.composite
def ensembles(draw: st.DrawFn, max_trees: int = 3) -> Trees:
    """Several trees of any nodes over the same labels; in some, many labels have probability 0."""
    n_labels, n_trees = draw(st.integers(1, 9)), draw(st.integers(1, max_trees))
    scale, constants = draw(st.sampled_from([0.5, 3.0])), draw(st.sampled_from([0.0, 0.4]))
    trees = []
    for _ in range(n_trees):
        tree = draw(trees_of(n_labels))
        seed, kind = draw(st.integers(0, 999)), draw(st.sampled_from(["dense", "sparse", "direct"]))
        if kind == "direct":
            direct = random_direct(tree, N_FEATURES, seed, scale=scale, constants=constants)
            trees.append((tree, direct))
        elif kind == "dense":
            dense = random_parameters(tree, N_FEATURES, 3, seed, scale=scale, constants=constants)
            trees.append((tree, dense))
        else:
            map = draw(st.sampled_from([(1.0, 1.0, 0.0), (0.6, 1.3, -0.4)]))
            sparse = random_sparse(tree, N_FEATURES, seed, scale=scale, constants=constants, calibration=map)
            trees.append((tree, sparse))
    return trees


links = st.sampled_from(["plt", "hsm"])


def linked(trees: Trees, link: str) -> Trees:
    return [(tree, with_link(parameters, link)) for tree, parameters in trees]


def make_model(trees: Trees, link: str = "plt") -> Model:
    n_labels = trees[0][0].n_labels
    config = Config(row_norm="none", trees=len(trees), link=link)
    labels = StringTable.from_strings([f"label{label}" for label in range(n_labels)])
    features = VectorFeatures(config, N_FEATURES)
    experts = [TreeExpert(tree, *kept(parameters), N_FEATURES, link) for tree, parameters in trees]
    return Model(config, features, labels, np.ones(n_labels, np.int64), 1, experts)


def random_rows(n_rows: int, seed: int = 0) -> list[dict[int, float]]:
    random = np.random.default_rng(seed)
    return [
        {int(f): float(random.normal()) for f in random.choice(N_FEATURES, random.integers(0, 5), False)}
        for _ in range(n_rows)
    ]
