"""Writes the golden model files of the present version: ``PYTHONPATH=tests python -m support.make_golden``.

It writes to another folder if one is given. Files that are there already stay as they are, for ever: those of
an earlier version cannot be made again.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from support.golden import EXPECTED, GOLDEN, rows_of
from support.small_data import LABELS, Toy, make_toy

import labeltree
from labeltree.decisions.rule import ExpectedRule, RankingRule, ThresholdRule
from labeltree.model import Model
from labeltree.storage.container import FORMAT_VERSION

QUERIES = ["word0 word1 word40", "WORD5 word4 word30 word31 word31", "", "nothing known", "word0 word1 " * 3]
VECTORS = [[[0, 1.0], [1, 1.0], [40, 1.0]], [[4, 2.0], [5, 0.5], [30, -1.0]], [], [[45, 3.0]]]
PAIRS = [dict(text=text, beside=[row - 2.0, 0.5, 0.0, 1.0, row % 2]) for row, text in enumerate(QUERIES)]
TAIL: dict[str, Any] = dict(forest_split="l1", forest_propensity=True, forest_tail=0.2)
SMALL: dict[str, Any] = dict(
    nodes="dense", dim=8, epochs=10, arity=2, max_leaves=3, lr=0.2, l2=1e-5, batch_size=32
)
HUFFMAN = {name: value for name, value in SMALL.items() if name != "max_leaves"}
WORDS: dict[str, Any] = dict(tokens="spaces", char_weight=0.0, pair_weight=0.0)


@cache
def golden_models() -> dict[str, tuple[Model, list[Any]]]:
    """Each file's model and what it is asked.

    What a file may have or not is there in some of them and not in others: blocks of features, weights of
    columns and of rows, neighbours, a forest, vectors beside texts, and what held-out rows say.
    """
    toy = make_toy(120, seed=3)
    renamed = [[f"café:{label}" if label == LABELS[0] else label for label in labels] for labels in toy.Y]
    text = labeltree.train(toy.texts, renamed, word_ngrams=2, ngram_buckets=64, min_count=2, **SMALL)
    halves = np.where(np.arange(120) % 2, 0.5, 1.0)
    vectors = labeltree.train(toy.X, _with_absent_label(toy), tree="huffman", sample_weight=halves, **HUFFMAN)
    alone = dict(neighbours=0, **SMALL)
    ensemble = labeltree.train(toy.texts, toy.Y, trees=2, tf="count", row_norm="mean", **WORDS, **alone)
    many = make_toy(300, seed=4)  # enough rows to hold some out
    tree = dict(arity=2, max_leaves=3)
    sparse = labeltree.train(many.X, _with_absent_label(many), nodes="sparse", **tree)
    plain = dict(loss="log", bias=1.0, prune=0.5, dim=2, epochs=2)
    parts = dict(char_ngrams=3, pair_weight=0.0, strongest=4)
    both = labeltree.train(many.texts, many.Y, nodes="both", **plain, **parts, **tree)
    softmax = labeltree.train(toy.texts, toy.Y, tree="huffman", link="hsm", **WORDS, **HUFFMAN)
    numbers = dict(idf=False, neighbours=0)
    picked = labeltree.train(many.X, _with_absent_label(many), nodes="sparse", link="hsm", **numbers, **tree)
    direct = labeltree.train(many.X, many.indicator, nodes="direct", row_norm="none", neighbours=0, **tree)
    grown = dict(forest=2, forest_leaf=20)
    beside = labeltree.train(many.rows("joined"), many.Y, calibrate=False, **grown, **WORDS, **tree)
    forest = labeltree.train(many.X, _with_absent_label(many), trees=0, neighbours=0, **grown)
    tail = labeltree.train(many.texts, many.Y, trees=0, neighbours=0, **TAIL, **grown)
    return _with_rules(many) | {
        "text": (text, QUERIES),
        "vectors": (vectors, VECTORS),
        "ensemble": (ensemble, QUERIES),
        "sparse": (sparse, VECTORS),
        "both": (both, QUERIES),
        "hsm": (softmax, QUERIES),
        "hsm-sparse": (picked, VECTORS),
        "direct": (direct, VECTORS),
        "joined": (beside, PAIRS),
        "forest": (forest, VECTORS),
        "forest-tail": (tail, QUERIES),
    }


def _with_rules(toy: Toy) -> dict[str, tuple[Model, list[Any]]]:
    """A model for each kind of rule."""
    found = {}
    ones = np.ones(len(LABELS), np.float32)
    rules = RankingRule("macro-f1@2", 2, ones, -0.1 * ones), ThresholdRule("macro-f1", 0.3 * ones, 1)
    for rule in (*rules, ExpectedRule("instance-f1", 0.9 * ones, -0.01 * ones)):
        model = labeltree.train(toy.texts, toy.Y, arity=2, max_leaves=3, neighbours=5, **WORDS)
        model.rule = rule
        found[f"rule-{rule.kind}"] = model, QUERIES
    return found


def _with_absent_label(toy: Toy) -> Any:
    """One more label that no row has."""
    return np.pad(toy.indicator, ((0, 0), (0, 1)))


def main(folder: Path) -> None:
    facts = folder / EXPECTED
    expected: dict[str, Any] = json.loads(facts.read_text()) if facts.exists() else {}
    for name, (model, queries) in golden_models().items():
        file = f"{name}-{FORMAT_VERSION}.labeltree"
        if file in expected:
            continue
        model.save(folder / file)
        X = rows_of(queries)
        expected[file] = {
            "labels": model.label_names,
            "label_counts": model.label_counts.tolist(),
            "n_examples": model.n_examples,
            "n_features": model.n_features,
            "depths": [tree.depth_of_leaves.tolist() for tree in model.label_trees],
            "queries": queries,
            "probabilities": model.probability(X, model.label_names).astype(float).round(9).tolist(),
            "best": [[label for label, _ in row] for row in model.predict(X, k=3)],
        }
    lines = [f"{json.dumps(name)}: {json.dumps(facts_of)}" for name, facts_of in expected.items()]
    facts.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
