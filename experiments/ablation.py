"""What each part of the paper's system adds (Figure 1, Appendix E.3): eight variants, each tuned by itself.

    python -m experiments.ablation [--data cooking-stackexchange,bibtex,debian-debtags,delicious] [--seeds 1]
                                   [--output FOLDER] [--threads 1] [--quick]

Huffman tree or clustering, mean of the word vectors or weights by TF-IDF, no regularisation or L2. Each
variant is trained with every point of the paper's grid on nine tenths of the training rows and judged by the
rest; then on all training rows, at the paper's dim, with the values that did best, and judged on the test
rows. A step size that makes training diverge scores 0. Every run is kept in FOLDER/ablation.jsonl: started
again, only missing ones are run, so the page can be written anew in a moment, even where the data is not.
"""

from __future__ import annotations

import functools
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import labeltree
from benchmarks.datasets import MissingData, both_files
from benchmarks.validate import split
from experiments.ablation_records import (
    FIXED,
    FULL,
    METRICS,
    VARIANTS,
    DataSet,
    Grid,
    Outcome,
    Variant,
    ranked,
    records_of,
)
from experiments.ledger import Ledger, Record, run_missing
from experiments.writing import command_of, output_folder, parser_of, write_csv
from labeltree.config import make_config
from labeltree.data.bad_lines import BadLines
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import TrainingError
from labeltree.features.counting import inverse_document_frequency
from labeltree.features.vectors import VectorFeatures
from labeltree.metrics import evaluate
from labeltree.streaming import read_rows
from labeltree.training_data import read_training_data

DATA = "cooking-stackexchange,bibtex,debian-debtags,delicious"
TUNING_SEED = 1  # of the rows held out, and of the runs they judge
N_CHECKED = 2  # data sets on which some points of the grid are tuned at the final dim too

PAPER_GRID = Grid((0.05, 0.1, 0.5), (0.001, 0.002, 0.003), (20, 30, 40), 100, 500)
QUICK_GRID = Grid((0.1, 1.0), (0.001, 0.003), (4, 10), 8, 16)


class Rows(NamedTuple):
    """What one run trains on and is judged by, weighted."""

    X: SparseRows
    Y: LabelRows
    judged_X: SparseRows
    judged_Y: LabelRows
    input: str


def prepare(train: Path, judge: Path, weights: str) -> Rows:
    """Both files as rows whose absolute values sum to 1: word counts, times the IDF if weights is tf-idf.

    labeltree takes numbered features as they come; here their columns are weighted as words would be.
    """
    config = make_config({"tf": "count", "idf": weights == "tf-idf", "row_norm": "mean"})
    data = read_training_data(train, None, config)
    features, X = data.features, data.X
    judged_X, judged_Y = read_rows(features, data.labels, judge, "auto", BadLines())
    if not isinstance(features, VectorFeatures):
        return Rows(X, data.Y, judged_X, judged_Y, "text")
    idf = inverse_document_frequency(X) if config.idf else np.ones(X.n_columns, np.float32)

    def weigh(rows: SparseRows) -> SparseRows:
        return features.transform(rows._replace(values=rows.values * idf[rows.indices]))

    return Rows(weigh(X), data.Y, weigh(judged_X), judged_Y, "vectors")


def fit_and_judge(rows: Rows, key: Mapping[str, Any], threads: int) -> Record:
    """Train with the key's values; percents on the rows to judge by, all 0 if training diverges."""
    from scipy.sparse import csr_matrix

    Y = rows.Y
    shape = (Y.n_rows, Y.n_labels)
    indicator = csr_matrix((np.ones(len(Y.indices), np.float32), Y.indices, Y.indptr), shape)
    given = {name: key[name] for name in ("tree", "lr", "l2", "epochs", "dim", "seed")}
    about = {
        "input": rows.input, "n_train": Y.n_rows, "n_judged": rows.judged_Y.n_rows, "n_labels": Y.n_labels
    }  # fmt: skip
    began = time.process_time()
    try:
        model = labeltree.train(rows.X, indicator, threads=threads, **FIXED, **given)
    except TrainingError as error:
        return {**dict.fromkeys(METRICS, 0.0), "diverged": str(error), **about}
    seconds = time.process_time() - began
    ids, _ = model.predict_arrays(rows.judged_X, 5, threads=threads)
    found = evaluate(ids, rows.judged_Y, (1, 3, 5))
    precisions = {name: round(100 * found[name], 4) for name in METRICS}
    return {**precisions, "diverged": "", **about, "cpu_seconds": round(seconds, 2)}


Files = Callable[[str], tuple[Path, Path]]  # training and test file of a data set


class Runner:
    """Runs keys; files are read only when a run needs them, and kept for the next ones."""

    def __init__(self, files: Files, folder: Path, threads: int) -> None:
        self._files, self._folder, self._threads = files, folder, threads
        self._rows = functools.lru_cache(maxsize=2)(self._prepare)

    def __call__(self, key: Mapping[str, Any]) -> Record:
        rows = self._rows(key["data"], key["stage"], key["weights"])
        return fit_and_judge(rows, key, self._threads)

    def _prepare(self, data: str, stage: str, weights: str) -> Rows:
        train, test = self._files(data)
        if stage == "final":
            return prepare(train, test, weights)
        return prepare(*split(train, self._folder, TUNING_SEED), weights)


