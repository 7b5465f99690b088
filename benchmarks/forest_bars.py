"""Whether `--preset best` may have a forest: no data set is worse for it.

    python -m benchmarks.bars forest [--seeds 3] [--data bibtex,cooking-stackexchange]

The same preset is trained with and without (`--forest 0`), with the same seeds. A forest is kept only where
held-out rows gain by it; elsewhere both are the same model but for the config.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.commands import test, train, verdict
from benchmarks.ways import Way

SETS = ("bibtex", "cooking-stackexchange", "debian-debtags", "delicious")
BEST = Way("best")
WORSE = 0.1  # percent of P@k, which another seed changes as much
RANKS = (1, 3, 5)
Tested = Sequence[Mapping[str, float]]


def forest(folder: Path, chosen: argparse.Namespace) -> None:
    """P@1/3/5 of the preset with its forest, and what of it is the forest's."""
    print("\n## forest: `--preset best` against itself with `--forest 0`, means over seeds")
    model = folder / "forest.labeltree"
    for name in filter(SETS.__contains__, chosen.data):
        found: dict[str, list[Mapping[str, float]]] = {"with": [], "without": []}
        for seed in range(1, chosen.seeds + 1):
            for what, options in (("with", ()), ("without", ("--forest", "0"))):
                train(name, BEST, model, "--seed", str(seed), *options)
                found[what].append(test(name, model))
        told = compared(found["with"], found["without"], BEST.accuracy_bar(name))
        print(f"{name:<24}{BEST!s:<16}{told}", flush=True)


def compared(with_forest: Tested, without: Tested, bar: Sequence[float] | None = None) -> str:
    """Both means of each P@k, beside the bar of the preset, and whether the forest does no harm."""
    means = [
        [100 * statistics.mean(one[f"p@{k}"] for one in part) for k in RANKS]
        for part in (with_forest, without)
    ]
    gains = [ours - theirs for ours, theirs in zip(*means, strict=True)]
    shown = [" / ".join(f"{mean:.2f}" for mean in part) for part in means]
    gained = " / ".join(f"{gain:+.2f}" for gain in gains)
    told = f"P@1/3/5 {shown[0]}"
    if bar:
        reached = all(ours >= wanted for ours, wanted in zip(means[0], bar, strict=True))
        told += f"  bar {'/'.join(map(str, bar))}: {verdict(reached)}"
    harmless = verdict(min(gains) >= -WORSE)
    return f"{told}  without {shown[1]}  gain {gained}  bar -{WORSE}: {harmless}"
