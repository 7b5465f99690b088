"""What a label's probability would be without some words, from what its explanation has read already.

Nothing is read or searched again. Trees are exact but for rounding; the neighbours are taken from the rows
that are similar to the whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.combination import Combination
from labeltree.experts.expert import Expert
from labeltree.experts.explaining.contribution import Contribution
from labeltree.explain.deleting import MOST_TRIED, Deletion
from labeltree.explain.row import Row
from labeltree.kernels.explain.deleting import MOST_APART, Columns, Occurrences, Paths, Voters, delete_words

_NO_VOTERS = Voters(
    np.empty((0, 0), np.float32), np.empty(0, np.bool_), np.empty(0, np.float32), 0, 1, 0.0
)


class Experts(NamedTuple):
    """What a model is made of, and each expert's part of the average."""

    experts: Sequence[Expert]
    parts: Sequence[float]
    combination: Combination


class Estimate:
    """Of one label of a text."""

    def __init__(self, names: dict[str, int], text: tuple[Columns, Occurrences], said: tuple[Paths, Voters], map: NDArray[np.float64], tried: NDArray[np.int64]) -> None:
        """``names`` are those of the words, ``tried`` the numbers of those that may be deleted."""
        self._names, self._given, self._tried = names, (*text, *said, map), tried

    def strongest(self, n: int) -> list[Deletion]:
        """Up to n words, each that without which the label falls most, and about what is left of it."""
        found, lowest, _ = self._delete(np.zeros(len(self._names), np.bool_), n)
        names = list(self._names)
        return [Deletion(names[k], p) for k, p in zip(self._tried[found].tolist(), lowest, strict=True)]

    def best(self, gone: Sequence[str], left: Sequence[str]) -> list[str]:
        """The words that are left, those first without which the label falls most once others are gone."""
        is_gone = np.zeros(len(self._names), np.bool_)
        is_gone[[self._names[name] for name in gone]] = True
        estimates = dict(zip(self._tried.tolist(), self._delete(is_gone, 1)[2], strict=True))
        return sorted(left, key=lambda name: estimates[self._names[name]])

    def _delete(self, is_gone: NDArray[np.bool_], n: int) -> tuple[NDArray[np.int64], list[float], list[float]]:
        words, lowest, estimates = np.empty(n, np.int64), np.empty(n), np.empty(len(self._tried))
        n = delete_words(*self._given, self._tried, is_gone, n, words, lowest, estimates)
        return words[:n], lowest[:n].tolist(), estimates.tolist()


def make_estimate(
    row: Row, label: int, shares: NDArray[np.float64], contributions: Sequence[Contribution], model: Experts, n: int
) -> Estimate | None:
    """For n deletions; None where what is left cannot be told without asking the model."""
    made = row.parts(min(n + 1, MOST_APART))
    if made is None:
        return None
    said = _paths_and_voters(made.columns, label, contributions, model, len(row.columns))
    if said is None:
        return None
    names = dict[str, int]()
    name = np.array([names.setdefault(word, len(names)) for word in row.lower_words], np.int64)
    by_name = np.bincount(name, row.of_words(shares)[0], len(names))
    order = np.argsort(-by_name, kind="stable")
    tried = order[by_name[order] > 0.0][:MOST_TRIED]
    places = Occurrences(made.number, made.places.first_word, made.places.n_words, name)
    return Estimate(names, (made.weighing, places), said, model.combination.map, tried)


def _paths_and_voters(
    columns: NDArray[np.int32], label: int, contributions: Sequence[Contribution], model: Experts, n_entries: int
) -> tuple[Paths, Voters] | None:
    voters, paths, parts = _NO_VOTERS, [], []
    for expert, part, said in zip(model.experts, model.parts, contributions, strict=True):
        if part == 0.0:
            continue
        if said.similar_rows is not None and voters is _NO_VOTERS:
            compared, n = said.similar_rows.compared, len(said.similar_rows.compared.rows)
            shared = np.ascontiguousarray(compared.shared[:, :n])
            of_rows = said.similar_rows.may_vote, compared.weight
            voters = Voters(shared, *of_rows, compared.most_voters, compared.power, part)
            continue
        path = expert.path_weights(label, columns)
        if path is None:
            return None
        paths.append(path)
        parts.append(part)
    if not paths:
        return None
    weights, bias, maps = (list(arrays) for arrays in zip(*paths, strict=True))
    ends = np.cumsum([len(array) for array in bias])
    return Paths(np.concatenate(weights), np.concatenate(bias), ends, np.stack(maps), np.array(parts)), voters
