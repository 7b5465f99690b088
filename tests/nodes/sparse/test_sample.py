"""What a part of the training says about the size of all of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, pointers
from labeltree.nodes import KINDS
from labeltree.nodes.kind import Facts, FitInput
from labeltree.nodes.sparse import sample as sparse_sample
from labeltree.nodes.sparse.fitting import fit_sparse
from labeltree.nodes.sparse.sample import sampled_bytes
from labeltree.parallel import Pool
from labeltree.tree import LabelTree
from labeltree.trees.builder import TreeInput, build_tree

N_ROWS, N_FEATURES, N_LABELS = 3000, 400, 300


@pytest.fixture(scope="module")
def data() -> tuple[SparseRows, LabelRows]:
    """Labels of very different frequency, each with a few features of its own among noise."""
    random = np.random.default_rng(1)
    share = 1.0 / np.arange(1, N_LABELS + 1)
    labels = random.choice(N_LABELS, N_ROWS, p=share / share.sum()).astype(np.int32)
    own = np.stack([labels, labels + 7, labels * 3, labels * 5 + 1], axis=1) % 300
    features = np.sort(np.c_[own, random.integers(300, N_FEATURES, (N_ROWS, 3))], axis=1)
    rows = [np.unique(row) for row in features]
    values: NDArray[np.float32] = np.concatenate([np.full(len(row), len(row) ** -0.5) for row in rows])
    X = SparseRows(
        pointers([len(row) for row in rows]), np.concatenate(rows).astype(np.int32),
        values.astype(np.float32), N_FEATURES,
    )  # fmt: skip
    return X, LabelRows(np.arange(N_ROWS + 1), labels, N_LABELS)


def true_bytes(X: SparseRows, Y: LabelRows, tree: LabelTree, config: Config) -> int:
    with Pool(1) as pool:
        rows = TrainingRows(X, Y, np.ones(X.n_rows, np.float32))
        fit = fit_sparse(FitInput(rows, tree, config, 1, pool))
    kept = fit.parameters
    return kept.entry.nbytes + kept.feature.nbytes + kept.length.nbytes + kept.bucket.nbytes


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("prune", [0.02, 0.3])
@pytest.mark.parametrize("least_work", [sparse_sample.LEAST_WORK, 0.0], ids=["all", "sample"])
def test_a_sample_is_near_the_whole(
    least_work: float, prune: float, link: str, data: tuple[SparseRows, LabelRows],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    X, Y = data
    given = Config(prune=prune, link=link, arity=8, max_leaves=8)
    config = KINDS["sparse"].resolve(given, Facts(N_LABELS, Y.examples_per_label, len(X.indices)))
    with Pool(1) as pool:
        rows = TrainingRows(X, Y, np.ones(X.n_rows, np.float32))
        tree = build_tree(TreeInput(rows, [str(label) for label in range(N_LABELS)], config, pool), 1)
    monkeypatch.setattr(sparse_sample, "LEAST_WORK", least_work)
    found = [sampled_bytes(X, Y, tree, config, seed) for seed in (1, 2, 3)]
    bound = 0.1 if least_work else 0.3
    assert found == pytest.approx([true_bytes(X, Y, tree, config)] * 3, rel=bound)
