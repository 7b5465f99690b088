"""HSM with pick-one-label against PLT on Huffman trees (Appendix E.2), dense and sparse, on real data.

    python -m experiments.hsm_vs_plt [--data cooking-stackexchange,bibtex,...] [--seeds 1,2,3]
                                     [--output FOLDER] [--threads 1] [--quick]

Both links are trained on the same trees and rows with the same settings; then each with the best of a few
values of one parameter, chosen on held-out training rows; and once on rows of which one label each is kept,
where both should be equal. Every run is kept in FOLDER/hsm_vs_plt.jsonl: started again, only missing ones are
run, so the page can be written anew in a moment, even where the data is not.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import labeltree
from benchmarks.validate import split
from experiments.hsm_vs_plt_records import (
    KINDS,
    LINKS,
    METRICS,
    ROW_GROUPS,
    SHARED,
    DataSet,
    Kind,
    chosen,
    records_of,
    score,
)
from experiments.ledger import Ledger, Record, run_missing
from experiments.plain import PLAIN, plain_idf
from experiments.sets import Defaults, Files, add_set_options, chosen_sets, run_sets
from experiments.writing import command_of, output_folder, parser_of, write_csv
from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import Reading
from labeltree.data.rows import LabelRows, SparseRows, pointers
from labeltree.errors import TrainingError
from labeltree.features.reading import read_rows
from labeltree.metrics import evaluate
from labeltree.training.data import read_training_data

# Small ones first.
DEFAULTS = Defaults(
    data="cooking-stackexchange,bibtex,debian-debtags,delicious,wordnet-hypernyms",
    quick_data="dependent,multi-class",
    seeds="1,2,3",
    quick_seeds="1,2",
)
K = 5
TUNING_SEED = 1  # of the rows held out, of the runs they judge, and of the labels kept


class Rows(NamedTuple):
    """What one run trains on and is judged by."""

    X: SparseRows
    Y: LabelRows
    judged_X: SparseRows
    judged_Y: LabelRows


def read(train: Path, judge: Path) -> Rows:
    """Both files with plain features: TF-IDF for texts, rows of length 1."""
    data = read_training_data(train, None, Config(**PLAIN | {"idf": plain_idf(train)}))
    return Rows(data.X, data.Y, *read_rows(data.features, data.labels, judge, Reading(), BadLines()))


def keep_one(Y: LabelRows, seed: int) -> LabelRows:
    """One label of each row, drawn at random; rows without labels stay so."""
    lengths = np.diff(Y.indptr)
    has_label = lengths > 0
    place = np.floor(np.random.default_rng(seed).random(len(lengths)) * lengths).astype(np.int64)
    kept = Y.indices[(Y.indptr[:-1] + place)[has_label]]
    return LabelRows(pointers(has_label.astype(np.int64)), kept, Y.n_labels)


def with_one_label(rows: Rows) -> Rows:
    """Multi-class data: what both links should learn alike."""
    return rows._replace(Y=keep_one(rows.Y, TUNING_SEED), judged_Y=keep_one(rows.judged_Y, TUNING_SEED + 1))


def judge(ids: Any, probabilities: Any, Y: LabelRows) -> Record:
    """Percents on all rows and on those with one label and with more; None where there are none."""
    n_labels = np.diff(Y.indptr)
    found: Record = {"mean_top_probability": round(100 * float(probabilities[:, 0].mean()), 4)}
    for group, rows in (
        ("", np.arange(Y.n_rows)),
        (ROW_GROUPS[0], np.flatnonzero(n_labels == 1)),
        (ROW_GROUPS[1], np.flatnonzero(n_labels > 1)),
    ):
        truth = [Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist() for row in rows]
        precisions = evaluate(ids[rows], truth, (1, 3, 5)) if len(rows) else {}
        for name in METRICS:
            value = round(100 * precisions[name], 4) if precisions else None
            found[f"{name}, {group}" if group else name] = value
    one, more = int(np.sum(n_labels == 1)), int(np.sum(n_labels > 1))
    return {**found, "n_one": one, "n_more": more, "labels_per_row": round(float(n_labels.mean()), 4)}


def config_of(key: Mapping[str, Any]) -> Config:
    """How a run is trained: as plain models are, but sparse nodes tell calibrated probabilities."""
    given = {**SHARED, **key["settings"], "link": key["link"], "seed": key["seed"]}
    return Config(**PLAIN | given | {"calibrate": given["nodes"] == "sparse"})


def fit_and_judge(rows: Rows, key: Mapping[str, Any], threads: int) -> Record:
    """Train with the key's settings; percents on the rows to judge by, all 0 if training diverges."""
    from scipy.sparse import csr_matrix

    Y = rows.Y
    indicator = csr_matrix((np.ones(len(Y.indices), np.float32), Y.indices, Y.indptr), (Y.n_rows, Y.n_labels))
    about = {"n_train": Y.n_rows, "n_judged": rows.judged_Y.n_rows, "n_labels": Y.n_labels}
    began = time.process_time()
    try:
        model = labeltree.train(rows.X, indicator, threads=threads, config=config_of(key))
    except TrainingError as error:
        nothing = np.full((rows.judged_Y.n_rows, K), -1), np.zeros((rows.judged_Y.n_rows, K))
        return {**judge(*nothing, rows.judged_Y), **about, "diverged": str(error)}
    seconds = time.process_time() - began
    found = judge(*model.predict_arrays(rows.judged_X, K, threads=threads), rows.judged_Y)
    return {**found, **about, "diverged": "", "cpu_seconds": round(seconds, 2)}


