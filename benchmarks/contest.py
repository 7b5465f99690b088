"""What the bars of several pages ask of one of our models: is it cheaper than peers that are as accurate?

A peer is of equal or better accuracy unless the mean of its P@1, P@3 and P@5 is below ours by more than
``SLACK`` points. Where every peer is less accurate, there is nobody to be faster than.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.peer_bars import NOT_MEASURED, REACHED, SLACK, Standing, fastest, outcome
from benchmarks.report import number


class Contest(NamedTuple):
    """One of our models beside peers that may be as accurate."""

    standing: Standing
    ours: str
    peers: Sequence[str]

    def as_accurate(self) -> dict[str, bool | None]:
        """Whether each peer is of equal or better accuracy than ours; None if not measured."""
        found: dict[str, bool | None] = dict.fromkeys(self.peers)
        ours = self.standing.precisions(self.ours)
        for peer in found:
            theirs = self.standing.precisions(peer)
            if ours is not None and theirs is not None:
                found[peer] = statistics.mean(theirs) >= statistics.mean(ours) - SLACK
        return found

    def cheaper(self, field: str, times: float = 1.0) -> tuple[str, str, str]:
        """Least cost of the peers as accurate as ours, our lead over it, and the verdict."""
        ours = self.standing.mean(self.ours, field)
        if ours is None:
            return "-", "-", f"{NOT_MEASURED} ({self.ours})"
        counted = self.as_accurate()
        checks: dict[str, bool | None] = {}
        for peer, counts in counted.items():
            theirs = self.standing.mean(peer, field)
            if counts is None or theirs is None:
                checks[peer] = None
            elif counts:
                checks[peer] = theirs >= times * ours if times > 1 else theirs > ours
        if not checks:
            return "none", "-", f"{REACHED} (no rival)"
        rivals = [peer for peer, counts in counted.items() if counts]
        rival, least = fastest(self.standing, rivals, field, scale_of(field))
        lead = f"{number(least / ours)} times" if least is not None else "-"
        return rival, lead, outcome(checks)


def scale_of(field: str) -> float:
    return 1e-6 if field.endswith("_bytes") else 1.0


def shown_error(error: float | None) -> str:
    return "-" if error is None else f"{error:.4f}"


def same_models(
    standing: Standing, tools: Iterable[str], needed: Sequence[str]
) -> tuple[list[str], dict[str, bool | None]]:
    """How many models of the same seed are the same with one thread and with more, and whether all are.

    Those of tools that are not ``needed`` count once they have such runs.
    """
    checks: dict[str, bool | None] = {}
    cells = []
    for tool in tools:
        alone = {run["repeat"]: run.get("model_digest") for run in standing.runs.get(tool, ())}
        pairs = [
            (alone[run["repeat"]], run.get("model_digest"))
            for run in standing.more_threads.get(tool, ())
            if run["repeat"] in alone
        ]
        same = [a == b for a, b in pairs if a and b]
        if same or tool in needed:
            checks[tool] = all(same) if same else None
        cells.append(f"{sum(same)} of {len(same)}" if same else "-")
    return cells, checks
