"""What a check finds, and what may be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.checking.characters import SIGNS
from labeltree.checking.collecting import Collected
from labeltree.data.bad_lines import no_rows, shorten
from labeltree.errors import DataError

_SHOWN = 3  # lines or labels that are named
_FEW_EXAMPLES = (1, 2, 5)
_NEARLY_ALL = 0.9  # of the rows

# By their kinds: what was found, and what may help.
ADVICE = {
    "bad-lines": ("lines that cannot be read", "correct them, or train with --skip-bad-lines"),
    "no-labels": (
        "rows without a label",
        "label them or take them out, unless nothing fits them: they are negatives of all labels",
    ),
    "empty": (
        "rows without a word or value",
        "take them out: they teach which labels are frequent, and nothing else",
    ),
    "duplicates": (
        "rows with the words or values and the labels of an earlier row",
        "take them out, or they count twice, and a split of the file has them on both sides",
    ),
    "contradictions": (
        "rows with the words or values of an earlier row, but other labels",
        "decide for one set of labels, or unite them: each row teaches that the other's labels are wrong",
    ),
    "replacement": (
        "rows with the replacement character U+FFFD",
        "letters are lost: get the file again in its own encoding, as UTF-8",
    ),
    "control": (
        "rows with control characters",
        "take these out of the texts; a conversion has often left them over",
    ),
    "mojibake": (
        "rows with signs of a wrong encoding, such as Ã© for é",
        "the file was UTF-8 and was once read as Latin-1 or Windows-1252: convert it again",
    ),
    "rare": (
        f"labels of at most {_FEW_EXAMPLES[-1]} rows",
        "they are hard to learn: more rows help, or a broader label instead of several",
    ),
    "everywhere": (
        f"labels of more than {100 * _NEARLY_ALL:.0f} % of the rows",
        "they say nothing about a row: take them out, unless they are needed",
    ),
    "similar-names": (
        "labels that differ from an earlier one in case or white space only",
        "write them alike, or they are learned as two labels",
    ),
    "shared": (
        "rows of the second file with the words or values of a row of the first",
        "take them out of one file, or a test promises too much",
    ),
    "unknown-labels": (
        "labels of the second file that the first does not have",
        "no model of the first can give them: in a test they count as not found",
    ),
}


class Finding(NamedTuple):
    """Something remarkable about some rows or labels."""

    kind: str
    n_found: int
    examples: list[Any]  # the first few
    examples_are: str = "lines"  # their numbers, "labels" or "messages"

    def facts(self) -> dict[str, Any]:
        """For ``--json``."""
        what, advice = ADVICE[self.kind]
        shown = {self.examples_are: self.examples}
        return {"kind": self.kind, "finding": what, "count": self.n_found, **shown, "advice": advice}

    def line(self) -> str:
        """``rows without a label: 12 (lines 3, 8, 9, ...); advice``."""
        what, advice = ADVICE[self.kind]
        is_number = self.examples_are == "lines"
        is_name = self.examples_are == "labels"
        shown = ", ".join(
            shorten(each.encode("utf-8", "surrogatepass")) if is_name else str(each) for each in self.examples
        )
        more = ", ..." if self.n_found > len(self.examples) else ""
        return f"{what}: {self.n_found:,} ({'lines ' * is_number}{shown}{more}); {advice}"


class Report(NamedTuple):
    """What is known of a file, or of a pair."""

    name: str
    facts: dict[str, float]
    findings: list[Finding]


def check_file(data: Collected, *, to_train: bool = True) -> Report:
    """Numbers and findings of one file, which is one to train on or to test with."""
    if data.n_rows == 0:
        raise no_rows(data.name, "check", data.bad_lines)
    n_of_row, n_of_label = np.diff(data.labels.indptr), np.bincount(data.labels.indices)
    counts = n_of_label[n_of_label > 0]
    few = {f"labels_with_{n}_or_fewer": int(np.count_nonzero(counts <= n)) for n in _FEW_EXAMPLES}
    facts: dict[str, float] = {
        "rows": data.n_rows,
        "labels": len(counts),
        "labels_per_row": float(n_of_row.mean()),
        "words_per_row": float(data.n_parts.mean()),
        "rows_per_label": float(counts.mean()) if len(counts) else 0.0,
        **few,
    }
    is_duplicate, is_contradiction = _repeated(data)
    rows = {
        "no-labels": n_of_row == 0,
        "empty": data.n_parts == 0,
        "duplicates": is_duplicate,
        "contradictions": is_contradiction,
        **{sign: data.has_sign[:, column] for column, sign in enumerate(SIGNS)},
    }
    is_rare = (n_of_label > 0) & (n_of_label <= _FEW_EXAMPLES[-1])
    labels: dict[str, Sequence[int] | NDArray[Any]] = {
        "rare": np.flatnonzero(is_rare & to_train),
        "everywhere": np.flatnonzero(n_of_label > _NEARLY_ALL * data.n_rows),
        "similar-names": _similar_names(data),
    }
    bad = data.bad_lines
    messages = [message.removeprefix(f"{data.name}, ") for message in bad.messages[:_SHOWN]]
    findings = [
        Finding("bad-lines", bad.skipped, messages, "messages"),
        *(_of_rows(kind, data, chosen) for kind, chosen in rows.items()),
        *(_of_labels(kind, data, chosen) for kind, chosen in labels.items()),
    ]
    return Report(data.name, facts, [finding for finding in findings if finding.n_found])


def check_pair(first: Collected, second: Collected) -> Report:
    """What two files have in common, such as those to train on and to test with."""
    if (first.label_names is None) != (second.label_names is None):
        raise DataError(
            f"{first.name} and {second.name}: one has texts, the other vectors; give two of a kind"
        )
    is_shared = (second.n_parts > 0) & np.isin(second.hashes, first.hashes[first.n_parts > 0])
    used = np.zeros(second.labels.n_labels, np.bool_)
    used[second.labels.indices] = True
    known = first.label_hashes()[np.unique(first.labels.indices)]
    unknown = np.flatnonzero(used & ~np.isin(second.label_hashes(), known))
    n_given = len(second.labels.indices)
    facts = {
        "shared_rows": int(np.count_nonzero(is_shared)),
        "unknown_labels": len(unknown),
        "unknown_share": float(np.isin(second.labels.indices, unknown).sum() / n_given) if n_given else 0.0,
    }
    findings = [_of_rows("shared", second, is_shared), _of_labels("unknown-labels", second, unknown)]
    return Report(f"{first.name} and {second.name}", facts, [each for each in findings if each.n_found])


def _of_rows(kind: str, data: Collected, chosen: NDArray[np.bool_]) -> Finding:
    rows = np.flatnonzero(chosen)
    return Finding(kind, len(rows), data.line[rows[:_SHOWN]].tolist())


def _of_labels(kind: str, data: Collected, chosen: Sequence[int] | NDArray[Any]) -> Finding:
    return Finding(kind, len(chosen), [data.name_of(int(label)) for label in chosen[:_SHOWN]], "labels")


def _repeated(data: Collected) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows whose text and labels an earlier one has; and those whose text alone one has."""
    is_text = data.n_parts > 0
    same_text = _seen_before(data.hashes) & is_text
    same_both = _seen_before(data.hashes * np.uint64(3) + data.set_hashes()) & is_text
    return same_both, same_text & ~same_both


def _seen_before(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether an earlier row has the same one."""
    _, first = np.unique(hashes, return_index=True)
    seen = np.ones(len(hashes), np.bool_)
    seen[first] = False
    return seen


def _similar_names(data: Collected) -> list[int]:
    """Labels whose names are another's but for case and white space."""
    if data.label_names is None:
        return []
    seen: set[str] = set()
    similar = []
    for label, name in enumerate(data.label_names.strings()):
        plain = " ".join(name.casefold().split())
        if plain in seen:
            similar.append(label)
        seen.add(plain)
    return similar
