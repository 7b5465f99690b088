"""What the commands print: results as lines of text, JSON and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.checking.findings import Report
from labeltree.config import BY_DATA, Config, effective
from labeltree.data.rows import LabelRows
from labeltree.experts.held_out import LEAST_ROWS
from labeltree.metrics.scorecard import scorecard
from labeltree.parameter import said
from labeltree.storage.files import write_whole
from labeltree.wording import align, counted, duration, escape_name, size

if TYPE_CHECKING:
    from labeltree.metrics.testing import Measures
    from labeltree.model import Model
    from labeltree.predictor import Answers, Neighbours
    from labeltree.training.needs import Estimate
    from labeltree.tree import LabelTree

_RISEN = 1.05  # the first loss is of a part of an epoch, so a little more means nothing
_ALL = repeat(True)


def write_scorecard(path: Path, model: Model, measures: Measures) -> None:
    """For the page of `labeltree serve`."""
    write_whole(path, [json.dumps(scorecard(model, measures), indent=1, allow_nan=False).encode() + b"\n"])


def check_lines(report: Report) -> list[str]:
    """The numbers and findings of a file, or of two."""
    numbers = [
        [f"  {name.replace('_', ' ')}", f"{value:,}" if isinstance(value, int) else f"{value:.3g}"]
        for name, value in report.facts.items()
    ]
    lines = [f"- {finding.line()}" for finding in report.findings] or ["- nothing else to remark"]
    return [f"{report.name}:", *align(numbers), *lines]


def prediction_lines(answers: Answers) -> list[str]:
    """A line per row: ``label<TAB>probability``, repeated."""
    return ["\t".join(f"{escape_name(name)}\t{p:.6g}" for name, p in row) for row in answers]


def prediction_json(
    answers: Answers, known: Iterable[bool] = _ALL, exact: Iterable[bool] = _ALL
) -> list[str]:
    """A JSON object per row; marked are rows that the model knows nothing of, and unproven labels."""
    return [
        json_text({"labels": [_json_label(*pair) for pair in row]} | _marks(is_known, is_exact))
        for row, is_known, is_exact in zip(answers, known, exact, strict=False)
    ]


def _marks(is_known: bool, is_exact: bool) -> dict[str, Any]:
    return ({} if is_known else {"unknown": True}) | ({} if is_exact else {"exact": False})


def _json_label(name: str, probability: float) -> dict[str, Any]:
    return {"label": name, "probability": float(f"{probability:.6g}")}


def neighbour_lines(found: Neighbours) -> list[str]:
    """A line per row: ``row<TAB>similarity``, repeated."""
    return ["\t".join(f"{number}\t{similarity:.4g}" for number, similarity in row) for row in found]


def neighbour_json(found: Neighbours) -> list[str]:
    """A JSON object per row."""
    return [
        json_text({"neighbours": [{"row": number, "similarity": float(f"{s:.4g}")} for number, s in row]})
        for row in found
    ]


def label_lines(found: Sequence[tuple[str, int]]) -> list[str]:
    """A line per label: ``label<TAB>rows``."""
    return [f"{escape_name(name)}\t{n_rows}" for name, n_rows in found]


def label_json(found: Sequence[tuple[str, int]]) -> list[str]:
    """A JSON object per label."""
    return [json_text({"label": name, "rows": n_rows}) for name, n_rows in found]


def given_labels(labels: LabelRows, probabilities: NDArray[np.float32], model: Model) -> tuple[Answers, int]:
    """The known labels of each row with their probabilities, and how many are not known."""
    names, bounds = model.label_names, labels.indptr.tolist()
    pairs = list(zip(labels.indices.tolist(), probabilities.tolist(), strict=True))
    answers = [
        [(names[label], p) for label, p in pairs[start:stop] if label >= 0]
        for start, stop in pairwise(bounds)
    ]
    return answers, int(np.count_nonzero(labels.indices < 0))


def training_lines(
    model: Model, path: Path, seconds: float, losses: Mapping[int, tuple[float, float]]
) -> list[str]:
    """What was trained, in a few lines; ``losses`` are the first and the last of each tree."""
    depths = [tree.statistics()["depth_max"] for tree in model.label_trees]
    shape = f"{counted(len(depths), 'tree')}, depth {max(depths):.0f}; " if depths else ""
    last = [pair[1] for pair in losses.values()]
    loss = f"loss {sum(last) / len(last):.4f}; " if last else ""
    return [
        *_warnings(model, losses),
        f"Trained on {counted(model.n_examples, 'row')}, {counted(model.n_labels, 'label')}, "
        f"{counted(model.n_features, 'feature')}; {shape}{loss}{duration(seconds)}.",
        f"Model written to {path} ({size(path.stat().st_size)}).",
    ]


def _warnings(model: Model, losses: Mapping[int, tuple[float, float]]) -> list[str]:
    lines = []
    if model.unused_rows:
        lines.append(
            f"{counted(model.unused_rows, 'row')} without labels not used: --link is {model.config.link}."
        )
    if model.n_features == 0:
        lines.append(
            "Warning: no features are left, so every text gets the same labels; "
            f"--min-count is {model.config.min_count}, use a smaller one."
        )
    if model.config.calibrate and not model.is_calibrated:
        lines.append(
            f"Probabilities are not calibrated: that needs {LEAST_ROWS} rows. Labels are ranked as usual."
        )
    for first, last in losses.values():
        if last > _RISEN * first:
            lines.append(
                f"Warning: the loss rose from {first:.4f} to {last:.4f}; "
                f"--lr is {model.config.lr:g}, use a smaller one."
            )
            break
    return lines


def estimate_lines(estimate: Estimate) -> list[str]:
    """The numbers of ``train --dry-run``."""
    counts = [[name, f"{getattr(estimate, f'n_{name}'):,}"] for name in ("rows", "features", "labels")]
    sizes = [
        [name, size(getattr(estimate, f"{name}_bytes"))] for name in ("data", "parameter", "model", "peak")
    ]
    table = counts + [[_SIZES[name], value] for name, value in sizes]
    if math.isfinite(estimate.cpu_seconds):
        table.append(["training on one core", duration(estimate.cpu_seconds)])
    return align(table)


_SIZES = {
    "data": "data in memory",
    "parameter": "parameters in memory",
    "model": "model file",
    "peak": "peak memory of training",
}


_FACTS = {
    "version": "written by labeltree",
    "file_bytes": "file size",
    "n_examples": "training rows",
    "n_features": "features",
    "n_labels": "labels",
    "n_labels_without_examples": "labels without training rows",
    "rule": "rule tuned for",
    "rule_kind": "kind of the rule",
    "rule_k": "labels of a row by the rule",
    "rule_threshold": "threshold of the rule, of all labels",
    "rule_threshold_min": "threshold of the rule, least",
    "rule_threshold_max": "threshold of the rule, greatest",
    "rule_weight": "weight of the rule, of all labels",
    "rule_weight_min": "weight of the rule, least",
    "rule_weight_max": "weight of the rule, greatest",
    "rule_summand": "summand of the rule, of all labels",
    "rule_summand_min": "summand of the rule, least",
    "rule_summand_max": "summand of the rule, greatest",
    "parameter_bytes": "size of the parameters",
    "n_indexed_rows": "training rows in the index, with their features",
    "n_neighbours": "similar rows that count",
    "power_of_similarity": "power of their similarity by which they count",
    "index_bytes": "size of the index",
    "label_bytes": "size of its rows' labels",
    "n_trees_over_rows": "trees over rows",
    "n_weights": "weights of their splits",
    "n_leaf_labels": "labels of their leaves",
    "n_leaves": "leaves",
    "n_nodes": "nodes",
    "n_inner_nodes": "inner nodes",
    "depth_min": "depth of a label, least",
    "depth_mean": "depth of a label, on average",
    "depth_max": "depth of a label, greatest",
    "arity_min": "children of an inner node, fewest",
    "arity_mean": "children of an inner node, on average",
    "arity_max": "children of an inner node, most",
}


def inspect_lines(facts: Mapping[str, Any]) -> list[str]:
    """``name: value`` lines, parameters under the names that the command line gives them."""
    lines = []
    for name, value in facts.items():
        if name == "config":
            lines += ["parameters:", *(f"  {line}" for line in _parameter_lines(facts))]
        elif name == "chosen":  # shown with the parameters
            continue
        elif name == "card":
            lines += ["card:", *(f"  {key}: {text}" for key, text in value.items())] if value else []
        elif isinstance(value, list):  # of the experts of a kind, such as "trees"
            for number, expert in enumerate(value, start=1):
                lines.append(f"{name.removesuffix('s')} {number}:")
                lines += [f"  {_fact(key, item)}" for key, item in expert.items()]
        else:
            lines.append(_fact(name, value))
    return lines


def _parameter_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Those that have an effect; what the data chose as it was used."""
    chosen: Mapping[str, Mapping[str, Any]] = facts["chosen"]
    for name, value in _effective(facts).items():
        shown = said(value)
        if name in BY_DATA and not value:
            used = [f"{values[name]} ({kind} nodes)" for kind, values in chosen.items() if name in values]
            shown = ", ".join([*used, "chosen by the data"])  # older files do not say what
        yield f"{name.replace('_', '-')}: {shown}"


def _effective(facts: Mapping[str, Any]) -> dict[str, Any]:
    return effective(Config(**facts["config"]), input=facts["input"], beside=facts["beside"])


def _fact(name: str, value: Any) -> str:
    start = f"{_FACTS.get(name, name.replace('_', ' '))}:"
    if value is None:
        return f"{start} unknown"
    if isinstance(value, bool):
        return f"{start} {said(value)}"
    if isinstance(value, float):
        return f"{start} {value:.6g}"
    if name.endswith("bytes"):
        return f"{start} {size(value)}"
    return f"{start} {value:,}" if isinstance(value, int) else f"{start} {value}"


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
