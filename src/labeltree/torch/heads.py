"""Output layers: what follows the last hidden vector h of a network, with a label tree instead of a matrix.

A node scores w·h + b. :class:`PLTHead` makes a logistic of each score, :class:`HSMHead` a softmax of those of
siblings, and a label's probability is the product over its path, as in the rest of this package. A row trains
the nodes on the paths of its labels and their siblings, so a step costs depth times arity and not the labels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from labeltree.data.rows import LabelRows
from labeltree.errors import DataError, ParameterError, show
from labeltree.torch.labels import label_ids
from labeltree.torch.scores import log_sum_exp, pair_scores
from labeltree.torch.visits import Visits, find_visits, pattern_of
from labeltree.tree import LabelTree

if TYPE_CHECKING:
    from labeltree.model import Model

Head = TypeVar("Head", bound="TreeHead")
_TREE = "_extra_state"  # torch's name for it


class HeadOutput(NamedTuple):
    """What a head says of a batch with its labels."""

    loss: Tensor  # the mean of the rows' losses; hsm: of rows that have labels, as others are no examples
    losses: Tensor  # (n_rows,)
    n_pairs: int  # nodes that were scored, over all rows


class TreeHead(torch.nn.Module):
    """What both heads share."""

    link: ClassVar[str]

    def __init__(
        self, in_features: int, tree: LabelTree, first_bias: ArrayLike | None = None, *, sparse: bool = True
    ) -> None:
        """``first_bias`` (n_nodes,) are the nodes' first biases, else all are 0: infinite where a node
        is constant, so that it is not trained and adds no loss. ``sparse``: gradients are sparse tensors, for
        ``torch.optim.SparseAdam``, ``Adagrad`` or ``SGD``, whose steps then touch the visited nodes only.
        """
        super().__init__()
        if type(in_features) is not int or in_features < 1:
            raise ParameterError(
                f"in_features must be a whole number of at least 1, but is {show(in_features)}"
            )
        if not isinstance(tree, LabelTree):
            raise ParameterError(f"tree must be a LabelTree, but is {show(tree)}; PLTHead.build makes one")
        bias = self._checked_bias(tree, first_bias)
        self.in_features, self.tree, self.sparse = in_features, tree, sparse
        self.label_counts, self.n_examples = (
            np.zeros(tree.n_labels, np.int64),
            0,
        )  # for `inspect` of an export
        # Weights start at 0, so that probabilities begin with what the biases say.
        self.weight = torch.nn.Parameter(torch.zeros(tree.n_nodes, in_features))
        self.bias = torch.nn.Parameter(torch.from_numpy(np.where(np.isfinite(bias), bias, 0)))
        # Added to scores: optimizers must never see an infinite number.
        self.register_buffer("constant", torch.from_numpy(np.where(np.isfinite(bias), 0, bias)))

    @classmethod
    def build(
        cls: type[Head], Y: Any, X: Any = None, *, in_features: int, n_labels: int | None = None,
        sparse: bool = True, threads: int = 0, **parameters: Any,
    ) -> Head:  # fmt: skip
        """A head whose tree and biases are made for training labels.

        ``Y`` is as :meth:`forward` takes it. With ``X``, texts or vectors of the same rows, similar labels
        come together; without, those that occur together. ``parameters`` are those of trees: ``tree``,
        ``arity`` (16), ``max_leaves`` (64), ``seed``, ...
        """
        from labeltree.torch.building import build_tree_of, first_bias_of

        labels = label_ids(Y, n_labels)
        tree = build_tree_of(labels, X, cls.link, parameters, threads)
        head = cls(in_features, tree, first_bias_of(tree, labels, cls.link), sparse=sparse)
        head.label_counts[:] = np.bincount(labels.indices, minlength=labels.n_labels)
        head.n_examples = labels.n_rows
        return head

    def forward(self, h: Tensor, y: Any) -> HeadOutput:
        """The loss of rows ``h`` (n_rows, in_features) whose labels are ``y``.

        ``y`` has a row for each row of h: a matrix of 0 and 1 (SciPy's, NumPy's or a tensor), lists of label
        ids, a pair ``(indptr, indices)``, or one id per row.
        """
        labels = label_ids(y, self.tree.n_labels)
        self._check(h, labels.n_rows)
        visits = self._learned(find_visits(self.tree, labels))
        pattern = pattern_of(visits, labels.n_rows)
        scores = pair_scores(h.to(self.weight.dtype), self.weight, self.bias, pattern, self.sparse)
        losses = scores.new_zeros(labels.n_rows)
        losses = losses.index_add(0, torch.from_numpy(visits.row).to(h.device), self._losses(scores, visits))
        return HeadOutput(losses.sum() / max(1, self._n_examples(labels)), losses, len(scores))

    def log_prob(self, h: Tensor, labels: Sequence[int] | None = None) -> Tensor:
        """(n_rows, n_labels) the log-probabilities of some labels, or of all; gradients are dense."""
        self._check(h, len(h))
        ids = range(self.tree.n_labels) if labels is None else labels
        nodes = find_visits(
            self.tree, label_ids([ids], self.tree.n_labels)
        ).node  # of all paths, and siblings
        place = np.full(self.tree.n_nodes + 1, len(nodes))
        place[nodes] = np.arange(len(nodes))
        chosen = torch.from_numpy(nodes).to(h.device)
        scores = h.to(self.weight.dtype) @ self.weight[chosen].t() + (self.bias + self.constant)[chosen]
        of_nodes = self._log_probabilities(scores, nodes)
        of_nodes = functional.pad(of_nodes, (0, 1))  # a last one of probability 1, for paths that have ended
        node, total = self.tree.leaf_of_label[np.asarray(ids, np.int64)], scores.new_zeros(len(h), len(ids))
        while np.any(node >= 0):
            total = total + of_nodes[:, torch.from_numpy(place[node]).to(h.device)]
            node = np.where(node >= 0, self.tree.parent[node], -1)
        return total

    def predict(self, h: Tensor, k: int = 5, *, threads: int = 0) -> tuple[Tensor, Tensor]:
        """The k most probable labels of each row and their probabilities, best first; never an approximation.

        By the kernels that serve an exported model, on the CPU.
        """
        from labeltree.torch.export import best_labels

        self._check(h, len(h))
        ids, probabilities = best_labels(self, h.detach().float().cpu().numpy(), k, threads)
        return torch.from_numpy(ids).long().to(h.device), torch.from_numpy(probabilities).to(h.device)

    def to_model(
        self, label_names: Sequence[str] | None = None, card: Mapping[str, str] | None = None
    ) -> Model:
        """A model of labeltree's for rows that are what h is; it knows nothing of torch."""
        from labeltree.torch.export import make_model

        return make_model(self, label_names, card)

    def export(
        self,
        path: str | Path,
        label_names: Sequence[str] | None = None,
        card: Mapping[str, str] | None = None,
    ) -> None:
        """Write a model file: ``labeltree.load(path).predict_arrays(h)`` serves it without torch."""
        self.to_model(label_names, card).save(path)

    def get_extra_state(self) -> dict[str, Tensor]:
        """The tree, so that weights are never taken for those of another one."""
        return {name: torch.from_numpy(array.copy()) for name, array in self.tree.tensors().items()}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        if _tree_of(state) != self.tree:
            raise DataError(
                "the state is that of a head with another tree; make one of its own by from_state_dict"
            )

    @classmethod
    def from_state_dict(cls: type[Head], state: Mapping[str, Any], *, sparse: bool = True) -> Head:
        """The head that a ``state_dict()`` is of."""
        head = cls(state["weight"].shape[1], _tree_of(state[_TREE]), sparse=sparse)
        head.load_state_dict(state)
        return head

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, tree={self.tree}, sparse={self.sparse}"

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights (n_nodes, in_features) and biases (n_nodes,), these infinite where nodes are constant."""
        bias = (self.bias + self.constant).detach().float().cpu().numpy()
        return np.ascontiguousarray(self.weight.detach().float().cpu().numpy()), bias

    def _check(self, h: Tensor, n_rows: int) -> None:
        if h.ndim != 2 or h.shape[1] != self.in_features:
            raise DataError(f"h must have shape (n_rows, {self.in_features}), but has {tuple(h.shape)}")
        if len(h) != n_rows:
            raise DataError(f"h has {len(h)} rows, but y has {n_rows}")

    @classmethod
    def _checked_bias(cls, tree: LabelTree, first_bias: ArrayLike | None) -> NDArray[np.float32]:
        bias = np.zeros(tree.n_nodes) if first_bias is None else np.asarray(first_bias)
        if bias.shape != (tree.n_nodes,) or np.any(np.isnan(bias)):
            raise ParameterError(f"first_bias must be {tree.n_nodes} numbers, but is {show(first_bias)}")
        return bias.astype(np.float32)

    @abstractmethod
    def _learned(self, visits: Visits) -> Visits:
        """Without what nothing can be learned from."""

    @abstractmethod
    def _losses(self, scores: Tensor, visits: Visits) -> Tensor:
        """(n_pairs,) what each pair adds to its row's loss."""

    @abstractmethod
    def _n_examples(self, labels: LabelRows) -> int:
        """How many rows the loss is the mean of."""

    @abstractmethod
    def _log_probabilities(self, scores: Tensor, nodes: NDArray[np.int64]) -> Tensor:
        """log P(node | parent) from scores (n_rows, n) of nodes that are there with all their siblings."""