def points(data: str, variant: Variant, grid: Grid) -> list[Record]:
    """The keys of a variant's tuning."""
    strengths = grid.l2 if variant.has_l2 else (0.0,)
    return [
        dict(stage="tune", data=data, tree=variant.tree, weights=variant.weights, l2=l2, lr=lr, epochs=epochs,
             dim=grid.tuning_dim, seed=TUNING_SEED)
        for l2, lr, epochs in itertools.product(strengths, grid.lr, grid.epochs)
    ]  # fmt: skip


def check_points(data: str, grid: Grid) -> list[Record]:
    """The full variant's step sizes and regularisations at the final dim, epochs the middle of the grid."""
    middle = grid.epochs[len(grid.epochs) // 2]
    return [
        {**point, "dim": grid.final_dim} for point in points(data, FULL, grid) if point["epochs"] == middle
    ]


def finish(
    ledger: Ledger, runner: Runner, tuning: Sequence[Record], seeds: Sequence[int], grid: Grid
) -> Outcome:
    """Train with the best tuned values that do not diverge at the final dim."""
    names = ("data", "tree", "weights", "l2", "lr", "epochs")
    diverged: list[Record] = []
    for best in ranked(tuning):
        chosen = {name: best[name] for name in names}
        keys = [{"stage": "final", **chosen, "dim": grid.final_dim, "seed": seed} for seed in seeds]
        final = run_missing(ledger, keys, runner, f"{best['data']}, final")
        if not any(record["diverged"] for record in final):
            return Outcome(list(tuning), diverged, final)
        diverged += [record for record in final if record["diverged"]]
    return Outcome(list(tuning), diverged, diverged[: len(seeds)])


def run_set(
    ledger: Ledger, runner: Runner, data: str, seeds: Sequence[int], grid: Grid, check: bool
) -> DataSet:
    """All runs of one data set, in an order that reads each file seldom."""
    tuned: dict[Variant, list[Record]] = {}
    for variant in sorted(VARIANTS, key=lambda variant: variant.weights):
        title = f"{data}, {variant.title}"
        tuned[variant] = run_missing(ledger, points(data, variant, grid), runner, title)
    checks = check_points(data, grid) if check else []
    checked = run_missing(ledger, checks, runner, f"{data}, dim {grid.final_dim}")
    outcomes = {variant: finish(ledger, runner, tuned[variant], seeds, grid) for variant in VARIANTS}
    return DataSet(outcomes, checked)


def generated_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Rows about one of some topics, with one or two of its labels, many common words and two about it.

    One of the latter in three is of another topic. `words` is a fastText file, `numbers` the same as XMLC.
    """
    n_topics, n_words, n_common = 36, 4, 8  # 108 labels: more than a group of the clustering holds
    rng = np.random.default_rng(7)
    written = []
    for part, n_rows in (("train", 700), ("test", 150)):
        lines = []
        for _ in range(n_rows):
            topic = int(rng.integers(n_topics))
            labels = sorted({3 * topic, 3 * topic + int(rng.integers(3))})
            topics = np.where(rng.random(2) < 2 / 3, topic, rng.integers(n_topics, size=2))
            own = n_common + n_words * topics + rng.integers(n_words, size=2)
            columns = [*own.tolist(), *rng.integers(n_common, size=12).tolist()]
            if name == "words":
                lines.append(" ".join([*(f"__label__{x}" for x in labels), *(f"w{x}" for x in columns)]))
            else:
                lines.append(",".join(map(str, labels)) + "".join(f" {x}:1" for x in sorted({*columns})))
        if name == "numbers":
            lines.insert(0, f"{n_rows} {n_common + n_topics * n_words} {3 * n_topics}")
        written.append(folder / f"{name}.{part}.txt")
        written[-1].write_text("\n".join(lines) + "\n")
    return written[0], written[1]


def main(argv: Sequence[str] | None = None) -> None:
    from experiments.ablation_page import write

    parser = parser_of(__doc__ or "")
    parser.add_argument("--data", help=f"comma-separated; default: {DATA}; with --quick generated ones")
    parser.add_argument("--seeds", default="1", help="of the final runs, comma-separated; default: 1")
    chosen = parser.parse_args(argv)
    folder = output_folder(chosen)
    grid = QUICK_GRID if chosen.quick else PAPER_GRID
    names = (chosen.data or ("words,numbers" if chosen.quick else DATA)).split(",")
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    ledger = Ledger(folder / "ablation.jsonl")
    found: dict[str, DataSet] = {}
    with tempfile.TemporaryDirectory(prefix="labeltree-ablation-") as temporary:
        scratch = Path(temporary)
        files = functools.partial(generated_files, scratch) if chosen.quick else both_files
        runner = Runner(files, scratch, chosen.threads)
        for number, name in enumerate(names):
            try:
                found[name] = run_set(ledger, runner, name, seeds, grid, number < N_CHECKED)
            except MissingData as error:
                print(error, file=sys.stderr)
    if not found:
        raise SystemExit("no data set, no page")
    command = command_of("ablation", chosen, "data", *(["seeds"] if chosen.seeds != "1" else []))
    write_csv(folder / "ablation.csv", [record for data in found.values() for record in records_of(data)])
    print(write(folder, found, grid, command))


if __name__ == "__main__":
    main()
