"""Growth with labels and documents: what is planned, measured and kept of it.

First the labels vary with --fixed-documents documents, then the documents with --fixed-labels labels; all
else is that of Amazon-670K, and the parameters are those of `--preset fast`, one tree on words, unless given.
All sizes are trained, then all are predicted with in rounds, so that a slow minute falls on one round and not
on one size; each step is a process of its own, with warm kernels.

Each finished step is a line of OUTPUT/runs.jsonl: a second start measures only what is missing there. Steps
of another source, machine or number of CPUs count as missing. The models stay in OUTPUT/models until all
rounds are done; more rounds later train them again. When all are done, their lines and the options that they
belong to are the file NODES.jsonl of the page's folder, with the plot beside.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import machine
from benchmarks.generate import PUBLISHED
from benchmarks.running import source_files
from benchmarks.scaling.growth_page import SWEPT, describe_command, summarize
from benchmarks.scaling.growth_plot import draw_plot
from benchmarks.scaling.steps import BEAM, MODEL
from labeltree.parallel import available_threads

N_TEST = 10_000


def find_origin() -> dict[str, Any]:
    """What decides a run besides its options: the source, and where it runs."""
    return {"fingerprint": fingerprint(), "machine": machine(), "cpus": available_threads()}


def fingerprint() -> str:
    """A digest of labeltree's source, and of what generates the data and measures."""
    here = Path(__file__)
    digest = hashlib.sha256()
    others = (here.with_name("steps.py"), here.parent.with_name("generate.py"))
    for file in (*source_files(), here, *others):
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


def keep_growth(options: argparse.Namespace, defaults: argparse.Namespace, folder: Path) -> None:
    """Measure what is missing, and put the steps, with the options they belong to, beside the page."""
    options.output.mkdir(parents=True, exist_ok=True)
    steps = plan_steps(plan_runs(options, find_origin()), options.rounds)
    found = measure_missing(steps, options.output)
    kept = {name: getattr(options, name) for name in SWEPT}
    header = {"command": describe_command(options, defaults), **kept}
    write_records(folder / f"{options.nodes}.jsonl", [header, *found])
    draw_plot(summarize(found), options, folder / f"{options.nodes}.svg")
