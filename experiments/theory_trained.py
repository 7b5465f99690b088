"""The package's own training on rows of known distributions: does it find the marginals?

Each of three x is a feature of its own, so every node can represent its conditionals exactly; what is left is
the regularisation (weak) and the rounding of the stored weights to bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import labeltree
from experiments import theory_exact as exact
from experiments.plain import PLAIN
from experiments.theory_checks import Check
from experiments.theory_exact import Array, Distribution
from labeltree.config import Config

# Label sets and their numbers of rows. The first x is the paper's counterexample, the second has rows
# without labels, the third one label per row. No rows are held out for
# calibration, which moves all probabilities; what it does to sparse nodes is told beside the verdict.
ROWS: tuple[dict[tuple[int, ...], int], ...] = (
    {(0,): 15, (0, 1): 75, (2,): 60},
    {(): 45, (1,): 30, (1, 3): 30, (0, 2, 3): 45},
    {(0,): 30, (1,): 60, (2,): 15, (3,): 45},
)
LABELS = ("1", "2", "3", "4")
# Solved exactly, but for C: a larger one converges only slowly where rows are repeated.
SPARSE: dict[str, Any] = dict(
    nodes="sparse", loss="log", C=100.0, rare_weight=0.0, prune=0.0, bias=1.0, tolerance=1e-5,
    max_iterations=2000, row_norm="none",
)  # fmt: skip
DENSE: dict[str, Any] = dict(
    nodes="dense", dim=16, epochs=400, lr=0.1, l2=0.0, batch_size=64, row_norm="none"
)
SETTINGS = (SPARSE, DENSE)
TREES = ("complete", "huffman")
CALIBRATED = 4  # times the rows: enough of them to be calibrated
TOLERANCE = {("plt", "sparse"): 0.01, ("plt", "dense"): 0.01, ("hsm", "sparse"): 0.01, ("hsm", "dense"): 0.02}


def distributions() -> list[Distribution]:
    """P(y | x) of each x."""
    found = []
    for counts in ROWS:
        labels = np.array([[label in labels for label in range(len(LABELS))] for labels in counts])
        found.append(Distribution(labels, np.array(list(counts.values())) / sum(counts.values())))
    return found


def training_rows(times: int = 1) -> tuple[Array, list[list[str]]]:
    """Features and labels of all rows, each so many times, shuffled."""
    rows = [
        (x, [LABELS[label] for label in labels])
        for x, counts in enumerate(ROWS)
        for labels, count in counts.items()
        for _ in range(times * count)
    ]
    order = np.random.default_rng(9).permutation(len(rows))
    return np.eye(len(ROWS))[[rows[i][0] for i in order]], [rows[i][1] for i in order]


def trained_probabilities(tree: str, link: str, settings: dict[str, Any], times: int = 1) -> Array:
    """(n_x, n_labels) what a trained model says."""
    X, Y = training_rows(times)
    config = Config(**PLAIN | {"tree": tree, "arity": 2, "link": link} | settings)
    model = labeltree.train(X, Y, label_names=LABELS, threads=1, config=config)
    return model.probability(np.eye(len(ROWS)), LABELS, threads=1).astype(np.float64)


def wanted_probabilities(link: str) -> Array:
    """The marginals; for HSM the pick-one values, which cannot know of rows without labels."""
    if link == "plt":
        return np.array([exact.marginals(distribution) for distribution in distributions()])
    picked = np.array([exact.pick_one(distribution) for distribution in distributions()])
    return picked / picked.sum(axis=1, keepdims=True)


def calibrated(link: str) -> str:
    """What calibration does to sparse nodes; it is no part of the theory, so it is told, not judged."""
    found = trained_probabilities(TREES[0], link, SPARSE | {"calibrate": True}, CALIBRATED)
    error = float(np.abs(found - wanted_probabilities(link)).max())
    lost = exact.regret(distributions()[0], found[0], 1)
    return (
        f"not judged: from {CALIBRATED} times the rows, enough to be calibrated on held-out ones, {TREES[0]} "
        f"tree, sparse nodes: largest error {error:.4f}, regret {lost:.4g}. Calibration aims at the "
        "probability that a label is right, whatever the link"
    )


def check_trained(link: str, with_calibration: bool = True) -> Check:
    """Trained models against what their kind must find; the counterexample's precision@1 comes with it."""
    name = f"Trained {link}"
    claim = {
        "plt": "labeltree's own training of a PLT finds the marginals, and so loses nothing on the paper's "
        "counterexample.",
        "hsm": "labeltree's own training of HSM finds the pick-one values, and so loses 0.2 of precision@1 "
        "on the paper's counterexample.",
    }[link]
    wanted, passed, computed = wanted_probabilities(link), True, []
    lost_wanted = {"plt": 0.0, "hsm": 0.2}[link]
    for tree in TREES:
        for settings in SETTINGS:
            nodes = settings["nodes"]
            found = trained_probabilities(tree, link, settings)
            error = float(np.abs(found - wanted).max())
            lost = exact.regret(distributions()[0], found[0], 1)
            tolerance = TOLERANCE[link, nodes]
            passed = passed and error <= tolerance and abs(lost - lost_wanted) <= 1e-9
            computed.append(
                f"{tree} tree, {nodes} nodes: largest error {error:.4f} (tolerance {tolerance:g}), regret on "
                f"the counterexample at precision@1 {lost:.4g}"
            )
    computed.append(f"{sum(sum(counts.values()) for counts in ROWS)} rows; settings: {_shown_settings()}")
    if with_calibration:
        computed.append(calibrated(link))
    return Check(name, claim, tuple(computed), passed)


def _shown_settings() -> str:
    return "; ".join(", ".join(f"{name}={value}" for name, value in used.items()) for used in SETTINGS)
