"""The paper's main table (Table 1): accuracy, training and test time, model size of its systems on our data.

    python -m experiments.table1 [--data cooking-stackexchange,debian-debtags,...] [--systems 'XT;labeltree']
                                 [--runs docs/results/runs.jsonl] [--recorded] [--output FOLDER] [--threads 1]
                                 [--quick]

Each system is a combination of labeltree's parameters, untuned, trained once (XT: three times); the peers'
rows are read from the runs of `python -m benchmarks.compare`, those of XML-CNN from the records of
`python -m experiments.xml_cnn`. Every run is kept in FOLDER/table1.jsonl: started again, only missing ones
are run, so the page can be written anew in a moment, even where the data is not.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import labeltree
from experiments.ledger import Ledger, Record, run_missing
from experiments.plain import PLAIN, is_numbered
from experiments.sets import Files, run_sets
from experiments.table1_systems import (
    LARGE_SETS,
    NOT_RUN,
    SYSTEMS,
    System,
    mean_record,
    network_records,
    peer_records,
)
from experiments.writing import command_of, output_folder, parser_of, write_csv
from labeltree.config import Config, make_config
from labeltree.errors import TrainingError
from labeltree.metrics import evaluate

# Small ones first.
DATA = f"cooking-stackexchange,bibtex,debian-debtags,delicious,wordnet-hypernyms,{','.join(LARGE_SETS)}"
RUNS = Path("docs") / "results" / "runs.jsonl"
K = 5
WARM_UP_ROWS = 300
N_TIMINGS = 3


def measure(train: Path, test: Path, key: Mapping[str, Any], threads: int, folder: Path) -> Record:
    """Train one system on a file, kernels compiled before; judge it, time it, weigh it.

    Training that diverges is a result too: nothing is tuned here.
    """
    settings = {**key["settings"], "seed": key["seed"]}
    if is_numbered(train):
        settings["idf"] = False  # they are taken as they are
    config = make_config(settings, preset=settings.pop("preset", None), config=Config(**PLAIN))
    with contextlib.suppress(TrainingError):
        warm_up(train, config, threads, folder)
    began = time.process_time(), time.perf_counter()
    try:
        model = labeltree.train(train, threads=threads, config=config)
    except TrainingError as error:
        return {"diverged": str(error)}
    cpu_seconds, wall_seconds = time.process_time() - began[0], time.perf_counter() - began[1]
    X, Y, _ = model.read(test)
    ids, _ = model.predict_arrays(X, K, threads=1)
    found = evaluate(ids, Y, (1, 3, 5))
    seconds = []
    for _ in range(N_TIMINGS):
        start = time.process_time()
        model.predict_arrays(X, K, threads=1)
        seconds.append(time.process_time() - start)
    file = folder / "model.labeltree"
    model.save(file)
    return {
        **{name: round(100 * found[name], 4) for name in ("p@1", "p@3", "p@5")},
        "train_cpu_seconds": round(cpu_seconds, 2),
        "train_wall_seconds": round(wall_seconds, 2),
        "test_us_per_row": round(1e6 * min(seconds) / X.n_rows, 2),
        "test_input": "vectors",
        "model_bytes": file.stat().st_size,
        "n_train": model.n_examples,
        "n_test": X.n_rows,
        "n_features": model.n_features,
        "n_labels": model.n_labels,
        "unused_rows": model.unused_rows,
    }


def warm_up(train: Path, config: Config, threads: int, folder: Path) -> None:
    """Compile what the config needs, by training on the first rows."""
    with train.open("rb") as source:
        lines = list(itertools.islice(source, WARM_UP_ROWS))
    if is_numbered(train):
        lines[0] = b"%d %b %b\n" % (len(lines) - 1, *lines[0].split()[1:])
    few = folder / "few.txt"
    few.write_bytes(b"".join(lines))
    model = labeltree.train(few, threads=threads, config=config)
    model.predict_arrays(model.read(few)[0], K, threads=1)


def run_set(
    ledger: Ledger, data: str, systems: Sequence[System], run: Callable[[Mapping[str, Any]], Record] | None
) -> list[Record]:
    """Our rows of one data set: missing ones are run, or left out if there is nothing to run them."""
    records = []
    for system in systems:
        if system.name in NOT_RUN.get(data, ()):
            continue
        keys = [
            dict(data=data, system=system.name, settings=dict(system.settings), seed=seed)
            for seed in range(1, 2 if data in LARGE_SETS else system.n_seeds + 1)
        ]
        if run is None:
            runs = [{**key, **found} for key in keys if (found := ledger.find(key)) is not None]
        else:
            runs = run_missing(ledger, keys, run, f"{data}, {system.name}")
        diverged = [found for found in runs if "diverged" in found]
        if runs:
            records.append(diverged[0] if diverged else mean_record(runs))
    return records


def read_runs(path: Path) -> list[Record]:
    """The harness' runs; none, and told, where there is no such file."""
    if not path.is_file():
        print(f"{path}: not found, so no peers", file=sys.stderr)
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def choose(names: str | None) -> list[System]:
    """Our rows, or those of a list separated by semicolons."""
    known = {system.name: system for system in SYSTEMS}
    for name in names.split(";") if names else ():
        if name not in known:
            raise SystemExit(f"unknown system {name!r}; known are {'; '.join(known)}")
    return [known[name] for name in names.split(";")] if names else list(SYSTEMS)


def main(argv: Sequence[str] | None = None) -> None:
    from experiments.hsm_vs_plt import generated_files
    from experiments.table1_page import write

    parser = parser_of(__doc__ or "")
    parser.add_argument("--data", help=f"comma-separated; default: {DATA}; with --quick a generated one")
    parser.add_argument("--systems", help="our rows, separated by semicolons; default: all")
    parser.add_argument("--runs", type=Path, help=f"of the peers; default: {RUNS.as_posix()}")
    parser.add_argument("--recorded", action="store_true", help="run nothing: write what is recorded")
    options = parser.parse_args(argv)
    folder, systems = output_folder(options), choose(options.systems)
    names = (options.data or ("dependent" if options.quick else DATA)).split(",")
    runs = [] if options.quick and options.runs is None else read_runs(options.runs or RUNS)
    ledger = Ledger(folder / "table1.jsonl")

    def run(name: str, files: Files, scratch: Path) -> list[Record]:
        def run_key(key: Mapping[str, Any]) -> Record:
            return measure(*files(name), key, options.threads, scratch)

        ours = run_set(ledger, name, systems, None if options.recorded else run_key)
        return [*ours, *peer_records(runs, name), *network_records(folder / "xml_cnn.jsonl", name)]

    found = run_sets(names, generated_files if options.quick else None, run)
    command = command_of("table1", options, "data", "systems")
    records = [record for rows in found.values() for record in rows]
    flat = [{**record, "settings": json.dumps(record.get("settings", {}))} for record in records]
    write_csv(folder / "table1.csv", flat)
    print(write(folder, found, command))


if __name__ == "__main__":
    main()
