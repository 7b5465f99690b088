"""What `labeltree train --dry-run` says beside what training then needs.

    python -m benchmarks.estimates --data cooking-stackexchange,bibtex --nodes sparse,dense

For each data set and kind of nodes: the size of the model file and the peak memory of training, estimated and
true (each in a process of its own), their ratio, and the CPU time of the estimate and of the training.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.commands import TELLS_PEAK, Run, run, train_command
from benchmarks.datasets import ALL_SETS, MissingData, data_file
from benchmarks.report import aligned, number
from benchmarks.ways import Way

TITLES = (
    "data set", "nodes", "model MB, estimated", "true", "ratio", "peak MB, estimated", "true", "ratio",
    "CPU s of the estimate", "of training",
)  # fmt: skip
# In the process: the numbers themselves, which the command rounds.
ESTIMATES = """
import json, sys
from labeltree.training.driver import estimate
print(json.dumps(estimate(sys.argv[1], nodes=sys.argv[2])._asdict()))
"""


def last_line(done: Run) -> str:
    return done.output.splitlines()[-1]


def measure(name: str, nodes: str, folder: Path) -> list[str]:
    """A row of the table."""
    guessed = run(str(data_file(name, "train")), nodes, start=("-c", ESTIMATES))
    model = folder / "model.labeltree"
    trained = run(*train_command(name, Way("default", nodes), model), start=("-c", TELLS_PEAK))
    estimate = json.loads(last_line(guessed))
    cells = [name, nodes]
    true = {"model_bytes": model.stat().st_size, "peak_bytes": int(last_line(trained))}
    for field, value in true.items():
        cells += [number(estimate[field] / 1e6), number(value / 1e6), f"{estimate[field] / value:.2f}"]
    return [*cells, number(guessed.cpu_seconds), number(trained.cpu_seconds)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(ALL_SETS), help="comma-separated; default: all")
    parser.add_argument("--nodes", default="sparse", help="comma-separated, of sparse, dense, both")
    chosen = parser.parse_args(argv)
    rows = [list(TITLES)]
    with tempfile.TemporaryDirectory(prefix="labeltree-estimates-") as folder:
        for name in chosen.data.split(","):
            for nodes in chosen.nodes.split(","):
                try:
                    rows.append(measure(name, nodes, Path(folder)))
                except MissingData as error:
                    print(error)
    print(aligned(rows))


if __name__ == "__main__":
    main()
