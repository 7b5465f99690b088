"""What a model knows of a label, and labels found by a part of their names."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labeltree.explain.row import Term
from labeltree.features.strings import StringTable
from labeltree.wording import near_names

FEW, SOME = 5, 50  # training rows of labels: with fewer a model has hardly learned one
_LOOKED_AT = 5_000  # names that a wrong one is compared with
_PART = 3  # characters that names must have in common for that
_FEW_FOUND = 500  # places: more are found by arrays
_NONE: NDArray[np.int64] = np.empty(0, np.int64)
_CONTROLS = [bytes([code]) for code in (*range(32), 127)]  # what may stand between names: it has no case


@dataclass(frozen=True, repr=False)
class LabelCard:
    """What a model knows of one of its labels."""

    label: str
    n_rows: int  # training rows that have it ...
    frequency: float  # ... of all
    group: tuple[str, ...]  # typical labels of the group that it is in
    nearest: list[tuple[str, float]]  # labels beside it in a tree, and how alike their weights are, at most 1
    words: list[Term]  # what speaks most for it: how much log P rises with 1 of it, from the empty document
    reliability: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "label": self.label,
            "rows": self.n_rows,
            "frequency": self.frequency,
            "group": list(self.group),
            "nearest": [{"label": label, "likeness": likeness} for label, likeness in self.nearest],
            "words": [word._asdict() for word in self.words],
            "reliability": self.reliability,
        }

    def __repr__(self) -> str:
        from labeltree.explain.terminal import card_lines

        return "\n".join(card_lines(self))


def reliability_of(n_rows: int, *, is_calibrated: bool) -> str:
    """What counts say, in words: nothing is measured for a single label."""
    if n_rows == 0:
        return "no training row has it: its probability is 0, whatever the text"
    rows = "1 training row has it" if n_rows == 1 else f"{n_rows:,} training rows have it"
    if n_rows < FEW:
        said = f"{rows}: the model knows these texts rather than the label; expect it to be missed often"
    elif n_rows < SOME:
        said = f"{rows}: enough to find it in similar texts, too few to judge its probabilities by themselves"
    else:
        said = f"{rows}: enough for `labeltree test --per-label` to tell how good it is by itself"
    fitted = "were fitted to held-out rows, of all labels together" if is_calibrated else "are not calibrated"
    return f"{said}. The model's probabilities {fitted}."


class LabelSearch:
    """The names of all labels in one string, without case: found at once among millions."""

    def __init__(self, labels: StringTable, counts: NDArray[np.int64]) -> None:
        self.labels, self.counts = labels, counts
        self._lock = threading.Lock()
        self._joined: bytes | None = None
        self._begins: NDArray[np.int64] = np.empty(0, np.int64)
        self._ends: NDArray[np.int64] = np.empty(0, np.int64)
        self._separator = b"\0"
        self._rank: NDArray[np.int64] = np.empty(0, np.int64)  # of each label by its training rows

    def find(self, part: str) -> NDArray[np.int64]:
        """Ids of the labels whose names have a part: the name itself first, then those that begin with it,
        then the others; of each kind those of most training rows first."""
        ids, key = self._matches(part)
        return ids[np.argsort(key)]

    def first(self, part: str, n: int) -> tuple[NDArray[np.int64], int]:
        """The first n of :meth:`find`, and how many there are: only those are put in order."""
        ids, key = self._matches(part)
        if n < len(ids):
            best = np.argpartition(key, n)[:n]
            return ids[best[np.argsort(key[best])]], len(ids)
        return ids[np.argsort(key)], len(ids)

    def _matches(self, part: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids of labels, and for each a number of its own that tells its place."""
        self._prepare()
        joined, wanted = self._joined or b"", part.casefold().encode("utf-8", "replace")
        if not wanted:
            return np.arange(len(self._begins)), self._rank
        if self._separator in wanted:  # no name has it, or not as it was
            return _NONE, _NONE
        is_few = joined.count(wanted) < _FEW_FOUND
        ids, is_beginning = (_find_few if is_few else _find_many)(joined, wanted, self._begins, self._ends)
        length = self._ends[ids] - self._begins[ids]
        kind = np.where(is_beginning, np.where(length > len(wanted), 1, 0), 2)
        return ids, kind * len(self._begins) + self._rank[ids]

    def near(self, name: str, n: int = 3) -> list[str]:
        """Names that a wrong one may have been meant for."""
        folded = name.casefold()
        candidates: list[int] = []
        for part in dict.fromkeys((folded, folded[:_PART], folded[-_PART:])):
            if part:
                candidates += self.find(part)[:_LOOKED_AT].tolist()
        return near_names(name, self.names_of(np.array(list(dict.fromkeys(candidates)))), n)

    def names_of(self, ids: NDArray[np.int64]) -> list[str]:
        """Many at once."""
        data, offsets = self.labels.tensors(ids.astype(np.int64))
        joined, places = data.tobytes(), offsets.tolist()
        return [joined[start:end].decode("utf-8", "backslashreplace") for start, end in pairwise(places)]

    def _prepare(self) -> None:
        with self._lock:
            if self._joined is None:
                self._join()

    def _join(self) -> None:
        data, offsets = self.labels.tensors()
        n, content = len(offsets) - 1, data.tobytes()
        separator = next((code for code in _CONTROLS if code not in content), _CONTROLS[0])
        self._separator = separator
        # Where names have all of them, one is no longer told from others of its kind.
        data = np.where(data == separator[0], np.uint8(32), data)
        is_name = np.ones(len(data) + n, np.bool_)
        is_name[offsets[1:] + np.arange(n)] = False
        spread = np.full(len(is_name), separator[0], np.uint8)
        spread[is_name] = data
        text = spread.tobytes().decode("utf-8", "replace")
        joined = (text.lower() if text.isascii() else text.casefold()).encode()
        self._ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == separator[0])
        self._begins = np.append(0, self._ends + 1)[:n]
        order = np.lexsort((np.arange(n), -self.counts))
        self._rank = np.empty(n, np.int64)
        self._rank[order] = np.arange(n)
        self._joined = joined


_Ids: TypeAlias = NDArray[np.int64]
_Bools: TypeAlias = NDArray[np.bool_]


def _find_few(joined: bytes, part: bytes, begins: _Ids, ends: _Ids) -> tuple[_Ids, _Bools]:
    """The names that have a part, and whether they begin with it: one place after another."""
    places = []
    start = joined.find(part)
    while start >= 0:
        places.append(start)
        start = joined.find(part, start + len(part))
    found = np.array(places, np.int64)
    ids, first = np.unique(np.searchsorted(ends, found), return_index=True)
    return ids, found[first] == begins[ids]


def _find_many(joined: bytes, part: bytes, begins: _Ids, ends: _Ids) -> tuple[_Ids, _Bools]:
    """The same by arrays as long as all names, in a time that does not depend on how many there are."""
    content = np.frombuffer(joined, np.uint8)
    n = len(content) - len(part) + 1
    is_found = np.zeros(len(content), np.bool_)
    is_found[:n] = content[:n] == part[0]
    for place, byte in enumerate(part[1:], 1):
        is_found[:n] &= content[place : place + n] == byte
    ids = np.flatnonzero(np.logical_or.reduceat(is_found, begins))
    return ids, is_found[begins[ids]]
