"""Small training problems: a tree and its examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from support.strategies import feature_dicts, label_rows, label_trees, sparse_rows

from labeltree import LabelTree
from labeltree.data.rows import TrainingRows
from labeltree.reference.training import Example

N_FEATURES = 7


class Problem(NamedTuple):
    tree: LabelTree
    examples: list[Example]
    n_features: int = N_FEATURES


@st.composite
def problems(draw: st.DrawFn, least_labels: int = 0) -> Problem:
    """A tree and a few examples: some without features, without labels (if allowed), or of weight 0."""
    tree = draw(label_trees())
    n_rows = draw(st.integers(1, 10))
    features = draw(feature_dicts(N_FEATURES, n_rows))
    label_sets = st.sets(
        st.integers(0, tree.n_labels - 1), min_size=least_labels, max_size=min(4, tree.n_labels)
    )
    weights = st.sampled_from([1.0, 1.0, 0.0, 0.5, 3.0])
    rows = [Example(row, draw(label_sets), draw(weights)) for row in features]
    return Problem(tree, rows)


def random_problem(tree: LabelTree, n_rows: int, seed: int, n_features: int = 40) -> Problem:
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n_rows):
        used = random.choice(n_features, random.integers(0, 12), replace=False)
        features = {int(feature): float(random.normal()) for feature in used}
        labels = random.choice(tree.n_labels, random.integers(0, min(5, tree.n_labels)), replace=False)
        rows.append(Example(features, set(labels.tolist()), float(random.choice([1.0, 0.5, 2.0]))))
    return Problem(tree, rows, n_features)


def labelled(problem: Problem) -> Problem:
    """Without the examples that have no label, which a softmax cannot use."""
    return problem._replace(examples=[example for example in problem.examples if example.labels])


def arrays_of(problem: Problem) -> TrainingRows:
    return TrainingRows(
        sparse_rows([dict(example.features) for example in problem.examples], problem.n_features),
        label_rows([example.labels for example in problem.examples], problem.tree.n_labels),
        np.array([example.weight for example in problem.examples], np.float32),
    )
