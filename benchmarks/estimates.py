"""What `labeltree train --dry-run` says beside what training then needs.

    python -m benchmarks.estimates --data cooking-stackexchange,bibtex --nodes sparse,dense
    python -m benchmarks.estimates --data cooking-stackexchange,bibtex --on-disk

For each data set and kind of nodes: the size of the model file and the peak memory of training, estimated and
true (each in a process of its own), their ratio, and the CPU time of the estimate and of the training. With
--on-disk: what `labeltree train --work-dir` prints before it trains, of anonymous memory and of the disk,
beside the most that it had.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.commands import TELLS_PEAK, Run, run, train_command
from benchmarks.datasets import ALL_SETS, MissingData, data_file
from benchmarks.report import aligned, number
from benchmarks.watching import INTERVAL, anonymous_bytes, disk_bytes
from benchmarks.ways import Way

TITLES = (
    "data set", "nodes", "model MB, estimated", "true", "ratio", "peak MB, estimated", "true", "ratio",
    "CPU s of the estimate", "of training",
)  # fmt: skip
ON_DISK_TITLES = ("data set", "memory MB, estimated", "true", "ratio", "disk MB, estimated", "true", "ratio")
SIZES = {"kB": 1e-3, "MB": 1.0, "GB": 1e3}
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


def measure_on_disk(name: str, folder: Path) -> list[str]:
    """A row of the other table."""
    work, model, told = folder / "work", folder / "model.labeltree", folder / "told"
    command = [sys.executable, "-m", "labeltree", "train", str(data_file(name, "train")), "-o", str(model)]
    with told.open("w") as errors:
        process = subprocess.Popen([*command, "--work-dir", str(work)], stderr=errors)
        status, memory, disk = Path(f"/proc/{process.pid}/status"), 0, 0
        while process.poll() is None:
            memory, disk = max(memory, anonymous_bytes(status)), max(disk, disk_bytes(process.pid, work))
            time.sleep(INTERVAL)
    if process.returncode:
        raise RuntimeError(told.read_text()[-2000:])
    pattern = r"Estimated: ([\d.,]+) (.B) of memory, ([\d.,]+) (.B) on the disk"
    found = re.search(pattern, told.read_text())
    assert found is not None, told.read_text()
    cells = [name]
    for amount, unit, true in ((found[1], found[2], memory), (found[3], found[4], disk)):
        estimated = float(amount.replace(",", "")) * SIZES[unit]
        cells += [number(estimated), number(true / 1e6), f"{estimated / (true / 1e6):.2f}"]
    return cells


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(ALL_SETS), help="comma-separated; default: all")
    parser.add_argument("--nodes", default="sparse", help="comma-separated, of sparse, dense, both")
    parser.add_argument("--on-disk", action="store_true", help="what is printed first, with a work dir")
    chosen = parser.parse_args(argv)
    rows = [list(ON_DISK_TITLES if chosen.on_disk else TITLES)]
    with tempfile.TemporaryDirectory(prefix="labeltree-estimates-") as folder:
        for name in chosen.data.split(","):
            try:
                if chosen.on_disk:
                    rows.append(measure_on_disk(name, Path(folder)))
                else:
                    rows += [measure(name, nodes, Path(folder)) for nodes in chosen.nodes.split(",")]
            except MissingData as error:
                print(error)
    print(aligned(rows))


if __name__ == "__main__":
    main()
