"""Model files of all released versions load and predict what they did when they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.make_golden import EXPECTED, GOLDEN, golden_models, main, vector_rows

import labeltree

FACTS: dict[str, dict[str, Any]] = json.loads((GOLDEN / EXPECTED).read_text())


def queries_of(facts: dict[str, Any]) -> Any:
    queries = facts["queries"]
    return queries if isinstance(queries[0], str) else vector_rows(queries)


def test_every_golden_file_is_expected_and_small() -> None:
    files = {path.name: path.stat().st_size for path in GOLDEN.glob("*.labeltree")}
    assert set(files) == set(FACTS)
    assert len(files) >= 3
    assert max(files.values()) < 30_000


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", FACTS)
def test_golden_model(name: str, verify: bool) -> None:
    facts = FACTS[name]
    model = labeltree.load(GOLDEN / name, verify=verify)
    assert model.label_names == facts["labels"]
    assert model.label_counts.tolist() == facts["label_counts"]
    assert (model.n_examples, model.n_features) == (facts["n_examples"], facts["n_features"])
    assert [tree.depth_of_leaves.tolist() for tree in model.label_trees] == facts["depths"]
    X = queries_of(facts)
    np.testing.assert_allclose(model.probability(X, facts["labels"]), facts["probabilities"], atol=1e-6)
    assert [[label for label, _ in row] for row in model.predict(X, k=3)] == facts["best"]


@pytest.mark.parametrize("name", FACTS)
def test_golden_model_is_saved_as_one_that_predicts_the_same(name: str, tmp_path: Path) -> None:
    model = labeltree.load(GOLDEN / name)
    model.save(tmp_path / name)
    again = labeltree.load(tmp_path / name)
    X = queries_of(FACTS[name])
    assert again.predict(X, k=20) == model.predict(X, k=20)


def test_the_command_that_makes_them_still_works(tmp_path: Path) -> None:
    main(tmp_path)
    made = json.loads((tmp_path / EXPECTED).read_text())
    assert set(made) == set(golden_models())
    for name, facts in made.items():
        assert labeltree.load(tmp_path / name).label_names == facts["labels"]
