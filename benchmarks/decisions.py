"""What decisions promise, measured: `python -m benchmarks.decisions [PART ...] [--data NAME,NAME]`.

    rules       models of the real data sets, with the defaults: rules tuned on the rows that training holds
                out, judged by test rows, beside the best single threshold in hindsight; and the time of each
                rule beside that of the top 5
    million     that time with generated data of 10^6 labels
    xcolumns    `labeltree.decide` beside xCOLUMNs (in its own environment), from the same probabilities
    together    `labeltree.decide` for ten times as many rows, and 10^6 labels

Every data set is a line of docs/decisions/runs.jsonl; one that is there is not measured again unless
`--again` is given. The page docs/decisions/README.md is written anew after each. Test rows are only looked
at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz

import labeltree
from benchmarks import xcolumns_worker
from benchmarks.datasets import ALL_SETS, MissingData, both_files
from benchmarks.decisions_page import COVERED, SETS, Record, write_page
from benchmarks.environments import cache_folder, environment
from benchmarks.generate import Shape, generate
from benchmarks.scaling.steps import indicator
from labeltree.data.formats import Reading
from labeltree.data.rows import LabelRows, SparseRows, first_rows
from labeltree.decisions.fitting import fit_rule
from labeltree.decisions.goals import parse_goal
from labeltree.decisions.judged import Judged
from labeltree.decisions.rule import Rule
from labeltree.decisions.thresholds import UnreachableGoal
from labeltree.metrics.matching import Matched
from labeltree.metrics.measures import evaluate_sets
from labeltree.model import Model
from labeltree.query import make_query
from labeltree.training.driver import Source, make_model, merge_config, prepare, train_experts
from labeltree.training.means import open_means
from labeltree.training.tuning import judge_held_out

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
RANKED = ("macro-f1@5", "coverage@5", "0.97*macro-f1@5+0.03*p@5", "psp@5")
K, N_BEST, TIMED_ROWS, REPEATS = 5, 50, 1000, 4
MILLION = Shape(300_000, 1_000_000, 100_000, 5, 40)
N_ROWS, N_LABELS, N_CANDIDATES = 10_000, 30_000, 100  # of the probabilities that xCOLUMNs and we decide from
MANY_ROWS, MANY_LABELS = 100_000, 1_000_000  # of the probabilities that only we decide from
PEER_MEASURES = ("macro-f1", "macro-precision", "macro-recall", "coverage", "p")


def main(arguments: Sequence[str] | None = None) -> None:
    parts: dict[str, Callable[[argparse.Namespace], Iterator[Record]]]
    parts = {"rules": _rules, "million": _million, "xcolumns": _xcolumns, "together": _together}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; all by default")
    parser.add_argument("--data", default=",".join(ALL_SETS), help="of rules, comma-separated; default: all")
    parser.add_argument("--again", action="store_true", help="measure what is on the page already, too")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the runs and the page")
    chosen = parser.parse_args(arguments)
    for part in chosen.parts or parts:
        for record in parts[part](chosen):
            keep(chosen.output, {**record, "version": labeltree.__version__})


def keep(folder: Path, record: Record) -> None:
    """Write a record to the ledger, in the place of an earlier one, and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [each for each in kept(folder) if each["name"] != record["name"]] + [record]
    records.sort(key=lambda each: str(each["name"]))
    lines = [json.dumps(each) + "\n" for each in records]
    (folder / "runs.jsonl").write_text("".join(lines), encoding="utf-8")
    write_page(records, folder / "README.md")
    print(json.dumps(record), flush=True)


def kept(folder: Path) -> list[Record]:
    path = folder / "runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _is_wanted(chosen: argparse.Namespace, name: str) -> bool:
    return chosen.again or all(each["name"] != name for each in kept(chosen.output))


# Rules


def _rules(chosen: argparse.Namespace) -> Iterator[Record]:
    for name in chosen.data.split(","):
        if not _is_wanted(chosen, name):
            continue
        try:
            train_file, test_file = both_files(name)
        except MissingData as error:
            print(error)
            continue
        model, held_out = train_and_judge(str(train_file))
        X, Y, _ = model.read(test_file)
        yield {"name": name, "part": "rules", **_measured(model, held_out, X, Y)}


