"""The systems of the paper's main table as points of labeltree's grid, and the peers that stand for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.overview import newest
from benchmarks.report import groups
from experiments.ledger import Record
from labeltree.config import PRESETS, Config

# Sets of many rows and tens of thousands of labels, on which each system has one seed; and systems that would
# take long there, or on their like, and are not run.
LARGE_SETS = ("llms4subjects-all", "acl-authors")
_FLAT = ("1-vs-All (DiSMEC-like)", "PPDSparse")
_SLOW = ("fastText-hs, defaults", "Learned Tree", "Learned Tree, dense defaults", "Parabel-like", *_FLAT)
NOT_RUN = {"wordnet-hypernyms": _FLAT, **dict.fromkeys(LARGE_SETS, _SLOW)}


class System(NamedTuple):
    """A row of ours."""

    name: str
    settings: Mapping[str, Any]  # of labeltree.train
    note: str
    peers: tuple[str, ...]  # of the harness: what is the same method, or next to it
    n_seeds: int = 1  # one on large sets


# In the settings too, so that a record is of the preset as it is.
_XT = {name: PRESETS["paper"][name] for name in ("lr", "l2", "epochs", "initial_range")}
_LEAF_ROWS = Config().forest_leaf
_TUTORIAL: dict[str, Any] = dict(
    preset="fasttext-hs", lr=1.0, epochs=25, dim=50, word_ngrams=2, ngram_buckets=200_000
)
SYSTEMS = (
    System(
        "XT",
        dict(preset="paper", **_XT),
        "preset paper: clustering, arity 2, at most 100 labels per group, dim 500, online SGD, "
        f"lr {_XT['lr']:g}, L2 {_XT['l2']:g}, {_XT['epochs']} epochs, first word vectors in "
        f"±{_XT['initial_range']:g}, mean of TF-IDF weighted vectors. L2 acts on all vectors, those of words "
        "too, which extremetext leaves out",
        ("extremetext",),
        n_seeds=3,
    ),
    System(
        "fastText-hs",
        _TUTORIAL,
        "preset fasttext-hs (Huffman tree, hierarchical softmax, online SGD, mean of word vectors) with the "
        "step, epochs, dim and pairs of words of fastText's tutorial, as its peer has them",
        ("fasttext-hs",),
    ),
    System(
        "fastText-hs, defaults",
        dict(preset="fasttext-hs"),
        "preset fasttext-hs as it is, with fastText's defaults: dim 100, lr 0.1, 5 epochs",
        (),
    ),
    System(
        "Learned Tree",
        dict(_TUTORIAL, tree="learned"),
        "as fastText-hs, but on a complete binary tree whose labels moved while such nodes were trained; "
        "the model's own nodes are trained after that",
        (),
    ),
    System(
        "Learned Tree, dense defaults",
        dict(nodes="dense", tree="learned", link="hsm"),
        "the same idea with the defaults of dense nodes: arity 16, Adagrad, dim 256, 6 epochs, TF-IDF",
        (),
    ),
    System(
        "Parabel-like",
        dict(
            nodes="sparse",
            tree="kmeans",
            arity=2,
            max_leaves=100,
            loss="squared-hinge",
            C=1.0,
            rare_weight=0.0,
            trees=3,
        ),
        "3 trees by clustering, arity 2, at most 100 labels per group, squared hinge with C 1, weights below "
        "0.1 dropped; the paper's table has Parabel with one tree",
        ("omikuji-3", "napkinxc-plt", "vowpalwabbit-plt", "pecos-xrlinear"),
    ),
    System(
        "1-vs-All (DiSMEC-like)",
        dict(nodes="sparse", tree="flat", loss="squared-hinge", C=1.0, rare_weight=0.0, prune=0.01),
        "all labels below the root, squared hinge with C 1, weights below 0.01 dropped",
        (),
    ),
    System(
        "PPDSparse",
        dict(preset="ppdsparse"),
        "preset ppdsparse: all labels below the root, each trained on an active set of weights with an L1 "
        "term, C 1",
        (),
    ),
    System(
        "FastXML",
        dict(preset="fastxml", forest_leaf=_LEAF_ROWS),
        f"preset fastxml: 50 trees over rows, a node splits its rows by nDCG, at most {_LEAF_ROWS} rows in a "
        "leaf; as said on the page of [forests](../forest.md)",
        (),
    ),
    System(
        "labeltree",
        dict(),
        "the defaults of sparse nodes, on one tree by clustering",
        (),
    ),
    System(
        "labeltree, dense", dict(nodes="dense"), "the defaults of dense nodes, on a tree by clustering", ()
    ),
)


# How the columns are called in the harness' records; bytes and microseconds there as here.
PEER_FIELDS = {
    "p@1": "p@1",
    "p@3": "p@3",
    "p@5": "p@5",
    "train_cpu_seconds": "train_cpu_s",
    "model_bytes": "model_bytes",
}


def peer_records(runs: Iterable[Record], data: str) -> list[Record]:
    """Of every peer that stands for a system: means over its newest runs with the fewest threads.

    The test time is that of a batch of vectors, or of texts (marked) for tools that take nothing else.
    """
    wanted = [peer for system in SYSTEMS for peer in system.peers]
    of_tool: dict[str, list[Record]] = {}
    for (tool, _), found in sorted(groups(newest(runs, data)).items()):
        if "error" not in found[0]:
            of_tool.setdefault(tool, list(found))
    records = []
    for tool in wanted:
        if tool not in of_tool:
            continue
        found = of_tool[tool]
        record: Record = {"data": data, "system": tool, "is_peer": True, "n_runs": len(found)}
        record |= {ours: _mean(found, theirs) for ours, theirs in PEER_FIELDS.items()}
        record["threads"] = found[-1]["threads"]
        record["version"] = found[-1].get("version", "")
        record["test_input"] = "vectors" if _mean(found, "batch_vectors_us") is not None else "text"
        record["test_us_per_row"] = _mean(found, f"batch_{record['test_input']}_us")
        records.append(record)
    return records


# What `python -m experiments.xml_cnn` recorded, as rows of the table; by encoder, with a sigmoid per label.
NETWORKS = {"XML-CNN, published": "XML-CNN", "XML-CNN, corrected": "XML-CNN, corrected"}


def network_records(path: Path, data: str) -> list[Record]:
    """Means over the seeds of each network on a data set, random word vectors; nothing without the file."""
    found: dict[str, list[Record]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        entry = json.loads(line)
        key = entry["key"]
        if key["data"] == data and key["output"] == "flat" and not key.get("vectors"):
            found.setdefault(key["encoder"], []).append(entry["result"])
    return [
        {
            "data": data, "system": system, "run_by": "torch", "n_runs": len(found[encoder]),
            **mean_record(found[encoder]), "test_input": "text",
            "model_bytes": 4 * found[encoder][0]["n_parameters"],
        }
        for encoder, system in NETWORKS.items()
        if encoder in found
    ]  # fmt: skip


def mean_record(records: list[Record]) -> Record:
    """Means over seeds of what was measured; all else as of the first."""
    measured = ("p@1", "p@3", "p@5", "train_cpu_seconds", "test_us_per_row", "model_bytes")
    means = {name: _mean(records, name) for name in measured if name in records[0]}
    return {**records[0], **means, "n_runs": len(records)}


def _mean(records: Iterable[Record], field: str) -> float | None:
    values = [record[field] for record in records if record.get(field) is not None]
    return sum(values) / len(values) if values else None
