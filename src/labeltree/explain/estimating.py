"""What a label's probability would be without some words, from what its explanation has read already.

Nothing is read or searched again. Trees are exact but for rounding; the neighbours are taken from the rows
that are similar to the whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import read_only
from labeltree.experts.combination import Combination
from labeltree.experts.expert import Expert
from labeltree.experts.explaining.contribution import Contribution
from labeltree.explain.deleting import MOST_TRIED, Deletion
from labeltree.explain.row import Row
from labeltree.kernels.explain.deleting import Columns, Occurrences, Paths, Voters, delete_words

_NO_VOTERS = Voters(np.empty((0, 0), np.int32), np.empty(0, np.bool_), np.empty(0, np.float32), 0, 1, 0.0)


class Experts(NamedTuple):
    """What a model is made of, and each expert's part of the average."""

    experts: Sequence[Expert]
    parts: Sequence[float]
    combination: Combination


class Estimate:
    """Of one label of a text."""

    def __init__(
        self,
        names: dict[str, int],
        text: tuple[Columns, Occurrences],
        said: tuple[Paths, Voters],
        map: NDArray[np.float64],
        tried: NDArray[np.int64],
    ) -> None:
        """``names`` are those of the words, ``tried`` the numbers of those that may be deleted."""
        self._names, self._given, self._tried = names, (*text, *said, map), tried

    def strongest(self, n: int) -> list[Deletion]:
        """Up to n words, each that without which the label falls most, and about what is left of it."""
        found, lowest, _ = self._delete(np.zeros(len(self._names), np.bool_), n)
        names = list(self._names)
        return list(map(Deletion, map(names.__getitem__, self._tried[found].tolist()), lowest))

    def best(self, gone: Sequence[str], left: Sequence[str]) -> list[str]:
        """The words that are left, those first without which the label falls most once others are gone."""
        is_gone = np.zeros(len(self._names), np.bool_)
        is_gone[[self._names[name] for name in gone]] = True
        estimates = dict(zip(self._tried.tolist(), self._delete(is_gone, 1)[2], strict=True))
        return sorted(left, key=lambda name: estimates[self._names[name]])

    def _delete(
        self, is_gone: NDArray[np.bool_], n: int
    ) -> tuple[NDArray[np.int64], list[float], list[float]]:
        words, lowest, estimates = np.empty(n, np.int64), np.empty(n), np.empty(len(self._tried))
        n = delete_words(*self._given, self._tried, is_gone, n, words, lowest, estimates)
        return words[:n], lowest[:n].tolist(), estimates.tolist()


def make_estimate(
    row: Row, label: int, shares: NDArray[np.float64], contributions: Sequence[Contribution], model: Experts
) -> Estimate | None:
    """None where what is left cannot be told without asking the model."""
    made = row.parts
    if made is None:
        return None
    said = _paths_and_voters(made.columns, label, contributions, model)
    if said is None or len(said[1].shared) not in (0, int(made.weighing.block_end[0])):
        return None
    names, by_name = dict[str, int](), list[float]()
    name = []
    for word, share in zip(row.lower_words, row.of_words(shares)[0], strict=True):
        number = names.setdefault(word, len(by_name))
        if number == len(by_name):
            by_name.append(0.0)
        by_name[number] += share
        name.append(number)
    tried = sorted((k for k, share in enumerate(by_name) if share > 0.0), key=lambda k: -by_name[k])
    places = Occurrences(*made[2:], np.array(name, np.int64))
    given = np.array(tried[:MOST_TRIED], np.int64)
    return Estimate(names, (made.weighing, places), said, read_only(model.combination.map), given)


def _paths_and_voters(
    columns: NDArray[np.int32], label: int, contributions: Sequence[Contribution], model: Experts
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
    weights, bias, maps = zip(*paths, strict=True)
    ends, of_trees = np.array([len(array) for array in bias]).cumsum(), (np.array(maps), np.array(parts))
    if len(paths) == 1:
        return Paths(weights[0], bias[0], ends, *of_trees), voters
    return Paths(np.concatenate(weights), np.concatenate(bias), ends, *of_trees), voters
