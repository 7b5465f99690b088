"""labeltree and its peers side by side, on the same rows, features and machine.

    python -m benchmarks.compare --data cooking-stackexchange --tools all --threads 1,2 --plot

Each tool is installed from the package registry into a virtual environment of its own and runs in processes
of its own. Runs are interleaved (each tool once, then each again), printed as JSON lines and appended to
OUTPUT/runs.jsonl: a comparison that was interrupted goes on where it stopped, and one with another tool adds
it to the table. Runs of changed code or data count as missing. A tool that fails says so in its row.

    python -m benchmarks.compare --overview --readme

runs nothing: it writes OUTPUT/README.md (all data sets, and the bars we hold ourselves to) and the table of
the README from the recorded runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import feature_effect, report
from benchmarks.datasets import ALL_SETS, MissingData, data_file
from benchmarks.environments import InstallError, cache_folder
from benchmarks.overview import data_sets
from benchmarks.pages import outdated, runs_of, write_pages, write_readme
from benchmarks.preparing import FEATURES, Prepared, prepare
from benchmarks.running import RunError, Runner, Tool, discover, fingerprint
from labeltree.parallel import available_threads

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
TOOLS = Path(__file__).parent / "tools"


def machine() -> str:
    """Processor, cores, memory and Python."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines()
                 if line.startswith("model name")]  # fmt: skip
        model = names[0] if names else model
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB"
    return f"{model}, {os.cpu_count()} cores{memory}, {platform.system()}, Python {platform.python_version()}"


class Ledger:
    """The runs of an output folder: a file of JSON lines that only grows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.jsonl"
        self.records: list[dict[str, Any]] = []
        if self.path.is_file():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            self.records = [json.loads(line) for line in lines if line.strip()]

    def add(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)

    def valid(self, data: str, tools: Sequence[Tool], digest: str) -> list[dict[str, Any]]:
        """The runs on this data and machine of the tools as they are now, in the order of ``tools``."""
        found = []
        for tool in tools:
            wanted = {
                "data": data,
                "tool": tool.name,
                "fingerprint": tool.fingerprint,
                "digest": digest,
                "machine": machine(),
            }
            found += [record for record in self.records if wanted.items() <= record.items()]
        return found

    def succeeded(self, tool: str, prepared: Prepared) -> bool:
        """Whether this tool has been run on this data, ever."""
        wanted = {"data": prepared.name, "tool": tool, "digest": prepared.digest}
        return any(wanted.items() <= record.items() and "error" not in record for record in self.records)


def pending(tools: Sequence[Tool], threads: Sequence[int], repeats: int) -> Iterator[tuple[int, Tool, int]]:
    """Repeat, tool and number of threads of every run: interleaved, so that a slow minute hits all alike."""
    for repeat in range(1, repeats + 1):
        for n_threads in threads:
            for tool in tools:
                if n_threads in getattr(tool.module, "THREADS", threads):
                    yield repeat, tool, n_threads


def clean(message: str, cache: Path) -> str:
    """An error message without this machine's folders."""
    for folder, name in ((cache, "CACHE"), (ROOT, "."), (Path.home(), "~")):
        message = message.replace(str(folder), name)
    return message


def compare(
    prepared: Prepared,
    tools: Sequence[Tool],
    threads: Sequence[int],
    repeats: int,
    runner: Runner,
    ledger: Ledger,
    budget: float = float("inf"),
) -> list[dict[str, Any]]:
    """Make the runs that the ledger lacks; all that count now.

    A tool whose run took longer than ``budget`` seconds is not repeated, one that failed is not tried twice.
    """
    facts = {
        "data": prepared.name,
        "digest": prepared.digest,
        "machine": machine(),
        "n_train": prepared.train.X.n_rows,
        "n_test": prepared.test.X.n_rows,
        "n_features": prepared.train.X.n_columns,
        "n_labels": prepared.train.Y.n_labels,
        "cpus": available_threads(),  # fewer than the machine has where this process is bound to some
    }
    given_up: set[tuple[str, int]] = set()
    for repeat, tool, n_threads in pending(tools, threads, repeats):
        done = [
            record for record in ledger.valid(prepared.name, [tool], prepared.digest)
            if record["threads"] == n_threads and "error" not in record
        ]  # fmt: skip
        is_dear = any(record["run_s"] > budget for record in done)
        if len(done) >= repeat or is_dear or (tool.name, n_threads) in given_up:
            continue
        if prepared.train.Y.n_labels > tool.most_labels:
            continue
        if tool.stands_in_for and ledger.succeeded(tool.stands_in_for, prepared):
            continue
        record = {
            "tool": tool.name, "threads": n_threads, "repeat": repeat, "fingerprint": tool.fingerprint,
            "settings": tool.settings, "date": time.strftime("%Y-%m-%d", time.gmtime()), **facts,
        }  # fmt: skip
        if hasattr(os, "getloadavg"):
            record["load_average"] = os.getloadavg()[0]
        began = time.perf_counter()
        try:
            record |= runner.run(tool, prepared, n_threads, seed=repeat)
            if fingerprint(tool.path, tool.module, tool.settings) != tool.fingerprint:
                raise RunError("its source changed during the comparison; start it again")
        except (RunError, InstallError) as error:
            record["error"] = clean(str(error), runner.cache)
            given_up.add((tool.name, n_threads))
        record["run_s"] = time.perf_counter() - began
        ledger.add(record)
    return ledger.valid(prepared.name, tools, prepared.digest)


