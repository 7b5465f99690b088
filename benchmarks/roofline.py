"""Where the time of dense nodes goes, against what this machine can do: one thread, the roofline model.

    python -m benchmarks.roofline [--data NAME,NAME] [--page docs/roofline.md] [--quick]

First the machine's roofs: multiply-adds in registers, reading from L2 and from memory, random rows. Then, for
each data set, training (`--preset fast --nodes dense`) and prediction in a batch (k=5), part by part: CPU
time, the work that has to be done, and the time that the machine needs for it by each of its roofs. The
largest of these is the roofline; its share of the measured time is the efficiency.

What is counted is the least work that the method asks for, not what the kernels issue (a multiply-add is two
operations):

* training, for each example of an epoch: 2 dim per feature for h and 2 dim for the embeddings' gradients;
  6 dim per visited node (score, gradient of h, gradient of w); 5 dim for each row that a batch touches
  (Adagrad and the step). Nodes that are constant in the training data count nothing. Left out: exponentials,
  the plan of a batch, sums over visits (they make the result the same for any number of threads), checks.
* training, from memory: every row that a batch touches once in and once out, and the examples. That is the
  least if nothing but a batch's rows stays in cache. From L2, an estimate of what L1 cannot hold: for each
  feature of an example its embedding row and, for the update, the example's gradient; for each group of
  siblings that it visits h and the gradient of h; touched rows once in and once out.
* prediction: 2 dim per feature and per scored node, which are the root and the children of all nodes at least
  as probable as the k-th label; from memory a byte per number, scales, biases and the row's entries. Left
  out: log-sigmoids and the queue.

Visits are the same in any order of the examples; touched rows are counted in one random order. The rate of
memory is no constant of the machine here, as rows that are touched often stay near. So it is measured: the
same rows of the same matrix, in the same order, brought near without arithmetic (in training embeddings, read
and written, whose rate counts for nodes too; in prediction both, read). So it is an estimate, not a law.

The times of the parts of training come from one more epoch, in which the kernel's phases are timed; those of
prediction from searches that are told which nodes to open, the queue's being the rest.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import roofline_kernels as kernels
from benchmarks.datasets import TEXT_SETS, MissingData, both_files
from benchmarks.generate import Shape, generate
from benchmarks.roofline_machine import Machine, fastest, find_machine, measure_roofs
from benchmarks.roofline_page import Part, Rates, Result, Work, write_page
from benchmarks.roofline_search import measure_search
from benchmarks.scaling.steps import WARM_SHAPE, indicator
from labeltree.config import Config, make_config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, first_rows
from labeltree.experts.job import Progress
from labeltree.kernels.dense.arrays import Step
from labeltree.model import Model
from labeltree.nodes.biases import initial_bias
from labeltree.nodes.dense.fitting import OPTIMIZERS, SMALLEST_SQUARES, Trainer
from labeltree.nodes.kind import FitInput
from labeltree.parallel import Pool
from labeltree.training.data import read_training_data
from labeltree.training.driver import train
from labeltree.tree import LabelTree

N_SEARCHED = 1000  # test rows that are searched
QUICK_SHAPE = Shape(600, 100, 1_000, 3, 20)
PHASES = ("plan", "embed", "chunks", "sums", "features")
CLOCKS_PER_SECOND = 1e6  # of the C library, by POSIX


class Counts(NamedTuple):
    """What one epoch of training goes through."""

    entries: int  # (example, feature)
    labels: int  # (example, label)
    visits: int  # (example, node with something to learn)
    groups: int  # (example, siblings with something to learn)
    touched_features: int  # (batch, feature)
    touched_nodes: int  # (batch, node with something to learn)


def count_epoch(
    X: SparseRows, Y: LabelRows, tree: LabelTree, order: NDArray[np.int64], batch_size: int
) -> tuple[Counts, NDArray[np.int32]]:
    """The counts of an epoch in this order, and the features that each batch touches, batch after batch."""
    from labeltree.kernels.trees.shapes import count_rows_below

    below = np.zeros(tree.n_nodes, np.int64)
    count_rows_below(Y.indptr, Y.indices, tree.parent, tree.leaf_of_label, below)
    is_learned = np.isfinite(initial_bias(below.astype(np.float64), tree, float(Y.n_rows)))
    n_learned = np.bincount(tree.parent[1:][is_learned[1:]], minlength=tree.n_nodes).astype(np.int32)
    touched, found = np.empty(len(X.indices), np.int32), np.zeros(4, np.int64)
    kernels.count_batches(
        order, batch_size, X.indptr, X.indices, Y.indptr, Y.indices, tree.parent, tree.leaf_of_label,
        n_learned, *(np.full(n, -1, np.int64) for n in (X.n_columns, tree.n_nodes, tree.n_nodes)), touched,
        found,
    )  # fmt: skip
    visits, groups, touched_features, touched_nodes = (int(count) for count in found)
    if is_learned[0]:  # some examples have no label, so the root's own classifier judges all
        n_batches = -(-len(order) // batch_size)
        visits, groups, touched_nodes = visits + len(order), groups + len(order), touched_nodes + n_batches
    counts = Counts(len(X.indices), len(Y.indices), visits, groups, touched_features, touched_nodes)
    return counts, touched[:touched_features]


def training_work(counts: Counts, dim: int) -> dict[str, Work]:
    """Of one epoch; the module's docstring says what is counted."""
    row = 4 * dim
    return {
        "plan": Work(0, 0, 0),
        "embed": Work(
            flops=2 * dim * counts.entries,
            cache_bytes=row * counts.entries,
            memory_bytes=row * counts.touched_features + 8 * counts.entries,
        ),
        "chunks": Work(
            flops=6 * dim * counts.visits + 5 * dim * counts.touched_nodes,
            cache_bytes=2 * row * counts.groups + 2 * row * counts.touched_nodes,
            memory_bytes=2 * row * counts.touched_nodes + 4 * counts.labels,
        ),
        "sums": Work(0, 0, 0),
        "features": Work(
            flops=2 * dim * counts.entries + 5 * dim * counts.touched_features,
            cache_bytes=row * counts.entries + 2 * row * counts.touched_features,
            memory_bytes=row * counts.touched_features,
        ),
    }


