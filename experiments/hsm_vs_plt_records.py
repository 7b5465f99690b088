"""The comparisons of HSM with PLT: what is trained, the records of the runs, and their differences."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.ledger import Record

METRICS = ("p@1", "p@3", "p@5")
LINKS = ("hsm", "plt")
# Test rows by their number of labels; the precisions of each are recorded beside those of all.
ROW_GROUPS = ("one label", "more labels")


class Kind(NamedTuple):
    """A kind of node with its settings, the same for both links, and what is tuned for each by itself."""

    name: str
    title: str
    settings: Mapping[str, Any]
    tuned: str
    values: tuple[float, ...]

    def with_value(self, value: float) -> dict[str, Any]:
        return {**self.settings, self.tuned: value}


SHARED: dict[str, Any] = dict(tree="huffman", arity=2)
# What is tuned is what may favour a link: with picked labels there is less to learn from in a pass (epochs),
# copies weigh less than whole rows (C), and picks are noise (eta).
KINDS = (
    Kind("dense", "dense nodes", dict(nodes="dense", epochs=6), "epochs", (6, 12, 24)),
    Kind(
        "sparse",
        "sparse nodes, batch",
        dict(nodes="sparse", loss="log", rare_weight=0.0, C=5.0),
        "C",
        (1.25, 5.0, 20.0, 80.0),
    ),
    Kind(
        "online",
        "sparse nodes, online",
        dict(nodes="sparse", solver="sgd", rare_weight=0.0, epochs=20, eta=8.0),
        "eta",
        (2.0, 8.0, 32.0, 128.0),
    ),
)


class DataSet(NamedTuple):
    """All records of one data set."""

    same: list[Record]  # the same settings for both links, each seed
    tuning: list[Record]  # judged on held-out training rows
    tuned: list[Record]  # each link with the value that did best there, each seed
    one_label: list[Record]  # one label of each row kept: multi-class data


def records_of(data: DataSet) -> list[Record]:
    """Each run once: values that did best may be those of all."""
    runs = [run for part in data for run in part]
    return [run for number, run in enumerate(runs) if run not in runs[:number]]


def chosen(records: Sequence[Record], kind: str, link: str) -> list[Record]:
    return [record for record in records if (record["kind"], record["link"]) == (kind, link)]


def score(record: Mapping[str, Any]) -> float:
    """What tuning maximises: the mean of P@1, P@3 and P@5."""
    return sum(record[name] for name in METRICS) / len(METRICS)


class Lead(NamedTuple):
    """How far PLT is above HSM: over the seeds the mean of the differences, and their deviation."""

    mean: float
    deviation: float | None

    @property
    def is_exception(self) -> bool:
        return self.mean <= 0.0

    @property
    def is_clear(self) -> bool:
        """Beyond what the mean of so many seeds may differ by chance, roughly."""
        return self.deviation is not None and abs(self.mean) > self.deviation

    def __str__(self) -> str:
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:+.2f}{spread}"


def lead(records: Sequence[Record], kind: str, metric: str) -> Lead | None:
    """None where there are no rows of the kind that the metric is about."""
    values = {link: {run["seed"]: run[metric] for run in chosen(records, kind, link)} for link in LINKS}
    pairs = [(values["plt"][seed], value) for seed, value in values["hsm"].items() if seed in values["plt"]]
    if not pairs or any(None in pair for pair in pairs):
        return None
    differences = [plt - hsm for plt, hsm in pairs]
    deviation = statistics.stdev(differences) if len(differences) > 1 else None
    return Lead(statistics.fmean(differences), deviation)


class Case(NamedTuple):
    """A comparison of a kind of nodes on a data set at one metric."""

    data: str
    kind: Kind
    metric: str
    lead: Lead


def cases(found: Mapping[str, Sequence[Record]]) -> list[Case]:
    """All comparisons of some records by data set."""
    listed = []
    for name, records in found.items():
        for kind in KINDS:
            for metric in METRICS:
                difference = lead(records, kind.name, metric)
                if difference is not None:
                    listed.append(Case(name, kind, metric, difference))
    return listed