class PLTHead(TreeHead):
    """A probabilistic label tree: a logistic for each node, any number of labels per row, or none.

    The loss is the paper's: the sum of the log losses of the row's positive nodes and their siblings, the
    root's own included. On a flat tree whose root is constant that is ``BCEWithLogitsLoss`` over all labels.
    """

    link = "plt"

    def _learned(self, visits: Visits) -> Visits:
        return visits.only(np.isfinite(self.constant.cpu().numpy())[visits.node])

    def _losses(self, scores: Tensor, visits: Visits) -> Tensor:
        target = torch.from_numpy(visits.share > 0).to(scores)
        return functional.binary_cross_entropy_with_logits(scores, target, reduction="none")

    def _n_examples(self, labels: LabelRows) -> int:
        return labels.n_rows

    def _log_probabilities(self, scores: Tensor, nodes: NDArray[np.int64]) -> Tensor:
        return functional.logsigmoid(scores)


class HSMHead(TreeHead):
    """Hierarchical softmax: siblings are alternatives, and a row's labels count in equal parts.

    Of two siblings the second's score is 0, so that they share one logistic; the root is certain.
    """

    link = "hsm"

    @classmethod
    def _checked_bias(cls, tree: LabelTree, first_bias: ArrayLike | None) -> NDArray[np.float32]:
        bias = super()._checked_bias(tree, first_bias)
        if np.any(bias[1:] == np.inf):
            raise ParameterError("first_bias is infinite below the root, but no alternative is certain")
        bias[0] = np.inf
        return bias

    def _learned(self, visits: Visits) -> Visits:
        """Without roots, and alternatives that never occur."""
        return visits.only((visits.node > 0) & np.isfinite(self.constant.cpu().numpy())[visits.node])

    def _losses(self, scores: Tensor, visits: Visits) -> Tensor:
        parent = visits.row * self.tree.n_nodes + self.tree.parent[visits.node]
        block = np.cumsum(np.diff(parent, prepend=-1) != 0) - 1  # siblings of one row stand together
        group = torch.from_numpy(block).to(scores.device)
        scores = torch.where(self._is_second(visits.node), 0.0, scores)
        log_probability = scores - log_sum_exp(scores, group, int(block.max(initial=-1)) + 1)[group]
        return -torch.from_numpy(visits.share).to(scores) * log_probability

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The second of two siblings is 0 here too, whatever someone has filled the parameters with."""
        weights, bias = super().arrays()
        second = np.flatnonzero(self._is_second(np.arange(self.tree.n_nodes)).cpu().numpy())
        if weights[second].any():
            weights = weights.copy()
            weights[second] = 0.0
        bias[second] = np.where(np.isfinite(bias[second]), 0.0, bias[second])
        return weights, bias

    def _n_examples(self, labels: LabelRows) -> int:
        return int(np.count_nonzero(np.diff(labels.indptr)))

    def _log_probabilities(self, scores: Tensor, nodes: NDArray[np.int64]) -> Tensor:
        parents, number = np.unique(self.tree.parent[nodes], return_inverse=True)
        group = torch.from_numpy(number).to(scores.device)
        is_root = torch.from_numpy(nodes == 0).to(scores.device)
        is_zero = self._is_second(nodes) & torch.isfinite(scores) | is_root
        scores = torch.where(is_zero, 0.0, scores)
        total = log_sum_exp(scores, group, len(parents))
        return scores - torch.where(torch.isfinite(total), total, 0.0)[:, group]  # where none is possible

    def _is_second(self, nodes: NDArray[np.int64]) -> Tensor:
        """Whether a node is the second of two siblings."""
        parent = np.maximum(self.tree.parent[nodes], 0)
        is_second = (self.tree.n_children[parent] == 2) & (nodes == self.tree.first_child[parent] + 1)
        return torch.from_numpy(is_second).to(self.weight.device)


def _tree_of(state: Mapping[str, Tensor]) -> LabelTree:
    return LabelTree.from_tensors({name: tensor.cpu().numpy() for name, tensor in state.items()})
