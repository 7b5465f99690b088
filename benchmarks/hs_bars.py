"""What we hold ourselves to beside fastText's hierarchical softmax: the preset `fasttext-hs`."""

from __future__ import annotations

from benchmarks.peer_bars import (
    MISSED,
    NOT_MEASURED,
    REACHED,
    Bar,
    Standing,
    shown_precisions,
    shown_runs,
    shown_training,
)

SETS = ("cooking-stackexchange", "debian-debtags")
OURS, THEIRS = "labeltree-hs", "fasttext-hs"
NEAR = 1.0  # points of P@1


def parity(standing: Standing) -> list[list[str]]:
    ours, theirs = standing.mean(OURS, "train_cpu_s"), standing.mean(THEIRS, "train_cpu_s")
    our_precisions, their_precisions = standing.precisions(OURS), standing.precisions(THEIRS)
    near = less = NOT_MEASURED
    if ours and theirs and our_precisions and their_precisions:
        near = REACHED if abs(our_precisions[0] - their_precisions[0]) <= NEAR else MISSED
        less = REACHED if ours < theirs else MISSED
    return [[
        shown_precisions(our_precisions), shown_precisions(their_precisions), shown_training(standing, OURS),
        shown_training(standing, THEIRS), shown_runs(standing, (OURS, THEIRS)), near, less,
    ]]  # fmt: skip


BARS = (
    Bar(
        "Parity with fastText",
        "`--preset fasttext-hs` with fastText's length of vectors, epochs, step and word pairs: P@1 within "
        f"{NEAR} of fastText's, in less CPU time of the whole process.",
        ("labeltree-hs P@1/3/5", "fasttext-hs P@1/3/5", "labeltree-hs CPU s", "fasttext-hs CPU s", "runs",
         "near", "less CPU time"),
        2,
        parity,
    ),
)  # fmt: skip
