"""Paired comparison of HSM and PLT over the runs of `experiments.synthetic`, and its bars."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.synthetic_readings import PUBLISHED
from experiments.writing import mean_and_deviation

MOST_DIFFERENCE = 0.1  # of independent labels
LEAST_P = {"independent": 0.05, "dependent": 1e-6}
NEAR = 2.0  # percent from the published mean of dependent labels: "near 71"

Record = Mapping[str, Any]


class Comparison(NamedTuple):
    """All runs of one distribution."""

    kind: str
    noise: float
    runs: Sequence[Record]
    difference: float  # mean of PLT - HSM
    t_test: float | None  # p-values; None where no run differs
    sign: float | None
    wilcoxon: float | None

    @property
    def name(self) -> str:
        return self.kind if self.kind != "dependent" else f"dependent, noise {self.noise:g}"

    def mean(self, field: str) -> float:
        return statistics.fmean(run[field] for run in self.runs)

    def shown(self, field: str) -> str:
        return mean_and_deviation(run[field] for run in self.runs)

    def total(self, field: str) -> int:
        return sum(run[field] for run in self.runs)


def compare(runs: Sequence[Record], hsm: str = "hsm", plt: str = "plt") -> list[Comparison]:
    """One comparison per distribution, in the order of the records."""
    groups: dict[tuple[str, float], list[Record]] = {}
    for run in runs:
        groups.setdefault((run["kind"], run["noise"]), []).append(run)
    found = []
    for (kind, noise), same in groups.items():
        difference, t_test, sign, wilcoxon = paired_tests(
            [run[hsm] for run in same], [run[plt] for run in same]
        )
        found.append(Comparison(kind, noise, same, difference, t_test, sign, wilcoxon))
    return found


def paired_tests(
    first: Sequence[float], second: Sequence[float]
) -> tuple[float, float | None, float | None, float | None]:
    """The mean of second - first, and p-values of the paired t-test, the sign test and Wilcoxon's."""
    from scipy import stats

    differences = [b - a for a, b in zip(first, second, strict=True)]
    moved = [difference for difference in differences if difference != 0.0]
    mean = statistics.fmean(differences)
    if len(moved) == 0 or len(differences) < 2:
        return mean, None, None, None
    n_positive = sum(difference > 0 for difference in moved)
    return (
        mean,
        float(stats.ttest_rel(second, first).pvalue),
        float(stats.binomtest(n_positive, len(moved)).pvalue),
        float(stats.wilcoxon(moved).pvalue),
    )


class Bar(NamedTuple):
    what: str
    found: str
    is_reached: bool


def bars(comparisons: Sequence[Comparison]) -> list[Bar]:
    return [_bar(comparison) for comparison in comparisons]


def _bar(found: Comparison) -> Bar:
    if found.kind == "multi-class":
        n_clear, n_rows = found.total("clearly_differing"), sum(run["n_rows"] // 2 for run in found.runs)
        what = "multi-class: the same best label in every test row where the two best differ by 1e-6 or more"
        told = f"other ones in {n_clear} of {n_rows:,} rows, {found.total('differing')} with closer labels"
        return Bar(what, told, n_clear == 0)
    limit, p = LEAST_P[found.kind], found.t_test
    told = f"difference {found.difference:+.3f}, t-test p = {shown_p(p)}"
    if found.kind == "independent":
        is_same = (p is None or p > limit) and abs(found.difference) < MOST_DIFFERENCE
        what = f"independent: not significant (p > {limit:g}) and below {MOST_DIFFERENCE:g}"
        return Bar(what, told, is_same)
    is_above = found.difference > 0 and p is not None and p < limit
    place = "near the published 71" if is_near(found) else f"{found.mean('plt'):.1f}"
    return Bar(f"{found.name}, precision@1 {place}: PLT above HSM, p < {limit:g}", told, is_above)


def is_near(found: Comparison) -> bool:
    return found.kind == "dependent" and abs(found.mean("plt") - PUBLISHED["dependent"]) <= NEAR


def shown_p(p: float | None) -> str:
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= 1e-3 else f"{p:.2e}"
