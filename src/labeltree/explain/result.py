"""What an explanation says. Names are looked up when they are asked for: most of it may never be."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.explaining.contribution import Contribution, Leaves
from labeltree.explain.deleting import Deletion, check_number
from labeltree.explain.names import Names
from labeltree.explain.row import Feature, Row, Term, Word

LOG, PROBABILITY = "log-probability", "probability"  # what shares sum to the change of


class Node(NamedTuple):
    """A node on the way from the root to a label."""

    labels: tuple[str, ...]  # below it, those of most training rows; of a leaf its own
    n_labels: int  # below it
    probability: float  # given its parent
    at_empty: float  # the same for the empty document
    terms: list[Term]  # what the log of this probability changed by, the largest share first

    @property
    def name(self) -> str:
        more = self.n_labels - len(self.labels)
        return ", ".join(self.labels) + (f" and {more:,} more" if more else "")


class Neighbour(NamedTuple):
    """A similar training row."""

    row: int  # counted from 0, over those that were trained on
    similarity: float
    vote: float  # its part of all votes
    has_label: bool
    labels: tuple[str, ...]  # all that it has
    terms: list[Term]  # the parts of the similarity: what both rows have


@dataclass(eq=False, repr=False)
class ExpertPart:
    """What one expert of the model says of a label."""

    title: str
    weight: float  # its part of the average; those of all experts sum to 1
    contribution: Contribution
    row: Row
    names: Names

    @property
    def probability(self) -> float:
        return self.contribution.probability

    @property
    def at_empty(self) -> float:
        return self.contribution.at_empty

    @property
    def leaves(self) -> Leaves | None:
        """Of a forest."""
        return self.contribution.leaves

    @functools.cached_property
    def path(self) -> list[Node]:
        """Of a tree: from the root to the label."""
        path = self.contribution.path
        if path is None:
            return []
        return [
            Node(
                *self.names.typical(path.tree, node),
                math.exp(path.log_probability[place]),
                math.exp(path.at_empty[place]),
                self.row.terms(path.shares[place]),
            )
            for place, node in enumerate(path.nodes)
        ]

    @functools.cached_property
    def neighbours(self) -> list[Neighbour]:
        """Of training rows: those that vote, the most similar first."""
        found = self.contribution.similar_rows
        if found is None:
            return []
        shared = found.shared
        numbers = zip(found.rows.tolist(), found.similarity.tolist(), found.votes.tolist(), strict=True)
        return [
            Neighbour(
                *of_row,
                bool(found.has_label[place]),
                self._names_of(found.labels_of(place)),
                self.row.terms(shared[place]),
            )
            for place, of_row in enumerate(numbers)
        ]

    def _names_of(self, labels: NDArray[np.int32]) -> tuple[str, ...]:
        return tuple(self.names.labels[label] for label in labels.tolist())

    def to_dict(self, n_terms: int) -> dict[str, Any]:
        told: dict[str, Any] = {
            "expert": self.title,
            "weight": self.weight,
            "probability": self.probability,
            "at_empty": self.at_empty,
        }
        if self.path:
            told["path"] = [_node_dict(node, n_terms) for node in self.path]
        if self.contribution.similar_rows is not None:
            told["neighbours"] = [
                near._asdict() | {"terms": _term_dicts(near.terms[:n_terms])} for near in self.neighbours
            ]
        if self.leaves is not None:
            told |= {"trees": self.leaves.n_trees, "trees_with_label": self.leaves.n_with_label}
        return told


@dataclass(eq=False, repr=False)
class LabelExplanation:
    """Why a label has its probability: the share of each word, feature and expert.

    ``shares``, of the entries of the row, and ``rest`` sum to the change of what ``unit`` says, from the
    empty document to this one.
    """

    id: int  # of the label
    probability: float
    at_empty: float
    unit: str
    shares: NDArray[np.float64]
    rest: float  # due to nothing in particular
    parts: tuple[ExpertPart, ...]
    row: Row
    names: Names
    deletions: list[Deletion] | None = None  # None: they were not asked for
    # What finds words that it hangs on
    find_strongest: Callable[[LabelExplanation, int], list[Deletion]] = lambda told, n: []

    @functools.cached_property
    def label(self) -> str:
        return self.names.labels[self.id]

    @property
    def total(self) -> float:
        """What all shares sum to."""
        return float(self.shares.sum()) + self.rest

    @functools.cached_property
    def features(self) -> list[Feature]:
        """The entries of the row, the largest share first."""
        return self.row.features(self.shares)

    @functools.cached_property
    def words(self) -> list[Word]:
        """The words of the text in their order; none of a vector."""
        return self.row.words(self.shares)

    @functools.cached_property
    def terms(self) -> list[Term]:
        """Words, each once, or features where there is no text; the largest share first."""
        return self.row.terms(self.shares)

    def strongest(self, n: int = 3) -> list[Deletion]:
        """The n words of a text that the label hangs on: those whose deletion, one after another, lowers its
        probability most; and about what is left of it. Fewer where no other lowers it; none of a vector.

        Estimated from what the explanation is made of. `deletions` of :meth:`labeltree.Model.explain` are
        told by the model itself, which takes longer.
        """
        check_number(n)
        return self.find_strongest(self, n)

    def to_dict(self, n_terms: int = 10) -> dict[str, Any]:
        """For JSON; of nodes and neighbours only the first ``n_terms`` terms."""
        asked = self.deletions is not None
        return {
            "label": self.label,
            "probability": self.probability,
            "at_empty": self.at_empty,
            "unit": self.unit,
            "total": self.total,
            "rest": self.rest,
            "terms": _term_dicts(self.terms),
            "words": [word._asdict() for word in self.words],
            "features": [feature._asdict() for feature in self.features],
            "experts": [part.to_dict(n_terms) for part in self.parts],
            **({"deletions": [found._asdict() for found in self.deletions or ()]} if asked else {}),
        }

    def __repr__(self) -> str:
        from labeltree.explain.terminal import label_lines

        return "\n".join(label_lines(self))


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Of the labels of one text or row."""

    labels: list[LabelExplanation]
    row: Row
    is_known: bool  # whether the model knows a word or feature of it

    @property
    def text(self) -> str | None:
        return self.row.text

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        labels = [label.to_dict() for label in self.labels]
        unknown = {} if self.is_known else {"unknown": True}
        return {"text": self.text, "labels": labels} | unknown

    def to_html(self) -> str:
        """A page of its own, with the text highlighted."""
        from labeltree.explain.html import page_of

        return page_of([self])

    def __repr__(self) -> str:
        from labeltree.explain.terminal import explanation_lines

        return "\n".join(explanation_lines(self))

    def _repr_html_(self) -> str:
        """For notebooks."""
        from labeltree.explain.html import fragment_of

        return fragment_of(self)