class Runner:
    """Runs keys; files are read only when a run needs them, and kept for the next ones."""

    def __init__(self, files: Files, folder: Path, threads: int) -> None:
        self._files, self._folder, self._threads = files, folder, threads
        self._rows = functools.lru_cache(maxsize=2)(self._prepare)

    def __call__(self, key: Mapping[str, Any]) -> Record:
        return fit_and_judge(self._rows(key["data"], key["stage"]), key, self._threads)

    def _prepare(self, data: str, stage: str) -> Rows:
        train, test = self._files(data)
        if stage == "held-out":
            return read(*split(train, self._folder, TUNING_SEED))
        rows = read(train, test)
        return with_one_label(rows) if stage == "one label" else rows


def key_of(stage: str, data: str, kind: Kind, link: str, seed: int, settings: Mapping[str, Any]) -> Record:
    return dict(stage=stage, data=data, kind=kind.name, link=link, seed=seed, settings=dict(settings))


def run_set(
    ledger: Ledger, runner: Runner, data: str, seeds: Sequence[int], same_only: bool = False
) -> DataSet:
    """All runs of one data set, or those with the same settings for both links only."""

    def run(stage: str, keys: Sequence[Record]) -> list[Record]:
        return run_missing(ledger, keys, runner, f"{data}, {stage}")

    pairs = list(itertools.product(KINDS, LINKS))
    same = run(
        "same settings",
        [key_of("test", data, kind, link, seed, kind.settings) for kind, link in pairs for seed in seeds],
    )
    if same_only:
        return DataSet(same, [], [], [])
    tuning = run(
        "tuning",
        [
            key_of("held-out", data, kind, link, TUNING_SEED, kind.with_value(value))
            for kind, link in pairs
            for value in kind.values
        ],
    )
    tuned = []
    for kind, link in pairs:
        best = max(chosen(tuning, kind.name, link), key=score)  # of equals the first
        tuned += [key_of("test", data, kind, link, seed, best["settings"]) for seed in seeds]
    one_label = [key_of("one label", data, kind, link, TUNING_SEED, kind.settings) for kind, link in pairs]
    return DataSet(same, tuning, run("tuned", tuned), run("one label", one_label))


def generated_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Rows about one of some topics, with words of its own and words common to all.

    `dependent`: the labels of a topic are drawn as in the paper's example, where the likeliest label is not
    the likeliest pick. `multi-class`: one label, the topic.
    """
    n_topics, n_words, n_common = 6, 4, 20
    rng = np.random.default_rng(7)
    written = []
    for part, n_rows in (("train", 700), ("test", 300)):
        lines = []
        for _ in range(n_rows):
            topic = int(rng.integers(n_topics))
            words = [f"t{topic}x{word}" for word in rng.integers(n_words, size=3)]
            words += [f"c{word}" for word in rng.integers(n_common, size=5)]
            labels = [str(topic)]
            if name == "dependent":
                sets = [["1"], ["1", "2"], ["3"]]
                labels = [f"{topic}of{label}" for label in sets[rng.choice(3, p=[0.1, 0.5, 0.4])]]
            lines.append(" ".join([*(f"__label__{label}" for label in labels), *words]))
        written.append(folder / f"{name}.{part}.txt")
        written[-1].write_text("\n".join(lines) + "\n")
    return written[0], written[1]


def main(argv: Sequence[str] | None = None) -> None:
    from experiments.hsm_vs_plt_page import write

    parser = parser_of(__doc__ or "")
    add_set_options(parser, DEFAULTS)
    parser.add_argument(
        "--same-only", default="", help="comma-separated: data sets where nothing is tuned (it takes longest)"
    )
    options = parser.parse_args(argv)
    folder = output_folder(options)
    names, seeds = chosen_sets(options, DEFAULTS)
    ledger = Ledger(folder / "hsm_vs_plt.jsonl")

    def run(name: str, files: Files, scratch: Path) -> DataSet:
        runner = Runner(files, scratch, options.threads)
        return run_set(ledger, runner, name, seeds, name in options.same_only.split(","))

    found = run_sets(names, generated_files if options.quick else None, run)
    command = command_of("hsm_vs_plt", options, "data", "seeds", "same_only")
    records = [record for data in found.values() for record in records_of(data)]
    flat = [{**record, "settings": json.dumps(record["settings"])} for record in records]
    write_csv(folder / "hsm_vs_plt.csv", flat)
    print(write(folder, found, command))


if __name__ == "__main__":
    main()
