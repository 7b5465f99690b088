"""Tools on generated data of the size of the paper's sets, and labeltree there within little memory.

Every run is a line of FOLDER/runs.jsonl, also one that failed or took too long; a run that is there is not
made again, whatever has changed in the source since: each may take most of an hour. Its line says which
source it was (`fingerprint`), so that one can tell; removing the line makes it run again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.compare import TOOLS, Ledger, clean, machine
from benchmarks.environments import InstallError
from benchmarks.generate import Shape
from benchmarks.running import RunError, Runner, Tool, discover
from benchmarks.scaling.files import FileSet, open_set
from benchmarks.scaling.sets import PAPER_SETS
from labeltree.parallel import available_threads

DEFAULT_TOOLS = "labeltree-fast,labeltree,omikuji-1,pecos-xrlinear"
TIMEOUT = 45 * 60  # seconds of each process
THREADS = 2  # of training; prediction has one
SEED = 1
LIMIT = "2GB"
LIMITED_SET = "wikilshtc"
SHARES = (Fraction(1), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))  # of its rows; the whole comes first
_TOY = Shape(2_000, 300, 2_000, 3, 20)
_QUICK_SHARE = 500  # of documents and labels, which keeps points per label


class Plan(NamedTuple):
    """One run: a tool, and the data that it gets."""

    tool: Tool
    data: str  # its name
    shape: Shape

    def key(self, digest: str) -> dict[str, Any]:
        """What makes a run this one."""
        return {
            "data": self.data, "digest": digest, "tool": self.tool.name, "settings": self.tool.settings,
            "threads": THREADS, "machine": machine(),
        }  # fmt: skip


def find_shape(name: str, is_quick: bool = False) -> Shape:
    shape = PAPER_SETS[name].shape
    if not is_quick:
        return shape
    n_documents, n_labels = (max(300, n // _QUICK_SHARE) for n in (shape.n_documents, shape.n_labels))
    return shape._replace(n_documents=n_documents, n_labels=n_labels, n_features=shape.n_features // 20)


def plan_sets(names: Sequence[str], tools: Sequence[Tool], is_quick: bool = False) -> list[Plan]:
    """Every tool on every set, set by set."""
    return [Plan(tool, name, find_shape(name, is_quick)) for name in names for tool in tools]


def plan_memory(tool: Tool, is_quick: bool = False) -> list[Plan]:
    """The tool in memory, and within the limit on all rows, then on shares of them."""
    whole = find_shape(LIMITED_SET, is_quick)
    limited = limit_memory(tool)
    plans = [Plan(tool, LIMITED_SET, whole)]
    for share in SHARES:
        name = LIMITED_SET if share == 1 else f"{LIMITED_SET}-{share.numerator}of{share.denominator}"
        plans.append(Plan(limited, name, whole._replace(n_documents=int(whole.n_documents * share))))
    return plans


def limit_memory(tool: Tool) -> Tool:
    return tool._replace(name=f"{tool.name} {LIMIT}", settings={**tool.settings, "max_memory": LIMIT})


def choose_tools(names: str) -> list[Tool]:
    known = discover(TOOLS)
    for name in names.split(","):
        if name not in known:
            raise SystemExit(f"--tools {name}: unknown; known are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def choose_sets(names: str) -> list[str]:
    for name in names.split(","):
        if name not in PAPER_SETS:
            raise SystemExit(f"--like {name}: unknown; known are {', '.join(PAPER_SETS)}")
    return names.split(",")


def measure_plans(plans: Sequence[Plan], ledger: Ledger, cache: Path, timeout: float = TIMEOUT) -> None:
    """Make the runs that the ledger lacks, and add each as soon as it ends."""
    runner = Runner(cache, timeout, toy=make_toy)
    for plan, data in _missing(plans, ledger, cache):
        print(f"{plan.tool.name} on {plan.data} ...", file=sys.stderr, flush=True)
        record = {
            **plan.key(data.digest),
            "fingerprint": plan.tool.fingerprint,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "cpus": available_threads(),
            "shape": data.shape._asdict(),
        }
        if hasattr(os, "getloadavg"):
            record["load_average"] = os.getloadavg()[0]
        began = time.perf_counter()
        try:
            record |= runner.run(plan.tool, data, THREADS, SEED)
        except (RunError, InstallError) as error:
            record["error"] = clean(str(error), cache)
        record["run_s"] = time.perf_counter() - began
        if hasattr(os, "getloadavg"):
            record["load_average_after"] = os.getloadavg()[0]
        ledger.add(record)


def _missing(plans: Sequence[Plan], ledger: Ledger, cache: Path) -> Iterator[tuple[Plan, FileSet]]:
    for plan in plans:
        data = open_set(plan.data, plan.shape, cache)
        key = plan.key(data.digest)
        if not any(key.items() <= record.items() for record in ledger.records):
            yield plan, data


def make_toy(folder: Path) -> FileSet:
    """Vectors with enough labels for all that is compiled when needed."""
    return open_set("toy", _TOY, folder, n_test=50)
