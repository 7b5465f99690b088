"""What the commands print: results as lines of text, JSON and tables."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree import metrics
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.files import write_whole
from labeltree.progress import counted, duration, size

if TYPE_CHECKING:
    from labeltree.model import Model
    from labeltree.training import Estimate
    from labeltree.tree import LabelTree

Answers = Sequence[Sequence[tuple[str, float]]]

# Label names are free text in JSONL and in Python: in lines of text these characters would break the line.
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Result(NamedTuple):
    """A model's predictions for a data set and how good they are."""

    ids: NDArray[np.int32]  # (n_rows, largest k, or all labels if they are fewer)
    probs: NDArray[np.float32]  # of the same shape
    scores: dict[str, float]
    seconds: float  # of prediction, reading not included

    @property
    def n_rows(self) -> int:
        return len(self.ids)

    @property
    def rows_per_second(self) -> float:
        return self.n_rows / max(self.seconds, 1e-9)


def score(
    model: Model,
    rows: SparseRows,
    labels: LabelRows,
    ranks: Sequence[int],
    *,
    normalize: bool = False,
    threads: int = 0,
) -> Result:
    """Predict the labels of all rows and compare them with the true ones."""
    k = min(max(ranks), model.n_labels)
    if rows.n_rows:  # loading machine code is no part of the speed of prediction
        model.predict_arrays(first_row(rows), k, normalize=normalize, threads=threads)
    started = time.perf_counter()
    ids, probs = model.predict_arrays(rows, k, normalize=normalize, threads=threads)
    seconds = time.perf_counter() - started
    scores = metrics.evaluate(ids, labels, ranks, model.label_counts, model.n_examples)
    return Result(ids, probs, scores, seconds)


def first_row(rows: SparseRows) -> SparseRows:
    end = int(rows.indptr[1])
    return SparseRows(rows.indptr[:2], rows.indices[:end], rows.values[:end], rows.n_columns)


def score_lines(result: Result, ranks: Sequence[int]) -> list[str]:
    """The metrics in percent, a row per metric and a column per k."""
    names = {"p": "precision", "r": "recall", "ndcg": "nDCG", "psp": "propensity-scored P"}
    table = [["", *(f"@{k}" for k in ranks)]]
    table += [
        [name, *(f"{100 * result.scores[f'{key}@{k}']:.2f}" for k in ranks)] for key, name in names.items()
    ]
    speed = f"{result.n_rows:,} rows in {duration(result.seconds)}, {result.rows_per_second:,.0f} rows/s"
    return [*align(table), speed]


def align(table: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def write_per_label(path: Path, model: Model, result: Result, labels: LabelRows, *, k: int) -> None:
    """A table with a line per label; a ratio that is undefined is left empty."""
    table = metrics.per_label(result.ids, result.probs, labels, model.n_labels, k)
    lines = ["\t".join(("label", *table._fields))]
    columns = [column.tolist() for column in table]
    for name, *values in zip(model.label_names, *columns, strict=True):
        lines.append("\t".join((name.translate(_ESCAPES), *map(_number, values))))
    write_whole(path, [f"{line}\n".encode() for line in lines])


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}" if isinstance(value, float) else str(value)


def prediction_lines(answers: Answers, as_json: bool) -> list[str]:
    """A line per row: ``label<TAB>probability``, repeated; or a JSON object."""
    if as_json:
        return [json_text({"labels": [_json_label(*pair) for pair in row]}) for row in answers]
    return ["\t".join(f"{name.translate(_ESCAPES)}\t{chance:.6g}" for name, chance in row) for row in answers]


def _json_label(name: str, probability: float) -> dict[str, Any]:
    return {"label": name, "probability": float(f"{probability:.6g}")}


def given_labels(labels: LabelRows, chances: NDArray[np.float32], model: Model) -> tuple[Answers, int]:
    """The known labels of each row with their probabilities, and how many are not known."""
    names, bounds = model.label_names, labels.indptr.tolist()
    pairs = list(zip(labels.indices.tolist(), chances.tolist(), strict=True))
    answers = [
        [(names[label], chance) for label, chance in pairs[start:stop] if label >= 0]
        for start, stop in pairwise(bounds)
    ]
    return answers, int(np.count_nonzero(labels.indices < 0))


def training_lines(model: Model, path: Path, seconds: float) -> list[str]:
    """What was trained, in a few lines."""
    depths = [tree.statistics()["depth_max"] for tree in model.label_trees]
    return [
        f"Trained on {model.n_examples:,} rows, {model.n_labels:,} labels, {model.n_features:,} features; "
        f"{counted(len(depths), 'tree')}, depth {max(depths):.0f}; {duration(seconds)}.",
        f"Model written to {path} ({size(path.stat().st_size)}).",
    ]


def estimate_lines(estimate: Estimate) -> list[str]:
    """The numbers of ``train --dry-run``."""
    counts = [[name, f"{getattr(estimate, f'n_{name}'):,}"] for name in ("rows", "features", "labels")]
    sizes = [
        [name, size(getattr(estimate, f"{name}_bytes"))] for name in ("data", "parameter", "model", "peak")
    ]
    return align(counts + [[_SIZES[name], value] for name, value in sizes])


_SIZES = {
    "data": "data in memory",
    "parameter": "parameters in memory",
    "model": "model file",
    "peak": "peak memory of training",
}


def inspect_lines(facts: Mapping[str, Any], indent: int = 0) -> list[str]:
    """``name: value`` lines; what is inside is indented."""
    lines = []
    for name, value in facts.items():
        start = f"{' ' * indent}{name.replace('_', ' ')}:"
        if isinstance(value, Mapping):
            lines += [start, *inspect_lines(value, indent + 2)]
        elif isinstance(value, list):
            for number, item in enumerate(value, start=1):
                lines += [f"{start[:-1]} {number}:", *inspect_lines(item, indent + 2)]
        elif isinstance(value, float):
            lines.append(f"{start} {value:.6g}")
        elif name.endswith("bytes"):
            lines.append(f"{start} {value:,} ({size(value)})")
        else:
            lines.append(f"{start} {value}")
    return lines


def tree_files(path: Path, trees: Sequence[LabelTree]) -> list[tuple[Path, LabelTree]]:
    """One file per tree: an ensemble's are numbered, ``tree.1.txt``, ``tree.2.txt``."""
    if len(trees) == 1:
        return [(path, trees[0])]
    return [
        (path.with_name(f"{path.stem}.{number}{path.suffix}"), tree)
        for number, tree in enumerate(trees, start=1)
    ]


def json_text(value: Any) -> str:
    """One line of JSON; NaN and infinity, which JSON does not have, become null."""
    return json.dumps(_finite(value), ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
