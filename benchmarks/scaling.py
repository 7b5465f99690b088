"""How training and prediction grow with labels and documents, on generated data.

    python -m benchmarks.scaling [--labels 1e3,1e4,1e5,1e6] [--documents 1e4,1e5,1e6] [--rounds 3]
                                 [--nodes sparse|dense] [--output FOLDER] [--page docs/scaling.md]
                                 [--rewrite] [--quick]

First the labels vary with --fixed-documents documents, then the documents with --fixed-labels labels; all
else is that of Amazon-670K (`benchmarks/generate.py` says how documents are drawn), and the parameters are
those of `--preset fast`, one tree on words, unless given. All sizes are trained, then all are predicted with
in rounds, so that a slow minute falls on one round and not on one size; each step is a process of its own,
with warm kernels.

Each finished step is a line of FOLDER/runs.jsonl: a second start measures only what is missing there. Steps
of another source, machine or number of CPUs count as missing. The models stay in FOLDER/models until all
rounds are done; more rounds later train them again.

Then the table, the fitted exponents and the bars are printed (`scaling_page.py`); --page also writes them,
with the plot and the steps they come from (docs/scaling.jsonl) beside. With --rewrite and the same options
the page is written anew from those steps, and nothing is measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import machine
from benchmarks.generate import PUBLISHED
from benchmarks.running import source_files
from benchmarks.scaling_page import describe_command, draw_plot, summarize, write_page
from benchmarks.scaling_steps import BEAM, MODEL, STEPS
from labeltree.config import Config
from labeltree.nodes import KINDS
from labeltree.parallel import available_threads

N_TEST = 10_000
QUICK: dict[str, Any] = {
    "labels": "1e2,1e3", "documents": "5e2,2e3", "fixed_labels": "1e2", "fixed_documents": "2e3",
    "features": "5e3", "rounds": 2,
}  # fmt: skip


def find_origin() -> dict[str, Any]:
    """What decides a run besides its options: the source, and where it runs."""
    return {"fingerprint": fingerprint(), "machine": machine(), "cpus": available_threads()}


def fingerprint() -> str:
    """A digest of labeltree's source, and of what generates the data and measures."""
    here = Path(__file__)
    digest = hashlib.sha256()
    for file in (*source_files(), here, here.with_name("scaling_steps.py"), here.with_name("generate.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def plan_runs(options: argparse.Namespace, origin: dict[str, Any]) -> list[dict[str, Any]]:
    """All runs, small ones first, each once."""
    pairs = {(labels, options.fixed_documents) for labels in options.labels}
    pairs |= {(options.fixed_labels, documents) for documents in options.documents}
    amazon = PUBLISHED["Amazon-670K"]._replace(n_features=options.features)
    parameters = {name: getattr(options, name) for name in ("dim", "epochs") if getattr(options, name)}
    return [
        {
            "shape": amazon._replace(n_labels=n_labels, n_documents=n_documents)._asdict(),
            "nodes": options.nodes,
            "parameters": parameters,
            "threads": options.threads,
            "seed": options.seed,
            "n_test": min(N_TEST, n_documents),
            "beam": BEAM,
            **origin,
        }
        for n_labels, n_documents in sorted(pairs, key=lambda pair: pair[0] * 0.1 + pair[1])
    ]


def plan_steps(runs: Sequence[dict[str, Any]], rounds: int) -> list[dict[str, Any]]:
    """Every run's training, then its prediction, interleaved: one round of all runs after the other."""
    steps = [{**run, "step": "train", "round": 0} for run in runs]
    return steps + [
        {**run, "step": "predict", "round": number} for number in range(1, rounds + 1) for run in runs
    ]


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_records(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """All lines or none, so that an interruption leaves the file as it was."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text("".join(json.dumps(record) + "\n" for record in records))
    unfinished.replace(path)


def find_record(step: dict[str, Any], records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    return next((record for record in records if record.items() >= step.items()), None)


def measure_missing(steps: Sequence[dict[str, Any]], output: Path) -> list[dict[str, Any]]:
    """The record of each step; what runs.jsonl lacks is measured now, and written as soon as it is known."""
    path = output / "runs.jsonl"
    known = read_records(path)
    found = []
    for step in steps:
        record = find_record(step, known)
        if record is None:
            record = {**step, **measure(step, output / "models" / _folder_name(step))}
            known.append(record)
            write_records(path, known)
        found.append(record)
    shutil.rmtree(output / "models", ignore_errors=True)
    return found


def measure(step: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the step measured; training leaves its model in the folder, where prediction finds it."""
    if step["step"] == "predict" and not (folder / MODEL).exists():  # known to the ledger, but cleared away
        start_process({**step, "step": "train", "round": 0}, folder)
    return start_process(step, folder)


def start_process(step: dict[str, Any], folder: Path) -> dict[str, Any]:
    shape = step["shape"]
    name = f"{step['step']} {shape['n_labels']:,} labels, {shape['n_documents']:,} documents"
    print(
        f"{name}, round {step['round']} ..." if step["round"] else f"{name} ...", file=sys.stderr, flush=True
    )
    folder.mkdir(parents=True, exist_ok=True)
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    command = [sys.executable, "-m", "benchmarks.scaling", "--output", str(folder)]
    done = subprocess.run([*command, "--step", json.dumps(step)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr[-2000:]}")
    if fingerprint() != step["fingerprint"]:
        raise RuntimeError("the source changed during the measurement: start again, in a copy that stays")
    return {"load_average": load_average, **json.loads(done.stdout.splitlines()[-1])}


def _folder_name(step: dict[str, Any]) -> str:
    """The same for all steps of a run, and for those of no other."""
    run = {name: value for name, value in step.items() if name not in ("step", "round")}
    digest = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:12]
    return f"{run['shape']['n_labels']}-labels-{run['shape']['n_documents']}-documents-{digest}"


def read_sizes(text: str) -> list[int]:
    return [int(float(size)) for size in text.split(",")]


def read_size(text: str) -> int:
    return int(float(text))


def make_parser(is_quick: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--labels", type=read_sizes, default="1e3,1e4,1e5,1e6")
    parser.add_argument("--documents", type=read_sizes, default="1e4,1e5,1e6")
    parser.add_argument("--fixed-labels", type=read_size, default="1e4", help="while documents vary")
    parser.add_argument("--fixed-documents", type=read_size, default="5e5", help="while labels vary")
    parser.add_argument("--features", type=read_size, default=str(PUBLISHED["Amazon-670K"].n_features))
    parser.add_argument("--nodes", choices=list(KINDS), default=Config().nodes, help="their kind")
    parser.add_argument("--dim", type=int, help="of dense nodes, instead of labeltree's default")
    parser.add_argument("--epochs", type=int, help="of dense nodes, instead of labeltree's default")
    parser.add_argument("--threads", type=int, default=0, help="of training; 0: all CPUs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rounds", type=int, default=3, help="of prediction, at least 1; the page has medians"
    )
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "labeltree-scaling")
    parser.add_argument("--page", type=Path, help="write the results there too, with plot and steps beside")
    parser.add_argument("--rewrite", action="store_true", help="the page from the steps beside it")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    if is_quick:
        parser.set_defaults(**QUICK)
    return parser


def find_steps(options: argparse.Namespace, beside: Path) -> list[dict[str, Any]]:
    """The record of every step, from the file beside the page or measured now."""
    if not options.rewrite:
        options.output.mkdir(parents=True, exist_ok=True)
        found = measure_missing(plan_steps(plan_runs(options, find_origin()), options.rounds), options.output)
        write_records(beside, found)
        return found
    records = read_records(beside)
    if not records:
        raise SystemExit(f"{beside} has no steps: start without --rewrite")
    origin = {name: records[-1][name] for name in ("fingerprint", "machine", "cpus")}
    steps = plan_steps(plan_runs(options, origin), options.rounds)
    chosen = [record for step in steps if (record := find_record(step, records))]
    if len(chosen) < len(steps):
        raise SystemExit(
            f"{beside} has {len(chosen)} of {len(steps)} steps: give the options it was made with"
        )
    return chosen


def main() -> None:
    is_quick = "--quick" in sys.argv
    parser = make_parser(is_quick)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step["step"]](options.step, options.output)))
        return
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, but is {options.rounds}")
    target = options.page or options.output / "scaling.md"
    results = summarize(find_steps(options, target.with_suffix(".jsonl")))
    command = describe_command(options, parser.parse_args(["--quick"] * is_quick))
    pictures = draw_plot(results, options, target.with_suffix(""))
    page = write_page(results, options, pictures, command)
    target.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
