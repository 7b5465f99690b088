"""Model: what training makes. It predicts, saves itself, and can be loaded by any number of processes."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree import __version__
from labeltree.config import Config
from labeltree.data.files import are_files
from labeltree.data.formats import Reading, check_in_memory
from labeltree.data.iterables import is_source, open_source
from labeltree.data.rows import LabelRows, SparseRows, pointers
from labeltree.decisions.describing import rule_facts
from labeltree.decisions.rule import Rule
from labeltree.errors import DataError, ParameterError, show
from labeltree.experts.combination import Combination, equal_weights
from labeltree.experts.expert import Expert
from labeltree.features.features import Features, is_list
from labeltree.features.reading import DataSet, given_data_set, read_data_set, source_data_set
from labeltree.features.strings import StringTable
from labeltree.metrics.testing import Measures, measure
from labeltree.predictor import Predictor
from labeltree.query import (
    DEFAULT_SEARCH,
    EXPLAINED,
    OF_MODEL,
    check_columns,
    check_ranks,
    make_query,
    query_all,
)
from labeltree.storage.model_file import Parts, parts_of_bytes, parts_to_bytes, read_parts, write_parts
from labeltree.tree import LabelTree
from labeltree.wording import counted

if TYPE_CHECKING:
    from labeltree.decisions.tuning import Tuned
    from labeltree.explain.explainer import Explainer
    from labeltree.explain.labels import LabelCard
    from labeltree.explain.result import Explanation, WhyNot

_log = logging.getLogger(__name__)


class Model(Predictor):
    """A few experts, such as label trees, whose probabilities are combined; and what is known of them.

    Its methods may be called from many threads at once.
    """

    def __init__(
        self,
        config: Config,
        features: Features,
        labels: StringTable,
        label_counts: NDArray[np.int64],
        n_examples: int,
        experts: Sequence[Expert],
        combination: Combination | None = None,
        card: Mapping[str, str] | None = None,
        version: str | None = __version__,
        rule: Rule | None = None,
    ) -> None:
        combination = combination or equal_weights(len(experts))
        super().__init__(features, labels, label_counts, n_examples, experts, combination, rule)
        self.config = config  # as it was given, so that it means the same for other data
        self.card = dict(card or {})  # facts that are saved with the model, such as its licence
        self.version = version  # of the labeltree that trained it now or wrote its file; None: it did not say
        self.skipped_lines = 0  # bad lines left out when this model was trained ...
        self.skipped_messages: list[str] = []  # ... and what was wrong with the first few
        self.unused_rows = 0  # training rows without labels, where these were no examples
        self._label_ids: dict[str, int] = {}  # of labels that were asked for
        self.tuned: Tuned | None = None  # what a rule gains that training has tuned

    def __repr__(self) -> str:
        kinds = Counter((expert.kind, expert.plural) for expert in self.experts)
        experts = [plural if kind == plural else counted(n, kind) for (kind, plural), n in kinds.items()]
        tuned = "" if self.rule is None else f", tuned for {self.rule.measure}"
        return (
            f"<labeltree.Model: {self.n_examples:,} rows, {self.n_labels:,} labels, "
            f"{self.n_features:,} features, {', '.join(experts)}{tuned}>"
        )

    @property
    def label_trees(self) -> list[LabelTree]:
        return [tree for expert in self.experts for tree in expert.trees]

    @property
    def chosen(self) -> dict[str, dict[str, Any]]:
        """What the config left to the data, by titles of experts: of trees, their kinds of nodes."""
        return {expert.title: dict(expert.chosen) for expert in self.experts if expert.chosen}

    @property
    def is_calibrated(self) -> bool:
        """Whether probabilities were fitted to held-out rows, of which there must be enough."""
        return len(self.combination.map) > 0 or all(expert.is_calibrated for expert in self.experts)

    def read(
        self,
        path: str | Path,
        *,
        format: str = "auto",
        text_column: str = "text",
        labels_column: str = "labels",
        label_separator: str = ";",
        skip_bad_lines: bool = False,
    ) -> tuple[SparseRows, LabelRows, int]:
        """A data file as rows for this model: features, labels (-1: unknown), number of skipped lines."""
        reading = Reading(format, text_column, labels_column, label_separator)
        data = read_data_set(self.features, self.labels, path, reading, skip_bad_lines=skip_bad_lines)
        return data.rows, data.labels, data.bad_lines.skipped

    def test(
        self, X: Any, Y: Any = None, *, k: int | Sequence[int] = (1, 3, 5), normalize: bool = False,
        search: str = DEFAULT_SEARCH, beam: int | None = None, threads: int = 0, format: str = "auto",
        text_column: str = "text", labels_column: str = "labels", label_separator: str = ";",
        skip_bad_lines: bool = False, threshold: float | None = None, allowed: Any = None,
        without: Any = None, rule: Any = OF_MODEL,
    ) -> Measures:  # fmt: skip
        """How good the predictions are, as `labeltree test` says it: a mapping that shows itself as a table.

        ``X`` is the path of a data file, or texts or rows, whose true labels are ``Y``: lists of labels, an
        indicator matrix over the model's labels, or what :meth:`read` gave; or an iterable of pairs of both,
        of dicts, or a data set, as :func:`labeltree.train` takes them. ``k`` may be several. Measures
        without a k are those of the sets of labels of at least ``threshold``, or 0.5, or of a rule;
        ``allowed``, ``without`` and ``rule`` are those of ``predict``.
        """
        ranks = check_ranks(k)
        query = make_query(ranks[-1], normalize=normalize, search=search, beam=beam)
        reading = Reading(format, text_column, labels_column, label_separator)
        data = self._data_set(X, Y, reading, skip_bad_lines)
        query = self.ruled(self.masked(query, allowed, without), rule)
        return measure(self, data, ranks, query, threads, threshold)

    def tune(
        self, X: Any, Y: Any = None, *, measure: str, k: int | None = None, threads: int = 0,
        format: str = "auto", text_column: str = "text", labels_column: str = "labels",
        label_separator: str = ";", skip_bad_lines: bool = False,
    ) -> Tuned:  # fmt: skip
        """A rule that is good for a measure, fitted to rows that the model was not trained on, and what it
        gains and costs on rows that it was not fitted to. ``model.rule = tuned.rule`` makes it the model's,
        and `save` keeps it. ``X`` and ``Y`` are those of :meth:`test`."""
        from labeltree.decisions.goals import parse_goal
        from labeltree.decisions.seen import seen_notices
        from labeltree.decisions.tuning import tune_rule  # and with it all that fits

        reading = Reading(format, text_column, labels_column, label_separator)
        data = self._data_set(X, Y, reading, skip_bad_lines)
        tuned = tune_rule(self, data, parse_goal(measure, k), threads)
        for line in seen_notices(self, data.rows, threads):
            _log.warning("%s", line)
        return tuned

    def _data_set(self, X: Any, Y: Any, reading: Reading, skip_bad_lines: bool) -> DataSet:
        """Of a file, an iterable, or of what is in memory."""
        if isinstance(X, (str, Path)):
            if Y is not None:
                raise DataError("Y must be None when X is a file, whose lines have the labels")
            return read_data_set(self.features, self.labels, X, reading, skip_bad_lines=skip_bad_lines)
        if are_files(X):
            raise DataError(f"a test is of one file, but X is a list of {len(X)}; test each file by itself")
        if Y is None and is_source(X):
            source = open_source(X, reading.check().columns)
            check_in_memory(reading, skip_bad_lines, has_columns=source.has_columns)
            return source_data_set(self.features, self.label_names, source)
        check_in_memory(reading, skip_bad_lines)
        return given_data_set(self.features.given_rows(X), Y, self.label_names)

    def inspect(self) -> dict[str, Any]:
        """What `labeltree inspect` shows."""
        statistics: dict[str, list[dict[str, Any]]] = {}  # of the experts of each kind
        for expert in self.experts:
            statistics.setdefault(expert.plural, []).append(expert.statistics())
        return {
            "version": self.version,
            "card": dict(self.card),
            "config": self.config.to_dict(),
            "chosen": self.chosen,
            **self.features.facts(),
            "n_examples": self.n_examples,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "n_labels_without_examples": int(np.count_nonzero(self.label_counts == 0)),
            "calibrated": self.is_calibrated,
            **({} if self.rule is None else rule_facts(self.rule)),
            "parameter_bytes": sum(expert.parameter_bytes for expert in self.experts),
            **statistics,
        }

    def explain(
        self, X: Any, label: str | Sequence[str] | None = None, k: int | None = None, deletions: int = 0,
        *, rule: Any = OF_MODEL,
    ) -> Explanation:  # fmt: skip
        """Why a text or row has its labels: the best k that ``predict`` gives, or those given.

        Of each label the shares of words or features in its probability, exact: they sum to log P(X) - log
        P(empty document). And what each expert says: the path through a tree, similar training rows. Without
        a k it is the first three. With ``deletions`` also so many words of a text that a label hangs on, by
        asking again without them. ``rule`` is that of ``predict``.
        """
        given, rows = self._single(X)
        if label is None:
            ids = self._first(given, k, rule)[0]
        else:
            ids = self._given_labels(label, k)
        explained = self._explainer.explain(rows, self.features.text_of(X), ids)
        if deletions:
            self._delete_words(X, explained, deletions)
        return explained

    def _given_labels(self, label: Any, k: int | None) -> list[int]:
        if not isinstance(label, str) and not is_list(label):
            raise ParameterError(
                f"label must be a label or a list of labels, but is {show(label)}; or give k, how many"
            )
        if k is not None:
            raise ParameterError(f"k={show(k)} has no effect where labels are given; give one of them")
        return list(map(self._label_id, [label] if isinstance(label, str) else label))

    def _first(self, given: SparseRows, k: int | None, rule: Any) -> tuple[list[int], list[float]]:
        """The labels of a row that ``predict`` gives, the first k of them; without a k a few."""
        asked = make_query(EXPLAINED if k is None else check_columns(k))
        ids, probabilities, _ = self.best(given, self.ruled(asked, rule, is_usual=k is None), 1)
        n = min(asked.k, int(np.count_nonzero(ids[0] >= 0)))
        return ids[0, :n].tolist(), probabilities[0, :n].tolist()

    def _delete_words(self, X: Any, explained: Explanation, n: int) -> None:
        from labeltree.explain.deleting import check_deletions

        check_deletions(n, X)
        for found in explained.labels:
            found.deletions = self._explainer.delete(found, n)

    def why_not(self, X: Any, label: str, *, rule: Any = OF_MODEL) -> WhyNot:
        """Where on its way through a tree a label was lost, and to which words of a text or row; and which
        labels it has instead, by the ``rule`` of ``predict``."""
        given, rows = self._single(X)
        wanted = self._label_id(label)
        names, (ids, probabilities) = self.label_names, self._first(given, None, rule)
        instead = list(zip(map(names.__getitem__, ids), probabilities, strict=True))
        return self._explainer.why_not(rows, self.features.text_of(X), wanted, instead)

    def label(self, name: str) -> LabelCard:
        """What the model knows of a label: training rows, labels near it, words that speak for it."""
        return self._explainer.card(self._label_id(name), self.n_examples, is_calibrated=self.is_calibrated)

    def find_labels(self, part: str) -> list[tuple[str, int]]:
        """Labels whose names have a part, in any case, with their training rows; the best matches first."""
        return self.first_labels(part, self.n_labels)[0]

    def first_labels(self, part: str, n: int) -> tuple[list[tuple[str, int]], int]:
        """The first n of :meth:`find_labels`, and how many there are."""
        if not isinstance(part, str):
            raise ParameterError(f"part must be a text, but is {show(part)}; an empty one finds all labels")
        ids, n_found = self._label_search.first(part, n)
        names = self._label_search.names_of(ids)
        return list(zip(names, self.label_counts[ids].tolist(), strict=True)), n_found

    def save(self, path: str | Path) -> None:
        """Write one file, completely or not at all."""
        write_parts(path, self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle or a copy holds the bytes of the model file, which are checked when it is restored."""
        told = ("skipped_lines", "skipped_messages", "unused_rows")
        return _of_bytes, (parts_to_bytes(self._parts()),), {name: getattr(self, name) for name in told}

    def _parts(self) -> Parts:
        return Parts(**{name: getattr(self, name) for name in Parts._fields})

    @functools.cached_property
    def _explainer(self) -> Explainer:
        from labeltree.explain.explainer import Explainer
        from labeltree.explain.names import Names

        names = Names(self.labels, self.label_counts)
        return Explainer(self.features, names, self.experts, self.combination, self._ask)

    def _ask(self, texts: list[str], label: int) -> list[float]:
        """The probabilities of a label for a few short texts, quicker than those of many are found."""
        rows = [self.features.prepared(self.features.single(text)) for text in texts]
        columns, values = (np.concatenate(arrays) for arrays in zip(*(row[1:3] for row in rows), strict=True))
        arrays = pointers([len(row.indices) for row in rows]), columns, values
        labels = np.arange(len(texts) + 1), np.full(len(texts), label, np.int32)
        return self._ensemble.score(arrays, labels, query_all()).tolist()

    def _label_id(self, name: Any) -> int:
        """Of a label; kept, as a table of strings takes longer for one than a search."""
        label = str(name)
        try:
            return self._label_ids[label]
        except KeyError:
            found = self._label_ids[label] = int(self.check_labels([label])[0])
            return found

    def _single(self, X: Any) -> tuple[SparseRows, SparseRows]:
        """A single text or row in the model's features, as given and ready for the experts."""
        given = self.features.single(X)
        if given.n_rows != 1:
            raise DataError(f"X must be one text or row, but has {given.n_rows} rows")
        return given, self.features.prepared(given)


def load(path: str | Path, *, verify: bool = True) -> Model:
    """Map a saved model into memory. ``verify=False`` skips the digest, for an instant start."""
    return Model(**read_parts(path, verify=verify)._asdict())


def _of_bytes(content: bytes) -> Model:
    """What a pickle of a model calls."""
    return Model(**parts_of_bytes(content)._asdict())
