"""What tuning chose, how much depended on it, and whether the choice carries over to the final dim."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks.report import aligned
from experiments.ablation_records import FULL, DataSet, Grid, Outcome, Variant, ranked, score
from experiments.ledger import Record


def describe_edges(found: Mapping[str, DataSet], grid: Grid) -> str:
    """How often tuning chose an end of the grid: a value beyond might do better still."""
    chosen = [outcome.final[0] for data in found.values() for outcome in data.outcomes.values()]
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


def tuning_table(data: DataSet) -> str:
    """What was chosen, and how much there was to choose."""
    head = ["variant", "lr", "L2", "epochs", "held-out score", "worst that converged", "diverged"]
    rows = [head]
    for variant, outcome in data.outcomes.items():
        run = outcome.final[0]
        tuned = next(r for r in outcome.tuning if all(r[n] == run[n] for n in ("lr", "l2", "epochs")))
        converged = [score(record) for record in outcome.tuning if not record["diverged"]]
        n_diverged = len(outcome.tuning) - len(converged)
        rows.append([
            variant.title, f"{run['lr']:g}", f"{run['l2']:g}", str(run["epochs"]), f"{score(tuned):.2f}",
            f"{min(converged):.2f}" if converged else "-", f"{n_diverged} of {len(outcome.tuning)}",
        ])  # fmt: skip
    return aligned(rows)


def describe_diverged(name: str, outcomes: Mapping[Variant, Outcome], grid: Grid) -> list[str]:
    """Variants whose best tuned values could not be used at the final dim."""
    lines = []
    for variant, outcome in outcomes.items():
        points = dict.fromkeys(
            f"lr {run['lr']:g}, L2 {run['l2']:g}, {run['epochs']} epochs" for run in outcome.diverged
        )
        if points:
            used = "; the next best ones are used" if not outcome.final[0]["diverged"] else ""
            lines.append(
                f"- {name}, {variant.title}: diverged at dim {grid.final_dim}: {'; '.join(points)}{used}."
            )
    return lines


def describe_check(name: str, data: DataSet, grid: Grid) -> str:
    """Whether the values best at the tuning dim are also good at the final one."""

    def point(record: Mapping[str, Any]) -> tuple[Any, ...]:
        return record["lr"], record["l2"], record["epochs"]

    at_final = {point(record): record for record in data.checks}
    small: list[Record] = [r for r in data.outcomes[FULL].tuning if point(r) in at_final]
    chosen, best = at_final[point(ranked(small)[0])], ranked(data.checks)[0]
    worst = ranked(data.checks)[-1]
    same = "the same" if point(chosen) == point(best) else f"lr {best['lr']:g}, L2 {best['l2']:g}"
    low, high = f"dim {grid.tuning_dim}", f"dim {grid.final_dim}"
    return (
        f"- {name}: of {len(data.checks)} points, {low} chooses lr {chosen['lr']:g}, L2 {chosen['l2']:g}, "
        f"{high} chooses {same}. At {high} the choice of {low} scores {score(chosen):.2f}, "
        f"the best {score(best):.2f}, the worst {score(worst):.2f}."
    )


def describe_epochs(found: Mapping[str, DataSet], grid: Grid) -> str:
    """What more passes do to the held-out score with and without L2: a sign of overfitting, or of too few."""
    parts = []
    few, many = min(grid.epochs), max(grid.epochs)
    for has_l2, title in ((False, "without L2"), (True, "with L2")):
        changes = []
        for data in found.values():
            for variant, outcome in data.outcomes.items():
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
