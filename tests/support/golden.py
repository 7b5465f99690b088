"""The golden model files, one or more of each version of the format, and what they must answer.

They are kept for ever, so that every later version is known to load them. ``make_golden`` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from support.small_data import N_FEATURES

from labeltree.data.rows import SparseRows
from labeltree.model import Model

GOLDEN = Path(__file__).parents[1] / "storage" / "golden"
EXPECTED = "expected.json"


def golden_facts() -> dict[str, dict[str, Any]]:
    """By the name of the file."""
    return json.loads((GOLDEN / EXPECTED).read_text())


def rows_of(queries: list[Any]) -> Any:
    """What a model is asked: texts, rows written as lists of [column, value], or pairs of a text and the
    numbers beside it, {"text": ..., "beside": [...]}."""
    if isinstance(queries[0], str):
        return queries
    if isinstance(queries[0], dict):
        return [[query["text"] for query in queries], np.array([query["beside"] for query in queries])]
    entries = [entry for row in queries for entry in row]
    return SparseRows(
        np.cumsum([0, *map(len, queries)], dtype=np.int64),
        np.array([column for column, _ in entries], np.int32),
        np.array([value for _, value in entries], np.float32),
        N_FEATURES,
    )


def check_answers(model: Model, facts: dict[str, Any]) -> None:
    """It is the model that the file was made from."""
    assert model.label_names == facts["labels"]
    assert model.label_counts.tolist() == facts["label_counts"]
    assert (model.n_examples, model.n_features) == (facts["n_examples"], facts["n_features"])
    assert [tree.depth_of_leaves.tolist() for tree in model.label_trees] == facts["depths"]
    X = rows_of(facts["queries"])
    np.testing.assert_allclose(model.probability(X, facts["labels"]), facts["probabilities"], atol=1e-6)
    assert [[label for label, _ in row] for row in model.predict(X, k=3)] == facts["best"]
