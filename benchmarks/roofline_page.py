"""The roofline, and the page of `python -m benchmarks.roofline`."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import NamedTuple

ROOFS = {
    "fma_256": ("multiply-add of float32 in registers, 256 bits", "GFLOP/s"),
    "fma_512": ("multiply-add of float32 in registers, 512 bits", "GFLOP/s"),
    "floats": ("scores as in training: float32 from L1", "GFLOP/s"),
    "bytes": ("scores as in prediction: bytes from L1", "GFLOP/s"),
    "l2": ("reading half of L2 again and again", "GB/s"),
    "memory": ("reading four times the last cache", "GB/s"),
    "rows_1024": ("reading random rows of 1 KB of that", "GB/s"),
    "rows_256": ("reading random rows of 256 bytes of that", "GB/s"),
}  # of measure_roofs: what each is
PARTS = {
    "setup": "memory, first embeddings",
    "plan": "plan of the batch",
    "embed": "h: sum of embeddings",
    "chunks": "nodes: scores, gradients, steps",
    "sums": "sums over visits",
    "features": "embeddings: gradients, steps",
    "query": "h: sum of embeddings",
    "scores": "scores",
    "log-sigmoid": "log-sigmoids",
    "queue": "queue and best labels",
}
TITLES = (
    "part", "CPU {unit}", "share", "GFLOP/s", "GB/s", "FMA {unit}", "L2 {unit}", "memory {unit}",
    "roofline {unit}", "bound by", "efficiency",
)  # fmt: skip


class Work(NamedTuple):
    """What has to be done at least."""

    flops: float
    cache_bytes: float  # through L2
    memory_bytes: float

    def times(self, n: float) -> Work:
        return Work(*(n * amount for amount in self))


class Rates(NamedTuple):
    """What the machine does in a second."""

    flops: float
    cache_bytes: float
    memory_bytes: float


class Part(NamedTuple):
    name: str
    seconds: float  # measured
    work: Work
    rates: Rates


class Bound(NamedTuple):
    """The seconds that the work takes at least, by each roof."""

    fma: float
    l2: float
    memory: float

    @property
    def seconds(self) -> float:
        return max(self)

    @property
    def name(self) -> str:
        """The roof that binds."""
        return ("FMA", "L2", "memory")[self.index(max(self))] if max(self) > 0 else ""


class Result(NamedTuple):
    """One data set."""

    name: str
    n_examples: int
    n_labels: int
    n_features: int
    n_nodes: int
    epochs: int
    dim: int
    counts: dict[str, int]  # of one epoch
    stage_seconds: float  # CPU, of all epochs as they are trained
    training: list[Part]
    n_searched: int
    features_per_row: float
    opened: float  # nodes per row
    scored: float
    prediction: list[Part]


def find_bound(parts: Sequence[Part]) -> Bound:
    """Of the parts together: work of one roof adds up, that of several may overlap."""
    return Bound(
        *(
            sum(part.work[roof] / part.rates[roof] for part in parts if part.work[roof])
            for roof in range(len(Bound._fields))
        )
    )


def write_page(
    command: str, roofs: dict[str, float], results: Sequence[Result], missing: Sequence[str]
) -> str:
    lines = [
        "# Roofline of dense nodes",
        "",
        f"Printed by `{command}`, whose description says what is counted: the least work that the method "
        "asks for, against what one thread of this machine can do. FMA, L2 and memory are the times that the "
        "work takes at least by each roof (the last two are estimates); the largest is the roofline, and its "
        "share of the measured CPU time the efficiency. GB/s are those of memory. FMA in training is the "
        "peak in registers, in prediction that of scores of bytes, which are made float32 first.",
        "",
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, load average "
        f"{os.getloadavg()[0]:.1f} at the end (above 1 others used the machine too: rates are too low).",
        "",
        "| roof | |",
        "|---|---|",
        *(f"| {title} | {roofs[name] / 1e9:.1f} {unit} |" for name, (title, unit) in ROOFS.items()),
    ]
    for result in results:
        lines += ["", f"## {result.name}", "", *training_lines(result), "", *prediction_lines(result)]
    if missing:
        lines += ["", *(f"- {message}" for message in missing)]
    return "\n".join(lines) + "\n"


def training_lines(result: Result) -> list[str]:
    per_example = {name: count / result.n_examples for name, count in result.counts.items()}
    memory = result.training[0].rates.memory_bytes / 1e9
    apart = sum(part.seconds for part in result.training)
    return [
        f"Training: {result.n_examples:,} examples, {result.n_features:,} features, {result.n_labels:,} "
        f"labels, {result.n_nodes:,} nodes, dim {result.dim}, {result.epochs} epochs. Per example "
        f"{per_example['entries']:.1f} features and {per_example['visits']:.1f} nodes to learn in "
        f"{per_example['groups']:.1f} groups; of a batch's examples each touches "
        f"{per_example['touched_features']:.1f} embedding rows and {per_example['touched_nodes']:.1f} nodes "
        f"that no other one before it did. Moving the same embedding rows alone: {memory:.1f} GB/s.",
        "",
        *table(result.training, result.stage_seconds, 1.0, "s"),
        "",
        f"The whole is the stage as it is trained; its parts, timed in another epoch, take {apart:.3g} s.",
    ]  # fmt: skip


def prediction_lines(result: Result) -> list[str]:
    seconds = sum(part.seconds for part in result.prediction)
    rates = ", ".join(
        f"{part.rates.memory_bytes / 1e9:.1f} GB/s ({part.name})"
        for part in result.prediction
        if part.work.flops
    )
    return [
        f"Prediction: {result.n_searched:,} rows in a batch, {result.features_per_row:.1f} features each; "
        f"{result.opened:.1f} nodes opened and {result.scored:.1f} scored per row. Reading the same rows of "
        f"bytes alone: {rates}.",
        "",
        *table(result.prediction, seconds, 1e6 / result.n_searched, "µs"),
    ]


def table(parts: Sequence[Part], whole_seconds: float, scale: float, unit: str) -> list[str]:
    """A line for each part and one for the whole; times are multiplied by ``scale``."""
    titles = [title.format(unit=unit) for title in TITLES]
    lines = ["| " + " | ".join(titles) + " |", "|---|" + "---:|" * (len(titles) - 1)]
    groups = [(PARTS[part.name], [part], part.seconds) for part in parts]
    for title, group, seconds in [*groups, ("whole", list(parts), whole_seconds)]:
        bound = find_bound(group)
        flops, n_bytes = (sum(part.work[i] for part in group) / 1e9 / seconds for i in (0, 2))
        cells = [title, f"{scale * seconds:.3g}", f"{100 * seconds / whole_seconds:.0f} %"]
        if bound.seconds > 0:
            cells += [
                f"{flops:.1f}",
                f"{n_bytes:.1f}",
                *(f"{scale * roof:.3g}" if roof else "" for roof in bound),
            ]
            cells += [f"{scale * bound.seconds:.3g}", bound.name, f"{100 * bound.seconds / seconds:.0f} %"]
        else:
            cells += [""] * (len(titles) - len(cells))
        lines.append("| " + " | ".join(cells) + " |")
    return lines
