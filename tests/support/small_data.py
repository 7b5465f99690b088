"""Generated toy data whose right answer is known: each label has words of its own, others mean nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config, effective
from labeltree.data.rows import SparseRows
from labeltree.experts.expert import Expert
from labeltree.experts.tree_expert import TreeExpert
from labeltree.model import Model
from labeltree.reference.bends import bent
from labeltree.reference.sparse import decode

N_LABELS = 12
WORDS_PER_LABEL = 3
NOISE_WORDS = 10
LABELS = [f"topic-{label}" for label in range(N_LABELS)]
N_FEATURES = N_LABELS * WORDS_PER_LABEL + NOISE_WORDS
N_DENSE = 5


def with_effect(**given: Any) -> dict[str, Any]:
    """Parameters of a grid without those that have no effect at one of its points."""
    kept = effective(Config(**{name: given[name] for name in Config().to_dict() if name in given}))
    return {name: value for name, value in given.items() if name in kept or not hasattr(Config, name)}


class Toy(NamedTuple):
    texts: list[str]
    X: SparseRows  # the same words, counted
    Y: list[list[str]]
    indicator: NDArray[np.int8]  # (n_rows, N_LABELS)

    def rows(self, kind: str) -> Any:
        """The features as ``kind``: "text", "vectors" or "joined", texts with dense vectors beside them."""
        if kind == "joined":
            return [self.texts, dense_of_words(self.X)]
        return self.texts if kind == "text" else self.X


def dense_of_words(X: SparseRows) -> NDArray[np.float64]:
    """(n_rows, N_DENSE) sums of a random vector for each word, as an embedder makes them."""
    of_word = np.random.default_rng(0).normal(size=(N_FEATURES, N_DENSE))
    row = np.repeat(np.arange(X.n_rows), np.diff(X.indptr))
    out = np.zeros((X.n_rows, N_DENSE))
    np.add.at(out, row, X.values[:, None] * of_word[X.indices])
    return out


def make_toy(n_rows: int = 200, seed: int = 0) -> Toy:
    """Rows of 1 to 3 labels, each showing two of its words, and of two noise words.

    Labels fall in frequency; every label has a row; one row in twenty has no label.
    """
    random = np.random.default_rng(seed)
    share = 1.0 / (np.arange(N_LABELS) + 4.0)
    texts, Y, columns = [], [], []
    for i in range(n_rows):
        n_labels = 0 if i % 20 == 19 else int(random.integers(1, 4))
        labels = random.choice(N_LABELS, n_labels, replace=False, p=share / share.sum()).tolist()
        if i < N_LABELS:
            labels = sorted({i, *labels})
        words = [N_LABELS * WORDS_PER_LABEL + int(w) for w in random.choice(NOISE_WORDS, 2, replace=False)]
        for label in labels:
            words += [label * WORDS_PER_LABEL + int(w) for w in random.choice(WORDS_PER_LABEL, 2, False)]
        texts.append(" ".join(f"word{word}" for word in words))
        Y.append([LABELS[label] for label in labels])
        columns.append(sorted(words))
    return Toy(texts, _rows_of(columns), Y, indicator_of(Y))


def indicator_of(Y: list[list[str]]) -> NDArray[np.int8]:
    out = np.zeros((len(Y), N_LABELS), np.int8)
    for i, labels in enumerate(Y):
        out[i, [LABELS.index(label) for label in labels]] = 1
    return out


def _rows_of(columns: list[list[int]]) -> SparseRows:
    indptr = np.cumsum([0, *map(len, columns)], dtype=np.int64)
    indices = np.array([column for row in columns for column in row], np.int32)
    return SparseRows(indptr, indices, np.ones(len(indices), np.float32), N_FEATURES)


def empty_rows(kind: str, n_rows: int = 1) -> Any:
    """Rows without any feature."""
    if kind == "text":
        return [""] * n_rows
    if kind == "joined":
        return [[""] * n_rows, np.zeros((n_rows, N_DENSE))]
    none = np.empty(0, np.int32)
    return SparseRows(np.zeros(n_rows + 1, np.int64), none, none.astype(np.float32), N_FEATURES)


def take_rows(X: Any, rows: list[int]) -> Any:
    """Some of the rows, in that order."""
    if isinstance(X, list):
        is_pair = len(X) == 2 and isinstance(X[1], np.ndarray)
        return [take_rows(X[0], rows), X[1][rows]] if is_pair else [X[i] for i in rows]
    parts = [slice(X.indptr[i], X.indptr[i + 1]) for i in rows]
    return SparseRows(
        np.cumsum([0, *(part.stop - part.start for part in parts)], dtype=np.int64),
        np.concatenate([X.indices[:0], *(X.indices[part] for part in parts)]),
        np.concatenate([X.values[:0], *(X.values[part] for part in parts)]),
        X.n_columns,
    )


def write_fasttext(toy: Toy) -> str:
    """The toy data as fastText lines."""
    lines = [
        " ".join([*(f"__label__{label}" for label in labels), text])
        for text, labels in zip(toy.texts, toy.Y, strict=True)
    ]
    return "\n".join(lines) + "\n"


def write_xmlc(toy: Toy) -> str:
    """The toy data as an XMLC file; its labels are numbers."""
    lines = [f"{len(toy.texts)} {N_FEATURES} {N_LABELS}"]
    for i, labels in enumerate(toy.indicator):
        features = toy.X.indices[toy.X.indptr[i] : toy.X.indptr[i + 1]]
        lines.append(",".join(map(str, np.flatnonzero(labels))) + "".join(f" {f}:1" for f in features))
    return "\n".join(lines) + "\n"


def slow_marginals(model: Model, X: Any, normalize: bool = False) -> NDArray[np.float64]:
    """(n_rows, n_labels): the probability of every label by the definition, in 64-bit floats."""
    rows = model._rows(X)
    dense = np.zeros((rows.n_rows, rows.n_columns))
    dense[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.indices] = rows.values
    total = np.zeros((rows.n_rows, model.n_labels))
    weights, map = model.combination
    for weight, search in zip(weights, model.experts, strict=True):
        if search.lists_all:
            total += weight * _listed(search, rows)
            continue
        tree = search.tree
        scores = slow_scores(search, dense)
        with np.errstate(over="ignore"):
            node = 1.0 / (1.0 + np.exp(-scores))
        for parent in np.flatnonzero(tree.n_children):  # a parent stands before its children
            first = tree.first_child[parent]
            children = slice(first, first + tree.n_children[parent])
            if model.config.link == "hsm":
                node[:, children] = np.exp(scores[:, children])
                node[:, children] /= node[:, children].sum(axis=1, keepdims=True)
            elif normalize:
                sums = node[:, children].sum(axis=1, keepdims=True)
                node[:, children] /= np.where((sums > 0) & (sums < 1), sums, 1.0)
            node[:, children] *= node[:, [parent]]
        total += weight * slow_calibration(search, node[:, tree.leaf_of_label])
    average = total / weights.sum()
    return _mapped(average, map) if len(map) else average


def _listed(expert: Expert, rows: SparseRows) -> NDArray[np.float64]:
    """(n_rows, n_labels) what an expert lists."""
    lengths, ids, probabilities = expert.nonzero(rows[:3])
    votes = np.zeros((rows.n_rows, expert.n_labels))
    votes[np.repeat(np.arange(rows.n_rows), lengths), ids] = probabilities
    return votes


def slow_scores(search: TreeExpert, dense: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_rows, n_nodes)"""
    if search.nodes == "dense":
        embedding, weights, bias = (array.astype(np.float64) for array in search.parameters.floats())
        return dense @ embedding @ weights.T + bias
    if search.nodes == "direct":
        weights, bias = (array.astype(np.float64) for array in search.parameters)
        return dense @ weights.T + bias
    nodes = decode(search.tree, search.parameters)
    weights = np.zeros((len(nodes), dense.shape[1]))
    for number, node in enumerate(nodes):
        weights[number, list(node.weights)] = list(node.weights.values())
    return dense @ weights.T + [node.bias for node in nodes]


def slow_calibration(search: TreeExpert, paths: NDArray[np.float64]) -> NDArray[np.float64]:
    """What probabilities of paths mean for their labels."""
    if search.nodes in ("dense", "direct"):
        return paths
    return _mapped(paths, search.parameters.calibration.astype(np.float64))


def _mapped(p: NDArray[np.float64], map: NDArray[np.float64]) -> NDArray[np.float64]:
    a, b, c = map[:3]
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / (1.0 + np.exp(-bent(a * np.log(p) - b * np.log1p(-p) + c, map[3:])))
