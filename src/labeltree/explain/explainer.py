"""A model's explanations: what its experts say, each shared out exactly, joined as the model joins them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import SparseRows
from labeltree.experts.combination import Combination
from labeltree.experts.expert import Expert
from labeltree.experts.explaining.contribution import Contribution
from labeltree.explain.deleting import Deletion, find_deletions
from labeltree.explain.estimating import Estimate, Experts, make_estimate
from labeltree.explain.labels import LabelCard, reliability_of
from labeltree.explain.names import Names
from labeltree.explain.result import LOG, PROBABILITY, ExpertPart, Explanation, LabelExplanation, WhyNot
from labeltree.explain.row import Row, Term
from labeltree.features.features import Features

_NEAR = 1e-9  # parts of a number that two may differ by and count as equal
_MISSING, _STRONGEST, _NEAREST = 5, 10, 5  # words and labels that are told


class Explainer:
    """Of a model's parts. Its methods may be called from many threads at once."""

    def __init__(
        self,
        features: Features,
        names: Names,
        experts: Sequence[Expert],
        combination: Combination,
        ask: Callable[[list[str], int], list[float]],
    ) -> None:
        """``ask`` tells the probabilities of a label for texts."""
        self.features, self.names = features, names
        self.experts, self.combination = experts, combination
        self._titles = [
            expert.kind if expert.title == expert.kind else f"{expert.kind} ({expert.title})"
            for expert in experts
        ]
        self._parts = (combination.weights / combination.weights.sum()).tolist()
        self._ask = ask

    def explain(self, rows: SparseRows, text: str | None, labels: Sequence[int]) -> Explanation:
        """Of a single prepared row, some labels."""
        start, end = int(rows.indptr[0]), int(rows.indptr[1])
        row = Row(self.features, rows.indices[start:end], rows.values[start:end], text)
        of_experts = [expert.explain(rows[:3], labels) for expert in self.experts]
        joined = [
            self._join(label, row, contributions)
            for label, contributions in zip(labels, zip(*of_experts, strict=True), strict=True)
        ]
        return Explanation(joined, row, bool(np.count_nonzero(row.values)))

    def _join(self, label: int, row: Row, contributions: Sequence[Contribution]) -> LabelExplanation:
        """The average of what experts say is linear in that; the map of it is a curve, taken as a line."""
        average = first = rest = 0.0
        for part, said in zip(self._parts, contributions, strict=True):
            average += part * said.probability
            first += part * said.at_empty
            rest += part * said.rest
        probability, at_empty = map(self.combination.probability_of, (average, first))
        is_log = probability > 0.0 and at_empty > 0.0  # else there is no logarithm
        unit = LOG if is_log else PROBABILITY
        slope = self._slope((average, first), (probability, at_empty), is_log=is_log)
        shares = (self._parts[0] * slope) * contributions[0].shares
        for part, said in zip(self._parts[1:], contributions[1:], strict=True):
            shares += (part * slope) * said.shares
        parts = tuple(
            ExpertPart(title, part, said, row, self.names)
            for title, part, said in zip(self._titles, self._parts, contributions, strict=True)
        )
        shared = shares, rest * slope
        of_label = label, probability, at_empty, unit, *shared, parts, row, self.names
        return LabelExplanation(*of_label, find_strongest=self.find_strongest)

    def find_strongest(self, told: LabelExplanation, n: int) -> list[Deletion]:
        """The words that a label hangs on, by an estimate; or, where there is none, by asking."""
        estimate = self._estimate(told)
        return self._delete(told, n, None) if estimate is None else estimate.strongest(n)

    def delete(self, told: LabelExplanation, n: int) -> list[Deletion]:
        """The words that a label hangs on, by asking."""
        return self._delete(told, n, self._estimate(told))

    def _delete(self, told: LabelExplanation, n: int, estimate: Estimate | None) -> list[Deletion]:
        if told.row.text is None:
            return []
        return find_deletions(told.row.text, told.words, n, lambda texts: self._ask(texts, told.id), estimate)

    def _estimate(self, told: LabelExplanation) -> Estimate | None:
        contributions = [part.contribution for part in told.parts]
        model = Experts(self.experts, self._parts, self.combination)
        return make_estimate(told.row, told.id, told.shares, contributions, model)

    def _slope(self, averages: tuple[float, float], become: tuple[float, float], *, is_log: bool) -> float:
        """Of the line between two points of what becomes of an average."""
        high, low = averages
        if abs(high - low) <= _NEAR * max(high, low):
            if high == 0.0:
                return 1.0
            middle = 0.5 * (high + low)
            high, low = min(1.0, middle * (1 + 1e-6)), middle * (1 - 1e-6)
            become = self.combination.probability_of(high), self.combination.probability_of(low)
        change = math.log(become[0]) - math.log(become[1]) if is_log else become[0] - become[1]
        return change / (high - low)

    def why_not(
        self, rows: SparseRows, text: str | None, label: int, instead: list[tuple[str, float]]
    ) -> WhyNot:
        """Where on its way a label was lost: in the tree that counts most, where it is the least probable."""
        explained = self.explain(rows, text, [label]).labels[0]
        parts = [
            (place, part) for place, part in enumerate(explained.parts) if part.contribution.path is not None
        ]
        if not parts:
            return WhyNot(explained, None, [], instead)
        place, part = max(parts, key=lambda found: (found[1].weight, -found[1].probability))
        path = part.contribution.path
        assert path is not None
        lost = int(np.argmin(path.log_probability))
        pulls = self.experts[place].pulls(label, lost)
        missing = [] if pulls is None else self._strongest(pulls, without=explained.row.columns)
        return WhyNot(explained, part.path[lost], missing, instead)

    def card(self, label: int, n_examples: int, *, is_calibrated: bool) -> LabelCard:
        """What is known of a label: by the tree that counts most."""
        n_rows = int(self.names.counts[label])
        order = np.argsort(-self.combination.weights, kind="stable").tolist()
        experts = [self.experts[place] for place in order]
        near = next((found for e in experts if (found := e.nearest_labels(label))), list[tuple[int, float]]())
        pulls = next((pulled for e in experts if (pulled := e.pulls(label)) is not None), None)
        tree = next((tree for expert in experts for tree in expert.trees), None)
        above = -1 if tree is None else int(tree.parent[tree.leaf_of_label[label]])
        return LabelCard(
            self.names.labels[label],
            n_rows,
            n_rows / max(1, n_examples),
            () if tree is None or above < 0 else self.names.typical(tree, above)[0],
            [(self.names.labels[other], likeness) for other, likeness in near[:_NEAREST]],
            [] if pulls is None else self.strongest(pulls, _STRONGEST),
            reliability_of(n_rows, is_calibrated=is_calibrated),
        )

    def _strongest(self, pulls: NDArray[np.float64], without: NDArray[np.int32]) -> list[Term]:
        pulls = pulls.copy()
        pulls[without] = 0.0
        return self.strongest(pulls, _MISSING)

    def strongest(self, pulls: NDArray[np.float64], n: int) -> list[Term]:
        """The features that speak most for something."""
        best = np.argpartition(-pulls, min(n, len(pulls) - 1))[:n] if len(pulls) else np.empty(0, np.int64)
        best = best[np.lexsort((best, -pulls[best]))]
        return [
            Term(self.features.feature_name(int(column)), float(pulls[column]))
            for column in best
            if pulls[column] > 0.0
        ]
