"""The eight variants of the ablation, the records of their runs, and the paper's own figures."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.ledger import Record

METRICS = ("p@1", "p@3", "p@5")
# What a run is known by; "rows" only if it trains on so many rows drawn from the file.
KEY = ("stage", "data", "tree", "weights", "l2", "lr", "epochs", "dim", "seed", "rows")
# The paper's algorithm: online, binary trees. Rows come weighted (`ablation.prepare`).
FIXED: dict[str, Any] = dict(
    nodes="dense", optimizer="sgd", batch_size=1, arity=2, max_leaves=100, kmeans_eps=0.001, row_norm="none"
)


class Variant(NamedTuple):
    tree: str
    weights: str
    has_l2: bool

    @property
    def title(self) -> str:
        parts = ["clustering" if self.tree == "kmeans" else "Huffman"]
        parts += ["TF-IDF"] * (self.weights == "tf-idf") + ["L2"] * self.has_l2
        return " + ".join(parts)


# In the order of the paper's Figure 1.
VARIANTS = tuple(
    itertools.starmap(Variant, itertools.product(("huffman", "kmeans"), ("mean", "tf-idf"), (False, True)))
)
FULL = VARIANTS[-1]

Precisions = Mapping[Variant, tuple[float, ...]]  # P@1, P@3, P@5


class Grid(NamedTuple):
    lr: tuple[float, ...]
    l2: tuple[float, ...]
    epochs: tuple[int, ...]
    tuning_dim: int
    final_dim: int


class Scale(NamedTuple):
    """How much is run on a data set."""

    grid: Grid
    rows: Mapping[str, int]  # by stage: how many rows are drawn from a file that has more; all if not given
    most_seeds: int | None = None  # of the final runs


class Outcome(NamedTuple):
    """One variant on one data set."""

    tuning: list[Record]  # at the tuning dim
    finalists: list[Record]  # on the same rows at the final dim, one per step size, tuning's best first
    given_up: list[Record]  # final runs of finalists with a seed that diverged
    final: list[Record]  # one per seed


DataSet = Mapping[Variant, Outcome]


FEW, MANY = "few labels", "many labels"  # titles of groups


class Group(NamedTuple):
    """Data sets on which as much was run."""

    title: str
    scale: Scale
    found: Mapping[str, DataSet]

    @property
    def grid(self) -> Grid:
        return self.scale.grid


def records_of(data: DataSet) -> list[Record]:
    return [run for outcome in data.values() for part in outcome for run in part]


def score(record: Mapping[str, Any]) -> float:
    """What tuning maximises: the mean of P@1, P@3 and P@5."""
    return sum(record[name] for name in METRICS) / len(METRICS)


def ranked(records: Sequence[Record]) -> list[Record]:
    """Best first; of equals the one earlier in the grid, which is the cheaper one."""
    return sorted(records, key=score, reverse=True)


def converged(records: Sequence[Record]) -> list[Record]:
    """Those that did not diverge; if all did, all, so that there is always something to go on with."""
    return [record for record in records if not record["diverged"]] or list(records)


def finalists(tuning: Sequence[Record], grid: Grid) -> list[Record]:
    """The keys of the second look: the best point of each step size, at the final dim; best of them first."""
    best: dict[float, Record] = {}
    for record in ranked(converged(tuning)):
        best.setdefault(record["lr"], record)
    return [{**key_of(record), "dim": grid.final_dim} for record in best.values()]


def key_of(record: Mapping[str, Any]) -> Record:
    return {name: record[name] for name in KEY if name in record}


# The paper's table of Appendix E.3, its columns in the order of VARIANTS: P@1, P@3, P@5 of each.
_PUBLISHED = """
Eurlex          63.39 50.48 41.19  62.79 48.99 40.16  71.20 57.26 46.93  74.60 60.36 49.72  68.31 54.62 45.23  65.05 50.87 41.71  75.05 61.65 50.99  77.68 63.37 52.85
AmazonCat-13K   90.10 72.67 57.69  90.84 73.10 57.69  89.19 72.81 58.30  91.08 75.27 60.34  72.95 61.66 48.38  91.73 75.07 59.63  77.13 65.76 52.72  92.43 77.65 62.74
Wiki-30K        78.04 63.31 52.65  82.28 68.75 58.33  78.14 67.47 56.00  85.23 73.52 63.71  78.40 65.62 55.61  82.13 69.22 58.69  78.69 66.40 56.77  85.21 73.18 63.39
Delicious-200K  45.71 40.69 38.02  46.48 41.38 38.78  47.24 40.88 37.74  47.85 42.08 39.13  44.58 40.42 38.15  46.55 41.08 38.25  45.13 40.63 38.23  47.31 41.63 38.88
WikiLSHTC-325K  36.23 20.60 14.70  41.10 25.62 19.10  38.28 22.43 16.33  42.83 26.33 19.45  34.39 21.17 15.09  54.95 36.42 27.25  39.66 24.79 18.28  58.73 39.24 29.26
Wiki-500K       41.01 24.79 18.64  41.55 25.94 19.79  40.62 25.68 19.74  49.80 32.39 24.62  46.63 31.59 24.30  56.04 38.87 30.46  49.20 34.52 26.83  64.48 45.84 35.46
Amazon-670K     23.19 19.80 17.48  21.64 18.11 15.83  29.70 25.84 22.96  32.11 27.77 24.64  28.54 25.52 23.30  28.95 25.74 23.22  36.24 32.15 29.19  39.90 35.36 32.04
"""  # noqa: E501


def published() -> dict[str, Precisions]:
    """The paper's figures by data set."""
    found: dict[str, Precisions] = {}
    for line in _PUBLISHED.split("\n")[1:-1]:
        name, *numbers = line.split()
        values = [float(number) for number in numbers]
        found[name] = {v: tuple(values[3 * i : 3 * i + 3]) for i, v in enumerate(VARIANTS)}
    return found


def precisions(data: DataSet) -> Precisions:
    """Means over the seeds, to the decimals that are shown: what looks level on the page is level."""
    return {
        variant: tuple(round(statistics.fmean(run[name] for run in outcome.final), 2) for name in METRICS)
        for variant, outcome in data.items()
    }


def deviation(data: DataSet, variant: Variant, metric: int) -> float:
    """Over the seeds, that of a sample; 0 for one."""
    values = [run[METRICS[metric]] for run in data[variant].final]
    return statistics.stdev(values) if len(values) > 1 else 0.0


def seeds_of(found: Mapping[str, DataSet]) -> list[int]:
    """Of the final runs."""
    return [run["seed"] for run in next(iter(found.values()))[FULL].final]


class Component(NamedTuple):
    title: str
    without: Callable[[Variant], Variant]
    is_with: Callable[[Variant], bool]


COMPONENTS = (
    Component("clustering - Huffman", lambda v: v._replace(tree="huffman"), lambda v: v.tree == "kmeans"),
    Component("TF-IDF - mean", lambda v: v._replace(weights="mean"), lambda v: v.weights == "tf-idf"),
    Component("L2 - none", lambda v: v._replace(has_l2=False), lambda v: v.has_l2),
)


def gain(found: Precisions, component: Component, metric: int) -> float:
    """What a component adds, on average over the four pairs of variants that differ in it alone."""
    pairs = [(found[v], found[component.without(v)]) for v in VARIANTS if component.is_with(v)]
    return statistics.fmean(with_it[metric] - without[metric] for with_it, without in pairs)


def best_variants(found: Precisions, metric: int) -> list[Variant]:
    top = max(values[metric] for values in found.values())
    return [variant for variant in VARIANTS if found[variant][metric] == top]