def choose(names: str, known: dict[str, Tool]) -> list[Tool]:
    """The tools of a comma-separated list; "all" are all."""
    if names == "all":
        return list(known.values())
    for name in names.split(","):
        if name not in known:
            raise SystemExit(f"unknown tool {name!r}; known are all, {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help=f"comma-separated, of {', '.join(ALL_SETS)}")
    parser.add_argument("--tools", default="all", help="all, or names separated by commas")
    parser.add_argument(
        "--features",
        choices=FEATURES,
        default="words",
        help="vectors that peers get; full: labeltree's default features, for a section of the page",
    )
    parser.add_argument("--threads", default="1", help="of training, for example 1,2; prediction uses one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=1800, help="do not repeat runs over so many seconds")
    parser.add_argument("--timeout", type=float, default=7200, help="seconds that one process may take")
    parser.add_argument("--plot", action="store_true", help="write PNG and SVG figures (needs matplotlib)")
    parser.add_argument("--overview", action="store_true", help="without --data: write only that page")
    parser.add_argument(
        "--readme", type=Path, nargs="?", const=ROOT / "README.md", help="write the README's table too"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--tools-folder", type=Path, default=TOOLS, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if not (chosen.data or chosen.overview or chosen.readme):
        parser.error("--data is needed, or --overview or --readme, which only write")
    return chosen


def compare_set(
    name: str,
    tools: Sequence[Tool],
    known: dict[str, Tool],
    chosen: argparse.Namespace,
    runner: Runner,
    ledger: Ledger,
) -> None:
    """The runs of one data set and their table."""
    try:
        train, test = data_file(name, "train"), data_file(name, "test")
    except MissingData as error:
        print(error)
        return
    prepared = prepare(name, train, test, runner.cache, chosen.features)
    is_full = chosen.features == "full"
    if is_full and not prepared.is_text:
        print(f"{name}: skipped, its rows are vectors, which have no other features")
        return
    threads = [int(number) for number in chosen.threads.split(",")]
    compare(prepared, tools, threads, chosen.repeats, runner, ledger, chosen.budget)
    columns = (*report.ACCURACY, *report.TRAINING, *report.PREDICTION)
    records = runs_of(ledger.records, known, name, is_full)
    print(f"\n## {name}\n\n{report.table(records, columns, spread=False)}\n", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    chosen = arguments(argv)
    known = discover(chosen.tools_folder)
    chooses = feature_effect.choose if chosen.features == "full" else choose
    tools = chooses(chosen.tools, known)
    ledger, runner = Ledger(chosen.output), Runner(cache_folder(), chosen.timeout)
    names = chosen.data.split(",") if chosen.data else []
    for name in names:
        compare_set(name, tools, known, chosen, runner, ledger)
    if chosen.overview or ledger.records:
        drawn = (names or data_sets(ledger.records)) if chosen.plot else ()
        page = write_pages(ledger.records, known, chosen.output, drawn)
        if chosen.overview:
            print(page)
        for found in outdated(ledger.records, known):
            print(f"runs of an earlier state: {found}", file=sys.stderr)
    if chosen.readme:
        write_readme(ledger.records, known, chosen.readme)


if __name__ == "__main__":
    main()
