"""A new kind of nodes is one class and one entry of the table: nothing else knows of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from support.small_data import LABELS, N_LABELS, make_toy, write_fasttext

import labeltree
from labeltree import LabelTreeClassifier, cli
from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.errors import ParameterError
from labeltree.kernels.addresses import Layout
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import (
    in_tree,
    log_of_least,
    log_of_probability,
    prepare_row,
    prepared_size,
    probability_of,
    score_nodes,
    scores_all_siblings,
)
from labeltree.kernels.search.factory import make_kernels
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.kind import (
    Facts,
    Fit,
    FitInput,
    FitProgress,
    Needs,
    NodeKind,
    SavedNodes,
    Search,
    tree_fields,
)
from labeltree.nodes.tensors import take_bias
from labeltree.tree import LabelTree, Shape
from labeltree.trees import BUILDERS

TRAIN, TEST = make_toy(200, seed=0), make_toy(100, seed=1)
ARITY = 5


class Biases(NamedTuple):
    """The parameters: a score for each node, whatever a row says."""

    bias: NDArray[np.float32]  # (n_nodes,)


class BiasNodes(NamedTuple):
    """What a search reads."""

    parent: NDArray[np.int32]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    label: NDArray[np.int32]
    leaf_of_label: NDArray[np.int32]
    bias: NDArray[np.float32]
    max_children: int
    n_features: int


TABLE = Layout(BiasNodes)
read = TABLE.reader()


@inlined
def nodes_at(table, indices, values):
    return read(table, ())


@in_tree.of(BiasNodes)
def another_tree(nodes, table):
    return read(table, ())


@prepared_size.of(BiasNodes)
def size_of_nothing(nodes):
    return 0


@prepare_row.of(BiasNodes)
def prepare_nothing(nodes, indices, values, start, end, out):
    pass


@score_nodes.of(BiasNodes)
def take_biases(nodes, first, n, prepared, out):
    for c in range(n):
        out[c] = nodes.bias[first + c]


@scores_all_siblings.of(BiasNodes)
def alone(nodes):
    return False


@probability_of.of(BiasNodes)
def as_it_is(nodes, log_probability):
    return np.float32(math.exp(log_probability))


@log_of_least.of(BiasNodes)
def least(nodes, threshold):
    return log_of_probability(threshold)


class Frequencies(NodeKind):
    """Each node has the frequency of its labels among the rows of its parent."""

    name = "toy"
    scores_alike = True

    def resolve(self, config: Config, facts: Facts) -> Config:
        arity, max_leaves = config.arity or ARITY, config.max_leaves or ARITY
        return dataclasses.replace(config, nodes=self.name, arity=arity, max_leaves=max_leaves)

    def fit(self, given: FitInput) -> Fit:
        """By brute force: of each row the part of its labels below a node, or whether there is one."""
        (_, Y, weight), tree, link = given.rows, given.tree, LINKS[given.config.link]
        node_weight = np.zeros(tree.n_nodes)
        for row in range(Y.n_rows):
            below = np.zeros(tree.n_nodes)
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
            for node in tree.leaf_of_label[labels].tolist():
                while node >= 0:
                    below[node] += 1
                    node = int(tree.parent[node])
            node_weight += weight[row] * (below / len(labels) if link.picks_label else below > 0)
        given.report(FitProgress(1.0, math.nan))
        return Fit(Biases(link.first_bias(node_weight, tree, float(weight.sum()))))

    def needs(self, rows: TrainingRows, shape: Shape, config: Config, tree: LabelTree | None) -> Needs:
        return Needs(4 * (rows.Y.n_labels + shape.n_inner), 0, math.nan)

    def take(self, saved: SavedNodes) -> Biases:
        return Biases(take_bias(saved.tensors, saved.prefix, saved.tree.n_nodes, saved.link))

    def blank(self, tree: LabelTree, n_features: int, bias: NDArray[np.float32], config: Config) -> Biases:
        return Biases(bias)

    def search(self, tree: LabelTree, parameters: Biases, n_features: int) -> Search:
        fields = tree_fields(tree, n_features) | parameters._asdict()
        return Search(partial(make_kernels, self.name, nodes_at), TABLE, TABLE.table(**fields), fields)

    def weights(
        self, search: Search, first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        return np.zeros((int(count.sum()), len(columns)))

    def combined_weights(
        self, search: Search, first: int, coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.zeros(search.fields["n_features"])

    def likeness(self, search: Search, first: int, n: int, node: int) -> NDArray[np.float64]:
        return np.zeros(n)


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    KINDS.add("toy", Frequencies(), uses=("rare_weight",))
    yield
    KINDS.remove("toy")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("tree", BUILDERS)
def test_it_is_trained_saved_and_loaded(tree: str, link: str, tmp_path: Path) -> None:
    how = dict(nodes="toy", tree=tree, link=link, trees=2, neighbours=0)
    model = labeltree.train(TRAIN.texts, TRAIN.Y, label_names=LABELS, **how)
    share = TRAIN.indicator.astype(np.float64)
    if LINKS[link].picks_label:
        share = share[share.any(axis=1)] / share.sum(axis=1, keepdims=True)[share.any(axis=1)]
    found = model.probability(TEST.texts, LABELS)
    np.testing.assert_allclose(found, np.broadcast_to(share.mean(axis=0), found.shape), rtol=1e-5)
    model.save(tmp_path / "m.labeltree")
    loaded = labeltree.load(tmp_path / "m.labeltree")
    assert loaded.config.nodes == "toy"
    assert loaded.label_trees == model.label_trees
    assert loaded.predict(TEST.texts, k=3) == model.predict(TEST.texts, k=3)
    assert loaded.predict(TEST.texts, k=3, search="beam") == model.predict(TEST.texts, k=3, search="beam")
    assert loaded.inspect() == model.inspect()


@pytest.mark.parametrize("link", LINKS)
def test_what_it_says_is_due_to_no_word(link: str) -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, nodes="toy", link=link, neighbours=0)
    explained = model.explain(TEST.texts[0])
    assert all(label.total == 0.0 and not label.terms for label in explained.labels)
    assert explained.labels[0].parts[0].path[-1].labels == (explained.labels[0].label,)


def test_what_it_chooses_is_used_and_kept() -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, nodes="toy", tree="complete")
    assert model.label_trees[0].n_children.max() == ARITY
    assert model.chosen == {"toy": {"arity": ARITY}}


def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = tmp_path / "train.txt", tmp_path / "m.labeltree"
    data.write_text(write_fasttext(TRAIN))
    how = ["--nodes", "toy"]
    assert cli.main(["train", str(data), *how, "--dry-run"]) == 0
    assert "peak memory" in capsys.readouterr().out
    assert not path.exists()
    assert cli.main(["train", str(data), "-o", str(path), *how, "--quiet"]) == 0
    assert cli.main(["inspect", str(path)]) == 0
    assert "toy" in capsys.readouterr().out
    assert cli.main(["predict", str(path), str(data), "-k", "1"]) == 0
    assert LABELS[0] in capsys.readouterr().out


def test_its_parameters_have_an_effect_and_others_have_none() -> None:
    with pytest.raises(ParameterError, match="lr=1 has no effect where nodes is toy"):
        labeltree.train(TRAIN.texts, TRAIN.Y, nodes="toy", lr=1)


def test_the_estimator_takes_it() -> None:
    fitted = LabelTreeClassifier(nodes="toy").fit(TRAIN.texts, TRAIN.indicator)
    assert fitted.predict_proba(TEST.texts).shape == (len(TEST.texts), N_LABELS)


def test_a_wrong_name_is_answered_with_it() -> None:
    with pytest.raises(ParameterError, match=r"toy.* 'tyo'"):
        labeltree.train(TRAIN.texts, TRAIN.Y, nodes="tyo")