@dataclass(frozen=True, eq=False, repr=False)
class WhyNot:
    """Where on its way a label was lost, and to which words."""

    explanation: LabelExplanation
    lost_at: Node | None  # the least probable node of its path; None where the model has no tree
    missing: list[Term]  # what would speak for that node, and is not in the text: of each, by 1 more of it
    instead: list[tuple[str, float]]  # what is given, by the rule if there is one

    @property
    def label(self) -> str:
        return self.explanation.label

    @property
    def probability(self) -> float:
        return self.explanation.probability

    @property
    def against(self) -> list[Term]:
        """The words that speak against it: at that node, or at all."""
        terms = self.explanation.terms if self.lost_at is None else self.lost_at.terms
        return [term for term in terms if term.share < 0.0]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "explanation": self.explanation.to_dict(),
            "lost_at": None if self.lost_at is None else _node_dict(self.lost_at, len(self.lost_at.terms)),
            "against": _term_dicts(self.against),
            "missing": _term_dicts(self.missing),
            "instead": [{"label": label, "probability": p} for label, p in self.instead],
        }

    def __repr__(self) -> str:
        from labeltree.explain.terminal import why_not_lines

        return "\n".join(why_not_lines(self))


def _term_dicts(terms: list[Term]) -> list[dict[str, Any]]:
    return [term._asdict() for term in terms]


def _node_dict(node: Node, n_terms: int) -> dict[str, Any]:
    return node._asdict() | {"labels": list(node.labels), "terms": _term_dicts(node.terms[:n_terms])}
