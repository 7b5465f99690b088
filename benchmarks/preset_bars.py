"""What we hold ourselves to without tuning: with the defaults, and with the presets `best` and `fast`.

As in `peer_bars.py` everything is computed from the recorded runs. `python -m benchmarks.bars --preset`
measures accuracy and calibration without peers.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.contest import Contest, same_models, shown_error
from benchmarks.datasets import ALL_SETS
from benchmarks.peer_bars import (
    Bar,
    Standing,
    fastest,
    outcome,
    shown,
    shown_precisions,
    shown_runs,
    shown_training,
)
from benchmarks.sparse_bars import FAMILIES, IF_MEASURED

SETS = ALL_SETS
# What `--preset` says, or "default" without it -> the tool of the comparison.
TOOLS = {"default": "labeltree", "best": "labeltree-best", "fast": "labeltree-fast"}
DEFAULTS, BEST, FAST = TOOLS.values()
OURS = (DEFAULTS, BEST, FAST)
PRECISION_BARS: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "default": {
        "cooking-stackexchange": (73.6, 46.4, 31.7),
        "debian-debtags": (87.0, 62.9, 47.8),
        "wordnet-hypernyms": (89.7, 82.4, 77.1),
        "llms4subjects-all": (52.0, 32.8, 23.8),
        "acl-authors": (18.6, 13.4, 10.4),
        "bibtex": (65.2, 40.3, 29.3),
        "delicious": (67.9, 61.7, 57.0),
    },
    "best": {
        "cooking-stackexchange": (74.3, 47.2, 32.4),
        "debian-debtags": (87.8, 63.3, 48.2),
        "wordnet-hypernyms": (90.0, 83.0, 77.8),
        "llms4subjects-all": (53.9, 34.5, 25.2),
        "acl-authors": (20.5, 14.6, 11.3),
        "bibtex": (66.0, 40.8, 29.7),
        "delicious": (69.8, 64.0, 59.3),
    },
}  # P@1/3/5
CALIBRATION = 0.015  # ECE@5
TRAINED_AGAINST = {FAST: "omikuji-1", DEFAULTS: "omikuji-3"}
AWAITED = (*FAMILIES, "sklearn")  # linear peers, which may be as accurate
TIMES = {"batch µs/row": "batch_vectors_us", "single row, p50 µs": "p50_vectors_us"}


def accuracy(standing: Standing) -> list[list[str]]:
    rows = []
    for preset, bars in PRECISION_BARS.items():
        tool, bar = TOOLS[preset], bars.get(standing.data)
        if bar is None:
            continue
        ours = standing.precisions(tool)
        reached = None if ours is None else all(a >= b for a, b in zip(ours, bar, strict=True))
        rows.append([
            tool, shown_precisions(ours), shown_precisions(bar), shown_runs(standing, (tool,)),
            outcome({tool: reached}),
        ])  # fmt: skip
    return rows


def probabilities(standing: Standing) -> list[list[str]]:
    errors = {tool: standing.mean(tool, "ece@5") for tool in (DEFAULTS, BEST)}
    checks = {tool: None if error is None else error < CALIBRATION for tool, error in errors.items()}
    return [[*map(shown_error, errors.values()), shown_runs(standing, errors), outcome(checks)]]


def training(standing: Standing) -> list[list[str]]:
    """The whole process of both: Omikuji reads and trains in one call."""
    rows = []
    for tool, peer in TRAINED_AGAINST.items():
        means = {name: standing.mean(name, "train_cpu_s") for name in (tool, peer)}
        ours, theirs = means.values()
        checks: dict[str, bool | None] = {name: None for name, mean in means.items() if mean is None}
        if ours is not None and theirs is not None:
            checks = {peer: ours < theirs}
        rows.append([
            tool, shown_training(standing, tool), f"{shown(theirs)} ({peer})",
            shown_runs(standing, (tool, peer)), outcome(checks),
        ])  # fmt: skip
    return rows


def rivals(standing: Standing) -> list[str]:
    """Peers that predict from vectors: those the bar waits for, and others once they have runs."""
    awaited = [peer for peer in standing.named(AWAITED) if peer not in IF_MEASURED]
    return [
        peer
        for peer, kinds in standing.peers.items()
        if "vectors" in kinds and (peer in awaited or peer in standing.runs)
    ]


def prediction(standing: Standing) -> list[list[str]]:
    rows, peers = [], rivals(standing)
    contest = Contest(standing, DEFAULTS, peers)
    for title, field in TIMES.items():
        rival, lead, verdict = contest.cheaper(field)
        rows.append([
            title, shown(standing.mean(DEFAULTS, field)), rival, lead, fastest(standing, peers, field)[0],
            shown_runs(standing, (DEFAULTS, *peers)), verdict,
        ])  # fmt: skip
    return rows


def determinism(standing: Standing) -> list[list[str]]:
    cells, checks = same_models(standing, OURS, needed=(DEFAULTS, BEST))
    return [[*cells, outcome(checks)]]


BARS = (
    Bar(
        "Accuracy",
        "P@1/3/5 of the defaults and of `--preset best`, each at or above its bar.",
        ("ours", "P@1/3/5", "bar", "runs", "verdict"),
        1,
        accuracy,
    ),
    Bar(
        "Probabilities",
        f"Expected calibration error of the first 5 labels below {CALIBRATION}.",
        (DEFAULTS, BEST, "runs", "verdict"),
        1,
        probabilities,
    ),
    Bar(
        "Training",
        "CPU time of the whole process, parsing included, one thread: `--preset fast` below Omikuji with one "
        "tree, the defaults below Omikuji with three.",
        ("ours", "CPU s", "Omikuji CPU s", "runs", "verdict"),
        1,
        training,
    ),
    Bar(
        "Prediction",
        "One thread, k = 5, vectors in: the defaults are faster than every peer of equal or better accuracy, "
        "in a batch and row by row.",
        ("what", DEFAULTS, "least as accurate", "lead", "fastest of the peers", "runs", "verdict"),
        1,
        prediction,
    ),
    Bar(
        "Determinism",
        "The same bytes with one thread and with more (`--threads 1,2`): models of the same seed that are.",
        (*OURS, "verdict"),
        1,
        determinism,
    ),
)
