"""A label tree as an expert: its search over arrays, for any kind of nodes and any link."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, read_only, read_only_rows
from labeltree.errors import CorruptedModelError
from labeltree.experts.expert import Above, Expert, Found, Labels, Saved, Trained, empty_found
from labeltree.experts.explaining.contribution import Contribution, PathWeights
from labeltree.kernels.check import CANONICAL
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.kind import Parameters, SavedNodes
from labeltree.query import NO_BEAM, Query
from labeltree.storage.tensors import take_kind
from labeltree.tree import LabelTree

if TYPE_CHECKING:
    from labeltree.experts.job import ExpertNeeds, TrainingJob
    from labeltree.features.text import ShortText
    from labeltree.kernels.search.factory import Kernels


class TreeExpert(Expert):
    """A tree with its node parameters, ready for the kernels (which get read-only arrays only)."""

    kind = "tree"

    def __init__(
        self, tree: LabelTree, nodes: str, parameters: Parameters, n_features: int, link: str = "plt"
    ) -> None:
        """``nodes`` is the kind of nodes whose parameters these are."""
        self.tree, self.nodes, self.link, self.n_features = tree, nodes, link, n_features
        self.trees, self.n_labels = [tree], tree.n_labels
        self.parameters = type(parameters)(*map(read_only, parameters))
        self.scores_alike = KINDS[nodes].scores_alike
        # One kernel, and rows prepared in memory of one shape.
        self.searched_with = nodes, link, *(array.shape[1:] for array in parameters)
        self.is_calibrated = KINDS[nodes].is_calibrated(parameters)
        # Kernels are imported late, but not anew at each call: a call takes microseconds.
        self.search = KINDS[nodes].search(tree, self.parameters, n_features)
        make_kernels, self._layout, self.table, self._fields = self.search
        self._whole = self.table  # also where labels are left out of the other one
        self._plain = make_kernels(LINKS[link].kernel)
        self._normalized = make_kernels(LINKS[link].normalized)

    def kernels_for(self, query: Query) -> Kernels:
        """Those of its kind of nodes and the link that is asked for."""
        return self._normalized if query.normalize else self._plain

    def restricted(self, allowed: NDArray[np.bool_]) -> TreeExpert:
        """Nodes without an allowed label below them have a negative number of children."""
        n_children = np.where(self.tree.most_below(allowed), self.tree.n_children, np.int32(-1))
        other = copy.copy(self)
        other.table = self._layout.replaced(self._whole, "n_children", n_children)
        other._fields = {**self._fields, "n_children": n_children}  # lives as long as the table
        return other

    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        rows, is_exact = read_only_rows(arrays), np.empty(len(out_ids), np.bool_)
        kernels, out = self.kernels_for(query), (out_ids, out_probabilities, is_exact)
        if query.beam == NO_BEAM:
            kernels.topk(self.table, *rows, query.k, query.threshold, query.budget, *out)
        else:
            kernels.beam(self.table, *rows, query.k, query.beam, query.threshold, *out)
        return is_exact

    def topk_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], n: int, norm: int, query: Query
    ) -> Found | None:
        found, kernels = empty_found(1, query.k), self.kernels_for(query)
        asked = query.k, query.threshold, query.budget
        code = kernels.topk_row(self.table, indices, values, n, norm, *asked, *found)
        return found if code == CANONICAL else None

    def topk_text(self, buffer: ShortText, text: bytes, query: Query) -> Found | None:
        found, kernels = empty_found(1, query.k), self.kernels_for(query)
        asked = query.k, query.threshold, query.budget
        return found if kernels.topk_text(self.table, buffer.table, text, *asked, *found) else None

    def above(self, arrays: Arrays, query: Query) -> Above:
        n_rows, threshold, kernels = len(arrays[0]) - 1, query.threshold, self.kernels_for(query)
        capacity = max(1024, 8 * n_rows)
        indptr = np.zeros(n_rows + 1, np.int64)
        ids, probabilities = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        row = 0
        while True:
            row = kernels.above(
                self.table, *read_only_rows(arrays), row, threshold, indptr, ids, probabilities
            )
            if row == n_rows:
                break
            ids, probabilities = (np.concatenate([array, array]) for array in (ids, probabilities))
        lengths = np.diff(indptr)
        ids, probabilities = ids[: indptr[-1]], probabilities[: indptr[-1]]
        order = np.lexsort((ids, np.repeat(np.arange(n_rows), lengths)))
        return lengths, ids[order], probabilities[order]

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        out, kernels = np.empty(len(labels[1]), np.float32), self.kernels_for(query)
        kernels.labels(self._whole, *read_only_rows(arrays), read_only(labels[0]), read_only(labels[1]), out)
        return out

    def explain(self, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
        from labeltree.experts.explaining.paths import explain_paths

        return explain_paths(self, arrays, labels)

    def path_weights(self, label: int, columns: NDArray[np.int32]) -> PathWeights | None:
        from labeltree.experts.explaining.paths import weights_of_path

        return weights_of_path(self, label, columns)

    def pulls(self, label: int, place: int | None = None) -> NDArray[np.float64]:
        from labeltree.experts.explaining.paths import pulls_of_path

        return pulls_of_path(self, label, place)

    def nearest_labels(self, label: int) -> list[tuple[int, float]]:
        from labeltree.experts.explaining.paths import nearest_labels

        return nearest_labels(self, label)

    @property
    def parameter_bytes(self) -> int:
        return sum(array.nbytes for array in self.parameters)

    def statistics(self) -> dict[str, Any]:
        return self.tree.statistics()

    def tensors(self, number: int) -> dict[str, NDArray]:
        of_nodes = {f"nodes.{number}.{name}": array for name, array in self.parameters._asdict().items()}
        return self.tree.tensors(f"tree.{number}") | of_nodes

    @property
    def title(self) -> str:
        return self.nodes

    def metadata(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "link": self.link}

    @classmethod
    def from_saved(cls, saved: Saved) -> TreeExpert:
        nodes, link = saved.metadata["nodes"], saved.metadata["link"]
        kind, _ = take_kind(KINDS, nodes, "nodes"), take_kind(LINKS, link, "link")
        tree = LabelTree.from_tensors(saved.tensors, f"tree.{saved.number}")
        if tree.n_labels != saved.n_labels:
            raise CorruptedModelError(
                f"tree.{saved.number} has {tree.n_labels} labels instead of {saved.n_labels}"
            )
        where = SavedNodes(saved.tensors, f"nodes.{saved.number}", tree, saved.n_features, link)
        return cls(tree, nodes, kind.take(where), saved.n_features, link)

    @classmethod
    def needs(cls, job: TrainingJob, *, closely: bool) -> ExpertNeeds:
        from labeltree.experts.tree_training import needs_of_trees

        return needs_of_trees(job, closely=closely)

    @classmethod
    def train(cls, job: TrainingJob) -> Sequence[Trained]:
        from labeltree.experts.tree_training import train_trees  # and with it all that trains

        return train_trees(job)