def time_phases(trainer: Trainer, order: NDArray[np.int64]) -> dict[str, float]:
    """CPU seconds of each part of an epoch on one thread."""
    config, clocks = trainer.config, np.zeros(len(PHASES), np.int64)
    rate, (*powers, embedding_rate) = config.lr, OPTIMIZERS[config.optimizer]
    step = Step(rate, rate, embedding_rate, *powers, SMALLEST_SQUARES, config.l2, trainer.batch_size)

    def run(rows: NDArray[np.int64], n_seen: int) -> None:
        kernels.train_phases(
            trainer.examples, trainer.chunks, trainer.parameters, trainer.plan, trainer.buffers, rows, n_seen,
            step, np.float32(rate), np.float32(rate * embedding_rate), trainer.scratch[0], clocks,
        )  # fmt: skip

    run(order[: trainer.batch_size], len(order))  # compiles; other numbers of examples, as stamps are kept
    run(order, 0)
    return {phase: clock / CLOCKS_PER_SECOND for phase, clock in zip(PHASES, clocks.tolist(), strict=True)}


def train_timed(X: Any, Y: Any, config: Config) -> tuple[Model, float]:
    """The model, and the CPU seconds of its optimisation (without reading, tree and rounding to bytes)."""
    ended: dict[str, float] = {}  # each stage's last sign of life

    def watch(progress: Progress) -> None:
        ended[progress.stage] = time.process_time()

    model = train(X, Y, config=config, threads=1, callback=watch)
    return model, ended["train"] - ended["tree"]


def measure_training(
    X: SparseRows, Y: LabelRows, tree: LabelTree, config: Config, roofs: dict[str, float]
) -> tuple[Counts, list[Part]]:
    """Counts of an epoch, and the parts of all epochs."""
    order = np.random.default_rng(config.seed).permutation(X.n_rows).astype(np.int64)
    counts, touched = count_epoch(X, Y, tree, order, config.batch_size)
    rows = TrainingRows(X, Y, np.ones(X.n_rows, np.float32))
    with Pool(1) as pool:
        began = time.process_time()
        trainer = Trainer(FitInput(rows, tree, config, config.seed, pool))
        setup_seconds = time.process_time() - began
        seconds = time_phases(trainer, order)
    embedding, one = trainer.parameters.embedding, np.float32(1.0)
    moved = fastest(lambda: kernels.move_rows(embedding, touched, one), 1)
    memory = 2 * embedding.shape[1] * 4 * len(touched) / moved
    rates = Rates(max(roofs["fma_256"], roofs["fma_512"]), roofs["l2"], memory)
    work = training_work(counts, config.dim)
    return counts, [
        Part("setup", setup_seconds, Work(0, 0, 0), rates),
        *(
            Part(phase, seconds[phase] * config.epochs, work[phase].times(config.epochs), rates)
            for phase in PHASES
        ),
    ]


def measure(name: str, config: Config, roofs: dict[str, float], machine: Machine) -> Result:
    """A data set, or generated data where the name is empty."""
    if name:
        train_file, test_file = both_files(name)
        source: tuple[Any, Any] = (str(train_file), None)
    else:
        drawn = generate(QUICK_SHAPE, 100)
        source = (drawn.X, indicator(drawn.Y))
    model, stage_seconds = train_timed(*source, config)
    data = read_training_data(*source, config)
    search = model.experts[0]
    counts, training = measure_training(data.X, data.Y, search.tree, config, roofs)
    X = model.read(test_file)[0] if name else drawn.X_test
    X = first_rows(X, N_SEARCHED)
    opened, scored, prediction = measure_search(search, X, roofs, machine.n_times)
    return Result(
        name=name or "generated",
        n_examples=data.X.n_rows,
        n_labels=data.Y.n_labels,
        n_features=data.X.n_columns,
        n_nodes=search.tree.n_nodes,
        epochs=config.epochs,
        dim=config.dim,
        counts=counts._asdict(),
        stage_seconds=stage_seconds,
        training=training,
        n_searched=X.n_rows,
        features_per_row=len(X.indices) / X.n_rows,
        opened=opened,
        scored=scored,
        prediction=prediction,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(TEXT_SETS[:3]), help="names, separated by commas")
    parser.add_argument("--page", type=Path, help="write the results there too")
    parser.add_argument("--quick", action="store_true", help="little generated data: does everything work?")
    options = parser.parse_args(arguments)
    few = {"dim": 16, "epochs": 2} if options.quick else {}
    config = make_config({"nodes": "dense", **few}, preset="fast")
    machine = find_machine(options.quick)
    warm = generate(WARM_SHAPE)
    train(warm.X, indicator(warm.Y), config=config, threads=1)
    roofs, results, missing = measure_roofs(machine), [], []
    for name in [""] if options.quick else options.data.split(","):
        try:
            results.append(measure(name, config, roofs, machine))
        except MissingData as error:
            missing.append(str(error))
    command = "python -m benchmarks.roofline" + " --quick" * options.quick
    if options.data != parser.get_default("data"):
        command += f" --data {options.data}"
    page = write_page(command, roofs, results, missing)
    if options.page:
        options.page.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
