"""What tuning chose, how much depended on it, and whether the choice carries over to the final dim."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.report import aligned
from experiments.ablation_records import VARIANTS, DataSet, Grid, Outcome, converged, ranked, score
from experiments.ledger import Record


def describe_edges(found: Mapping[str, DataSet], grid: Grid) -> str:
    """How often tuning chose an end of the grid: a value beyond might do better still."""
    chosen = [outcome.final[0] for data in found.values() for outcome in data.values()]
    with_l2 = [run for run in chosen if run["l2"] > 0]
    parts = []
    for name, title, runs in (
        ("lr", "step size", chosen),
        ("epochs", "number of epochs", chosen),
        ("l2", "L2", with_l2),
    ):
        values = getattr(grid, name)
        counts = [sum(run[name] == end for run in runs) for end in (min(values), max(values))]
        parts.append(f"{title}: the smallest {counts[0]} times, the largest {counts[1]} times of {len(runs)}")
    return (
        "Ends of the grid that were chosen (there, a value outside the paper's grid might do better still): "
        + "; ".join(parts)
        + ". The grid of L2 does not include 0, so a variant with L2 can be worse than the one without."
    )


def tuning_table(data: DataSet, grid: Grid) -> str:
    """What was chosen, and how much there was to choose."""
    small = f"dim {grid.tuning_dim}"
    dims = dict.fromkeys((f"dim {grid.final_dim}", small))  # one column if they are the same
    rows = [["variant", "lr", "L2", "epochs", *dims, f"worst of {small}", "diverged"]]
    for variant, outcome in data.items():
        run = outcome.final[0]
        at_dims = [
            next(r for r in records if all(r[name] == run[name] for name in ("lr", "l2", "epochs")))
            for records in (outcome.finalists, outcome.tuning)
        ]
        n_diverged = sum(bool(record["diverged"]) for record in outcome.tuning)
        rows.append([
            variant.title, f"{run['lr']:g}", f"{run['l2']:g}", str(run["epochs"]),
            *(f"{score(found):.2f}" for found in at_dims[-len(dims) :]),
            f"{min(map(score, converged(outcome.tuning))):.2f}", f"{n_diverged} of {len(outcome.tuning)}",
        ])  # fmt: skip
    return aligned(rows)


def describe_diverged(name: str, data: DataSet, grid: Grid) -> list[str]:
    """What converged at the tuning dim and yet could not be used, or had to be."""
    lines = []
    for variant, outcome in data.items():
        has_failed = any(run["diverged"] for run in outcome.final)
        then_next = "" if has_failed else "; the next best finalist is used"
        for records, where, then in (
            (outcome.finalists, "on nine tenths of the rows", ""),
            (outcome.given_up, "on all training rows", then_next),
            (outcome.final, "on all training rows", "; no finalist is left, so its 0 counts"),
        ):
            points = dict.fromkeys(
                f"lr {run['lr']:g}, L2 {run['l2']:g}, {run['epochs']} epochs"
                for run in records
                if run["diverged"]
            )
            if points:
                lines.append(
                    f"- {name}, {variant.title}: diverged at dim {grid.final_dim} {where}: "
                    f"{'; '.join(points)}{then}."
                )
    return lines


class SecondLook(NamedTuple):
    """At the final dim: the finalist that was best at the tuning dim, and the one that is best now."""

    first: Record
    best: Record

    @property
    def changed(self) -> bool:
        return bool(self.first["lr"] != self.best["lr"])

    @property
    def gain(self) -> float | None:
        """Held-out score; unknown if the first choice diverged."""
        return None if self.first["diverged"] else score(self.best) - score(self.first)

    def __str__(self) -> str:
        if not self.changed:
            return f"{self.first['lr']:g}"
        gained = "diverged" if self.gain is None else f"{self.gain:+.2f}"
        return f"{self.first['lr']:g} -> {self.best['lr']:g} ({gained})"


def second_look(outcome: Outcome) -> SecondLook:
    return SecondLook(outcome.finalists[0], ranked(converged(outcome.finalists))[0])


def describe_second_look(found: Mapping[str, DataSet], grid: Grid) -> list[str]:
    """Whether the step size best at the tuning dim is best at the final one, and what asking again gained."""
    looks = {
        f"{name}, {variant.title}": second_look(outcome)
        for name, data in found.items()
        for variant, outcome in data.items()
    }
    small, large = f"dim {grid.tuning_dim}", f"dim {grid.final_dim}"
    changed = [look for look in looks.values() if look.changed]
    said = f"{large} prefers another step size than {small} for {len(changed)} of {len(looks)} tuned variants"
    gains = {title: look.gain for title, look in looks.items() if look.changed and look.gain is not None}
    if gains:
        most = max(gains, key=lambda title: gains[title])
        said += f"; the held-out score gained is at most {gains[most]:.2f} ({most})"
    n_diverged = len(changed) - len(gains)
    if n_diverged:
        said += f"; {n_diverged} times the choice of {small} diverges at {large}"
    rows = [["variant", *found]]
    for variant in VARIANTS:
        rows.append([variant.title, *(str(second_look(data[variant])) for data in found.values())])
    return [
        f"{said[0].upper()}{said[1:]}.",
        f"Best step size at {small}, and where it is another one at {large}, that one and the score gained: "
        f"that of {large} on the held-out rows, with L2 and epochs that {small} finds best for the step "
        "size. The same rows choose and judge, so it cannot be below 0.",
        aligned(rows),
    ]


def describe_epochs(found: Mapping[str, DataSet], grid: Grid) -> str:
    """What more passes do to the held-out score with and without L2: a sign of overfitting, or of too few."""
    parts = []
    few, many = min(grid.epochs), max(grid.epochs)
    for has_l2, title in ((False, "without L2"), (True, "with L2")):
        changes = []
        for data in found.values():
            for variant, outcome in data.items():
                if variant.has_l2 == has_l2:
                    changes += _changes(outcome.tuning, few, many)
        if changes:
            parts.append(
                f"{title} by {statistics.fmean(changes):+.2f} on average (higher at "
                f"{sum(change > 0 for change in changes)} of {len(changes)} points)"
            )
    return f"From {few} to {many} epochs the held-out score changes {' and '.join(parts)}."


def _changes(tuning: list[Record], few: int, many: int) -> list[float]:
    """Of the score, for each pair of runs that differ in their epochs alone and both converged."""
    scores = {(run["lr"], run["l2"], run["epochs"]): score(run) for run in tuning if not run["diverged"]}
    return [
        scores[lr, l2, many] - value
        for (lr, l2, epochs), value in scores.items()
        if epochs == few and (lr, l2, many) in scores
    ]