def train_and_judge(X: Any, Y: Any = None, names: Sequence[str] | None = None) -> tuple[Model, Judged]:
    """A model, with the defaults, and what it says of the rows that it was not trained on at first."""
    reading = Reading("auto", "text", "labels", ";")
    with open_means(1, None, None, None) as means:
        source = Source(X, Y, names, None, reading, skip_bad_lines=False)
        data, job = prepare(source, merge_config(None), means, lambda progress: None)
        combined = train_experts(job)
        model = make_model(data, job.config, combined, {})
        return model, judge_held_out(parse_goal("p@5"), combined, job, model.label_counts)


def _measured(model: Model, held_out: Judged, X: SparseRows, Y: LabelRows) -> Record:
    ids, probabilities, _ = model.best(X, make_query(min(N_BEST, model.n_labels)), 1)
    hits = Matched(ids, Y, (ids.shape[1],)).hits
    best = Judged(ids, probabilities, hits, Y, model.label_counts, model.label_counts, model.n_examples)
    top = (np.arange(ids.shape[1]) < K) & (ids >= 0)
    record: Record = {
        "rows": len(ids), "labels": model.n_labels, "tuned_on": held_out.n_rows,
        "top": _kept_scores(best.scores(top, K)), "hindsight": _hindsight(best),
        "rules": {}, "microseconds": {"top 5": _microseconds(model, X, None)},
    }  # fmt: skip
    for measure in (*SETS, COVERED, *RANKED):
        try:
            rule = fit_rule(parse_goal(measure), held_out)
        except UnreachableGoal:
            record["rules"][measure] = None
            continue
        record["rules"][measure] = _kept_scores(_scores(model, rule, X, Y))
        record["microseconds"][measure] = _microseconds(model, X, rule)
    return record


def _kept_scores(scores: dict[str, float]) -> dict[str, float]:
    keys = ("micro-f1", "instance-f1", "macro-f1", "coverage", "micro-precision", "p", "labels_per_row")
    return {key: round(scores[key], 6) for key in keys if key in scores}


def _hindsight(best: Judged) -> dict[str, float]:
    """The highest that any single threshold reaches on these very rows, of each measure."""
    thresholds = 1.0 / (1.0 + np.exp(-np.linspace(-4.5, 4.5, 181)))
    found = [best.scores((best.probabilities >= least) & (best.ids >= 0), 0) for least in thresholds]
    return {key: round(max(scores[key] for scores in found), 6) for key in SETS}


def _scores(model: Model, rule: Rule, X: SparseRows, Y: LabelRows) -> dict[str, float]:
    """Of what the model gives by a rule, as `predict` does."""
    found, _ = model.decided(X, model.ruled(make_query(K), rule, is_usual=True), 1)
    rows = np.repeat(np.arange(found.n_rows), np.diff(found.indptr))
    order = np.lexsort((found.indices, rows))
    scores = evaluate_sets(LabelRows(found.indptr, found.indices[order], model.n_labels), Y, model.n_labels)
    scores["labels_per_row"] = len(rows) / max(1, found.n_rows)
    scores["p"] = scores["micro-precision"] * len(rows) / (K * found.n_rows)
    return scores


def _microseconds(model: Model, X: SparseRows, rule: Rule | None) -> float:
    """CPU time of a row, the best of several: what others do on the machine only adds to it."""
    rows = first_rows(X, TIMED_ROWS)
    query, seconds = model.ruled(make_query(K), rule), []
    for _ in range(REPEATS):
        began = time.process_time()
        model.best(rows, query, 1)
        seconds.append(time.process_time() - began)
    return round(1e6 * min(seconds) / rows.n_rows, 1)


# Ten to the six labels


def _million(chosen: argparse.Namespace) -> Iterator[Record]:
    if not _is_wanted(chosen, "10^6 labels"):
        return
    data = generate(MILLION, TIMED_ROWS)
    names = [str(label) for label in range(MILLION.n_labels)]
    model, held_out = train_and_judge(data.X, indicator(data.Y), names)
    times = {"top 5": _microseconds(model, data.X_test, None)}
    for measure in (*SETS, *RANKED):
        rule = fit_rule(parse_goal(measure), held_out)
        times[measure] = _microseconds(model, data.X_test, rule)
    yield {"name": "10^6 labels", "part": "million", "shape": MILLION._asdict(), "microseconds": times}


# Beside xCOLUMNs


