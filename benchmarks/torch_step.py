"""What a training step of an output layer costs: a label tree's head against one matrix for all labels.

    python -m benchmarks.torch_step [--labels 100000] [--dim 512] [--batch 64] [--labels-per-row 5]
                                    [--arity 16] [--steps 10] [--threads 1]

Rows and labels are generated, labels by a power law. A step is the forward pass, the loss, the backward pass
to the hidden vectors, and the optimizer's; times are CPU seconds, the median of the steps after two others.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

N_WARM_UP = 2


class Batch(NamedTuple):
    h: Any  # (n_rows, dim) a tensor whose gradient is wanted, as that of an encoder's output is
    labels: list[NDArray[np.int64]]


class Timed(NamedTuple):
    name: str
    milliseconds: float
    pairs_per_row: float  # products of a hidden vector and a node's or label's


def make_batches(options: argparse.Namespace) -> Iterator[Batch]:
    import torch

    random = np.random.default_rng(options.seed)
    share = 1.0 / (np.arange(options.labels) + 20.0)  # a few frequent labels, many rare ones
    share /= share.sum()
    place = random.permutation(options.labels)
    while True:
        h = torch.randn(options.batch, options.dim, requires_grad=True)
        drawn = random.choice(options.labels, (options.batch, options.labels_per_row), p=share)
        yield Batch(h, [np.unique(place[row]) for row in drawn])


def time_steps(step: Callable[[Batch], None], options: argparse.Namespace) -> float:
    """Milliseconds of CPU time."""
    batches, seconds = make_batches(options), []
    for _ in range(N_WARM_UP + options.steps):
        batch = next(batches)
        began = time.process_time()
        step(batch)
        seconds.append(time.process_time() - began)
    return 1000 * statistics.median(seconds[N_WARM_UP:])


def time_tree(options: argparse.Namespace) -> Timed:
    import torch

    from labeltree.torch import PLTHead
    from labeltree.trees.shapes import build_shuffled

    head = PLTHead(options.dim, build_shuffled(options.labels, options.arity, options.seed))
    optimizer, pairs = torch.optim.SparseAdam(list(head.parameters()), lr=1e-3), []

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        out = head(batch.h, batch.labels)
        out.loss.backward()
        optimizer.step()
        pairs.append(out.n_pairs)

    return Timed("PLTHead, SparseAdam", time_steps(step, options), statistics.mean(pairs) / options.batch)


def time_matrix(options: argparse.Namespace, *, fused: bool) -> Timed:
    import torch

    layer = torch.nn.Linear(options.dim, options.labels)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-3, fused=fused)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        target = torch.zeros(options.batch, options.labels)
        for row, labels in enumerate(batch.labels):
            target[row, labels] = 1.0
        scores = layer(batch.h)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, target, reduction="sum")
        (loss / options.batch).backward()
        optimizer.step()

    name = "Linear + BCEWithLogitsLoss, " + ("Adam(fused=True)" if fused else "Adam")
    return Timed(name, time_steps(step, options), options.labels)


def table(found: Sequence[Timed]) -> str:
    """A line for each layer; the first is what others are compared with."""
    lines = [
        "| output layer | nodes or labels scored per row | ms of CPU per step | times |",
        "|---|---|---|---|",
    ]
    for name, milliseconds, pairs in found:
        times = milliseconds / found[0].milliseconds
        lines.append(f"| {name} | {pairs:,.0f} | {milliseconds:.1f} | {times:.1f} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> list[Timed]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--labels-per-row", type=int, default=5)
    parser.add_argument("--arity", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    try:
        import torch
    except ImportError:
        print("this needs torch: pip install 'labeltree[torch]'", file=sys.stderr)
        raise SystemExit(1) from None
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    found = [time_tree(options), time_matrix(options, fused=False), time_matrix(options, fused=True)]
    print(table(found))
    return found


if __name__ == "__main__":
    main()
