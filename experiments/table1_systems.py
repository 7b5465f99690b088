"""The systems of the paper's main table as points of labeltree's grid, and the peers that stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from benchmarks.overview import newest
from benchmarks.report import groups
from experiments.ledger import Record


class System(NamedTuple):
    """A row of ours."""

    name: str
    settings: Mapping[str, Any]  # of labeltree.train
    note: str
    peers: tuple[str, ...]  # of the harness: what is the same method, or next to it


_TUTORIAL: dict[str, Any] = dict(
    preset="fasttext-hs", lr=1.0, epochs=25, dim=50, word_ngrams=2, ngram_buckets=200_000
)
SYSTEMS = (
    System(
        "XT",
        dict(preset="paper"),
        "preset paper: clustering, arity 2, at most 100 labels per group, dim 500, online SGD, lr 0.1, "
        "L2 0.002, 30 epochs, mean of TF-IDF weighted vectors. L2 acts on all vectors, those of words too, "
        "which extremetext leaves out",
        ("extremetext",),
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
    """Of every peer that stands for a system: means over its newest runs with one thread.

    The test time is that of a batch of vectors, or of texts (marked) for tools that take nothing else.
    """
    wanted = [peer for system in SYSTEMS for peer in system.peers]
    of_tool = {
        tool: found
        for (tool, threads), found in groups(newest(runs, data)).items()
        if threads == 1 and "error" not in found[0]
    }
    records = []
    for tool in wanted:
        if tool not in of_tool:
            continue
        found = of_tool[tool]
        record: Record = {"data": data, "system": tool, "is_peer": True, "n_runs": len(found)}
        record |= {ours: _mean(found, theirs) for ours, theirs in PEER_FIELDS.items()}
        record["version"] = found[-1].get("version", "")
        record["test_input"] = "vectors" if _mean(found, "batch_vectors_us") is not None else "text"
        record["test_us_per_row"] = _mean(found, f"batch_{record['test_input']}_us")
        records.append(record)
    return records


def _mean(records: Iterable[Record], field: str) -> float | None:
    values = [record[field] for record in records if record.get(field) is not None]
    return sum(values) / len(values) if values else None
