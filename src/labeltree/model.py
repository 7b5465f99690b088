"""Model: what training makes. It predicts, saves itself, and can be loaded by any number of processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree import __version__
from labeltree.config import Config
from labeltree.data.formats import check_in_memory
from labeltree.data.labels import check_label_rows
from labeltree.data.matrices import copy_row, is_sparse, sparse_rows
from labeltree.data.rows import LabelRows, SparseRows, emptied, without_entries
from labeltree.errors import DataError, show
from labeltree.experts.ensemble import above_of_rows, best_of_rows, score_rows
from labeltree.experts.tree_search import Found, OneRow, Parameters, TreeSearch, check_threshold
from labeltree.features.reading import Features
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures
from labeltree.metrics.testing import Measures, given_data_set, measure, read_data_set
from labeltree.parallel import check_threads
from labeltree.query import (
    ALL,
    NO_BEAM,
    WITH_LABELS,
    check_all_above,
    check_columns,
    check_k,
    check_ranks,
    check_search,
    labels_unknown,
)
from labeltree.storage.model_file import Parts, parts_of_bytes, parts_to_bytes, read_parts, write_parts
from labeltree.tree import LabelTree


class Model:
    """A trained label tree, or an ensemble of them. Its methods may be called from many threads at once."""

    def __init__(
        self,
        config: Config,
        features: Features,
        labels: StringTable,
        label_counts: NDArray[np.int64],
        n_examples: int,
        trees: Sequence[tuple[LabelTree, Parameters]],
        card: Mapping[str, str] | None = None,
        version: str | None = __version__,
        chosen: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.config = config  # as it was given, so that it means the same for other data
        self.chosen = chosen or {}  # of each kind of nodes: what the config left to the data
        self.features = features
        self.labels = labels
        self.label_counts = label_counts  # (n_labels,) training rows of each label
        self.n_examples = n_examples
        self.card = dict(card or {})  # facts that are saved with the model, such as its licence
        self.version = version  # of the labeltree that trained it now or wrote its file; None: it did not say
        self.n_labels, self.n_features = len(labels), features.n_columns
        self.trees = [
            TreeSearch(tree, parameters, self.n_features, config.link) for tree, parameters in trees
        ]
        self.skipped_lines = 0  # bad lines left out when this model was trained ...
        self.skipped_messages: list[str] = []  # ... and what was wrong with the first few
        self.unused_rows = 0  # training rows without labels, where these were no examples
        self._names: list[str] | None = None
        self._row = OneRow()

    def __repr__(self) -> str:
        return (
            f"<labeltree.Model: {self.n_examples:,} rows, {self.n_labels:,} labels, "
            f"{self.n_features:,} features, {len(self.trees)} tree{'s' * (len(self.trees) != 1)}>"
        )

    @property
    def label_names(self) -> list[str]:
        if self._names is None:
            self._names = self.labels.strings()
        return self._names

    @property
    def label_trees(self) -> list[LabelTree]:
        return [search.tree for search in self.trees]

    def predict(
        self, X: Any, k: int | None = 5, *, threshold: float = 0.0, normalize: bool = False,
        search: str = "exact", beam: int | None = None, if_unknown: str = WITH_LABELS, threads: int = 0,
    ) -> list[list[tuple[str, float]]]:  # fmt: skip
        """For each text or row its most probable labels with their probabilities, best first.

        At most ``k`` labels of at least ``threshold``; with k 0 or None and a threshold above 0 all.
        ``search="beam"`` opens only the ``beam`` (or 10) most probable nodes of each level: quicker where a
        model is unsure among very many labels, but it may miss some, or find fewer than ``k``. A row that the
        model :meth:`knows` nothing of gets the labels that are probable for any row, or none with
        ``if_unknown="nothing"``.
        """
        names, k = self.label_names, check_k(k)
        if k == ALL:
            check_search(search, beam)
            check_all_above(float(check_threshold(threshold)), search)
            how: dict[str, Any] = dict(normalize=normalize, if_unknown=if_unknown, threads=threads)
            rows = self.predict_rows(X, threshold, **how)
            return [
                sorted(
                    ((names[id], float(p)) for id, p in zip(*_row(rows, i), strict=True)),
                    key=lambda pair: -pair[1],
                )
                for i in range(rows.n_rows)
            ]
        k = min(k, self.n_labels)  # there are no more, and their places would take memory
        width, least = check_search(search, beam), check_threshold(threshold)
        ids, probabilities = self._best(X, k, least, normalize, width, if_unknown, check_threads(threads))
        found = []
        # Without `strict=`, whose handing over is a good part of the time of all this for a single row.
        for row_ids, row_probabilities in zip(ids.tolist(), probabilities.tolist()):  # noqa: B905
            if row_ids[-1] < 0:
                del row_ids[row_ids.index(-1) :]
            found.append(list(zip(map(names.__getitem__, row_ids), row_probabilities)))  # noqa: B905
        return found

    def predict_arrays(
        self, X: Any, k: int = 5, *, threshold: float = 0.0, normalize: bool = False,
        search: str = "exact", beam: int | None = None, if_unknown: str = WITH_LABELS, threads: int = 0,
    ) -> Found:  # fmt: skip
        """Label ids and probabilities, both (n_rows, k), best first; -1 and 0 where fewer are found."""
        width, least = check_search(search, beam), check_threshold(threshold)
        return self._best(X, check_columns(k), least, normalize, width, if_unknown, check_threads(threads))

    def predict_rows(
        self, X: Any, threshold: float, *, normalize: bool = False, if_unknown: str = WITH_LABELS,
        threads: int = 0,
    ) -> SparseRows:  # fmt: skip
        """All labels of at least ``threshold``: rows of probabilities over label ids."""
        least, with_unknown = check_threshold(threshold), labels_unknown(if_unknown)
        rows = self._rows(X)
        found = above_of_rows(self.trees, rows, least, normalize, threads)
        return found if with_unknown else emptied(found, without_entries(rows))

    def knows(self, X: Any) -> NDArray[np.bool_]:
        """(n_rows,) whether a text has a word or n-gram of the model's, or a vector a value other than 0."""
        return ~without_entries(self._given_rows(X))

    def probability(
        self, X: Any, labels: Sequence[str], *, normalize: bool = False, threads: int = 0
    ) -> NDArray[np.float32]:
        """The marginal probabilities (n_rows, len(labels)) of the given labels."""
        if not _is_list(labels):
            raise DataError(f"labels must be a list of labels, but is {show(labels)}; wrap a label in a list")
        try:
            wanted = [str(label) for label in labels]
        except ValueError as error:  # a number of more digits than Python writes
            raise DataError(f"labels has a number that is no label's name ({error})") from error
        ids = self.labels.ids(wanted)
        if len(ids) and ids.min() < 0:
            unknown = wanted[int(np.argmin(ids))]
            raise DataError(f"label {show(unknown)} is not among the model's {self.n_labels} labels")
        rows = self._rows(X)
        indptr = np.arange(rows.n_rows + 1, dtype=np.int64) * len(ids)
        given = LabelRows(indptr, np.tile(ids, rows.n_rows), self.n_labels)
        found = score_rows(self.trees, rows, given, normalize, threads)
        return found.reshape(rows.n_rows, len(ids))

    def probability_rows(
        self, X: Any, labels: LabelRows, *, normalize: bool = False, threads: int = 0
    ) -> NDArray[np.float32]:
        """The marginal probability of each label of each row, in the order of ``labels.indices``."""
        if not isinstance(labels, LabelRows):
            raise DataError(f"labels must be LabelRows, as `read` gives them, but is {show(labels)}")
        rows = self._rows(X)
        check_label_rows(labels, rows.n_rows, self.n_labels)
        return score_rows(self.trees, rows, labels, normalize, threads)

    def read(
        self, path: str | Path, *, format: str = "auto", skip_bad_lines: bool = False
    ) -> tuple[SparseRows, LabelRows, int]:
        """A data file as rows for this model: features, labels (-1: unknown), number of skipped lines."""
        data = read_data_set(self.features, self.labels, path, format, skip_bad_lines=skip_bad_lines)
        return data.rows, data.labels, data.bad_lines.skipped

    def test(
        self, X: Any, Y: Any = None, *, k: int | Sequence[int] = (1, 3, 5), normalize: bool = False,
        search: str = "exact", beam: int | None = None, threads: int = 0, format: str = "auto",
        skip_bad_lines: bool = False,
    ) -> Measures:  # fmt: skip
        """How good the predictions are, as `labeltree test` says it: a mapping that shows itself as a table.

        ``X`` is the path of a data file, or texts or rows, whose true labels are ``Y``: lists of labels, an
        indicator matrix over the model's labels, or what :meth:`read` gave. ``k`` may be several.
        """
        ranks = check_ranks(k)
        if isinstance(X, (str, Path)):
            if Y is not None:
                raise DataError("Y must be None when X is a file, whose lines have the labels")
            data = read_data_set(self.features, self.labels, X, format, skip_bad_lines=skip_bad_lines)
        else:
            check_in_memory(format, skip_bad_lines)
            data = given_data_set(self._given_rows(X), Y, self.label_names)
        how: dict[str, Any] = dict(normalize=normalize, search=search, beam=beam, threads=threads)
        return measure(self, data, ranks, **how)

    def inspect(self) -> dict[str, Any]:
        """What `labeltree inspect` shows."""
        return {
            "version": self.version,
            "card": dict(self.card),
            "config": self.config.to_dict(),
            "chosen": {kind: dict(values) for kind, values in self.chosen.items()},
            "input": "vectors" if isinstance(self.features, VectorFeatures) else "text",
            "n_examples": self.n_examples,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "n_labels_without_examples": int(np.count_nonzero(self.label_counts == 0)),
            "parameter_bytes": sum(search.parameter_bytes for search in self.trees),
            "trees": [search.tree.statistics() for search in self.trees],
        }

    def save(self, path: str | Path) -> None:
        """Write one file, completely or not at all."""
        write_parts(path, self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle or a copy holds the bytes of the model file, which are checked when it is restored."""
        told = ("skipped_lines", "skipped_messages", "unused_rows")
        return _of_bytes, (parts_to_bytes(self._parts()),), {name: getattr(self, name) for name in told}

    def _parts(self) -> Parts:
        trees = [(search.tree, search.parameters) for search in self.trees]
        return Parts(
            self.config, self.features, self.labels, self.label_counts, self.n_examples, trees, self.card,
            self.version, self.chosen,
        )  # fmt: skip

    def _rows(self, X: Any) -> SparseRows:
        """X in the model's features: texts are transformed, vectors normalised, prepared rows checked."""
        rows = self._given_rows(X)
        return self.features.transform(rows) if isinstance(self.features, VectorFeatures) else rows

    def _given_rows(self, X: Any) -> SparseRows:
        """X as rows that :meth:`_rows` takes too: texts are transformed, vectors are not yet normalised."""
        if isinstance(self.features, VectorFeatures):
            if _holds_text(X):
                raise DataError(
                    "X is text, but the model was trained on vectors; "
                    f"give a matrix of {self.n_features} columns"
                )
            return sparse_rows(X, self.n_features)
        if type(X) is SparseRows or is_sparse(X):
            return sparse_rows(X, self.n_features)
        if not _is_list(X):
            raise DataError(f"X must be a list of texts, but is {show(X)}; wrap a single text in a list")
        return self.features.transform_texts(X if type(X) is list else list(X))

    def _best(
        self, X: Any, k: int, least: np.float32, normalize: bool, width: int, if_unknown: str, threads: int
    ) -> Found:
        """What :meth:`predict_arrays` returns."""
        with_unknown = if_unknown is WITH_LABELS or labels_unknown(if_unknown)  # the default costs no call
        if len(self.trees) == 1 and width == NO_BEAM:
            found = self._best_of_one(X, k, least, normalize, with_unknown)
            if found is not None:
                return found
        rows = self._rows(X)
        ids, probabilities = best_of_rows(self.trees, rows, k, least, normalize, width, threads)
        if not with_unknown:
            unknown = without_entries(rows)
            ids[unknown], probabilities[unknown] = -1, 0.0
        return ids, probabilities

    def _best_of_one(
        self, X: Any, k: int, least: np.float32, normalize: bool, with_unknown: bool
    ) -> Found | None:
        """The same for a single short text or row, in one call of a kernel; None if X is something else."""
        if type(X) is not list:
            row, norm = self._row, self.features.norm_of_rows
            n = copy_row(X, self.n_features, row.indices, row.values)
            if n < 0 or not (with_unknown or row.values[:n].any()):
                return None
            return self.trees[0].topk_row(row, n, norm, k, least, normalize)
        if len(X) != 1 or type(X[0]) is not str or not isinstance(self.features, TextFeatures):
            return None
        text = self.features.short_text(X[0])
        if text is None:
            return None
        if with_unknown:
            return self.trees[0].topk_text(*text, k, least, normalize)
        values = text[0].values  # of the row that the kernel makes of the text
        values[0] = 0.0
        found = self.trees[0].topk_text(*text, k, least, normalize)
        return found if values[0] != 0.0 else None  # where it is still 0, the row may be empty


def load(path: str | Path, *, verify: bool = True) -> Model:
    """Map a saved model into memory. ``verify=False`` skips the digest, for an instant start."""
    return Model(*read_parts(path, verify=verify))


def _of_bytes(content: bytes) -> Model:
    """What a pickle of a model calls."""
    return Model(*parts_of_bytes(content))


def _is_list(values: Any) -> bool:
    """Whether these are values one after another, and not a single string or number."""
    is_single = isinstance(values, (str, bytes)) or getattr(values, "ndim", 1) == 0
    return isinstance(values, Iterable) and not is_single


def _holds_text(X: Any) -> bool:
    """Whether X is a text or a list of texts, judged by the first one."""
    if isinstance(X, (str, bytes)):
        return True
    is_list = isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1
    return is_list and isinstance(next(iter(X), None), (str, bytes))


def _row(rows: SparseRows, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return rows.indices[part], rows.values[part]
