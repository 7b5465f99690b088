"""What vectors of texts beside their words gain on test rows, as `--embed` makes them.

    python -m benchmarks.embedding --data debian-debtags,llms4subjects-all --rows 20000 --seeds 3

Trains with the defaults, alone and with each embedder, and judges by the test file. `--rows` draws so many
training rows of larger files, the same for all. CPU time is that of training without reading, which embeds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.datasets import data_file
from benchmarks.report import aligned
from benchmarks.validate import TITLES, Result, Split, mean, measure, sample, shown, warm_up

ALONE = "none"


def table(results: Mapping[tuple[str, str], Sequence[Result]]) -> str:
    """A row for each data set and embedder: means over seeds."""
    rows = [["data set", "embed", *TITLES]]
    rows += [[name, embed, *shown(mean(runs))] for (name, embed), runs in results.items()]
    return aligned(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=lambda names: names.split(","), default=["debian-debtags"])
    parser.add_argument("--embed", type=lambda names: names.split(","), default=["wordllama"])
    parser.add_argument("--rows", type=int, default=0, help="of training; default: all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    results: dict[tuple[str, str], list[Result]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data in chosen.data:
            train = data_file(data, "train")
            given = Split(
                sample(train, folder, chosen.rows) if chosen.rows else train, data_file(data, "test")
            )
            for embed in (ALONE, *chosen.embed):
                combination = {} if embed == ALONE else {"embed": embed}
                warm_up(train, combination, folder)
                results[data, embed] = [
                    measure(given, combination, seed, chosen.threads, folder)
                    for seed in range(1, chosen.seeds + 1)
                ]
                print(data, embed, *shown(mean(results[data, embed])), flush=True)
    print("\n" + table(results))


if __name__ == "__main__":
    main()