def _xcolumns(chosen: argparse.Namespace) -> Iterator[Record]:
    if not _is_wanted(chosen, "xcolumns"):
        return
    marginals, found = make_marginals(N_ROWS, N_LABELS, N_CANDIDATES), {}
    python = environment(xcolumns_worker, cache_folder())
    with tempfile.TemporaryDirectory(prefix="labeltree-decisions-") as folder:
        save_npz(Path(folder) / "marginals.npz", marginals)
        command = [
            str(python),
            str(Path(xcolumns_worker.__file__)),
            f"{folder}/marginals.npz",
            folder,
            str(K),
        ]
        done = subprocess.run(
            [*command, *PEER_MEASURES], stdout=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        )  # fmt: skip
        for line in filter(lambda line: line.startswith("{"), done.stdout.splitlines()):
            told = json.loads(line)
            key, theirs = told["measure"], load_npz(Path(folder) / f"{told['measure']}.npz")
            ours, times = _timed_decision(marginals, f"{key}@{K}", REPEATS)
            found[key] = {
                "theirs": utility(marginals, theirs, key), "ours": utility(marginals, ours, key),
                "their_seconds": told["seconds"], **times,
            }  # fmt: skip
    shape = {"rows": N_ROWS, "labels": N_LABELS, "candidates": N_CANDIDATES}
    yield {"name": "xcolumns", "part": "xcolumns", "shape": shape, "measures": found}


def _timed_decision(
    marginals: csr_matrix, measure: str, repeats: int
) -> tuple[csr_matrix, dict[str, float | list[float]]]:
    """A decision; its CPU seconds by one thread, and what a clock says of one and of two."""
    labeltree.decide(marginals[:50], measure=measure)  # compiled before
    seconds: list[float] = []
    walls: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repeats):
        for threads, times in walls.items():
            began, began_cpu = time.perf_counter(), time.process_time()
            decided = labeltree.decide(marginals, measure=measure, threads=threads)
            times.append(time.perf_counter() - began)
            if threads == 1:
                seconds.append(time.process_time() - began_cpu)
    return decided, {"seconds": min(seconds), "wall": [min(times) for times in walls.values()]}


# Many rows together


def _together(chosen: argparse.Namespace) -> Iterator[Record]:
    if not _is_wanted(chosen, "together"):
        return
    marginals, found = make_marginals(MANY_ROWS, MANY_LABELS, N_CANDIDATES), {}
    for key in PEER_MEASURES:
        decided, times = _timed_decision(marginals, f"{key}@{K}", REPEATS)
        tracemalloc.start()
        labeltree.decide(marginals, measure=f"{key}@{K}", threads=1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        found[key] = {"ours": utility(marginals, decided, key), **times, "bytes": most}
    shape = {"rows": MANY_ROWS, "labels": MANY_LABELS, "candidates": N_CANDIDATES}
    size = sum(array.nbytes for array in (marginals.data, marginals.indices, marginals.indptr))
    yield {"name": "together", "part": "together", "shape": shape, "bytes": size, "measures": found}


def make_marginals(n_rows: int, n_labels: int, n_candidates: int) -> csr_matrix:
    """Probabilities of labels that are frequent and rare, most of them low."""
    random = np.random.default_rng(1)
    often = 1.0 / np.arange(1, n_labels + 1) ** 0.7
    drawn = random.choice(n_labels, (n_rows, n_candidates), p=often / often.sum())
    rows = np.repeat(np.arange(n_rows), n_candidates)
    p = 1.0 / (1.0 + np.exp(-random.normal(-4.0, 1.7, drawn.size)))
    matrix = csr_matrix((p.astype(np.float32), (rows, drawn.ravel())), shape=(n_rows, n_labels))
    matrix.data = np.minimum(matrix.data, np.float32(0.999))  # labels that were drawn twice are added up
    return matrix


def utility(marginals: csr_matrix, decided: csr_matrix, key: str) -> float:
    """The measure that is expected of a decision."""
    chosen = decided.astype(bool).astype(np.float32)
    pairs = marginals.multiply(chosen).tocsr()
    hits, support, predicted = (
        np.asarray(each.sum(axis=0), float).ravel() for each in (pairs, marginals, chosen)
    )
    values = {
        "macro-f1": 2.0 * hits / np.maximum(predicted + support, 1e-12),
        "macro-precision": hits / np.maximum(predicted, 1e-12),
        "macro-recall": hits / np.maximum(support, 1e-12),
        "p": hits * (len(hits) / (K * marginals.shape[0])),
    }
    if key != "coverage":
        return float(values[key].mean())
    missed = np.bincount(pairs.indices, np.log1p(-pairs.data.astype(float)), marginals.shape[1])
    return float(np.mean(-np.expm1(missed)))


if __name__ == "__main__":
    main()
