"""A new metric is one object and one entry in the table: it is measured, shown and written as the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.small_data import make_toy, write_fasttext

import labeltree
from labeltree import cli, metrics
from labeltree.metrics.matching import Matched

TRAIN, TEST = make_toy(100), make_toy(30, seed=4)


def rows_hit(matched: Matched, k: int) -> float:
    """The share of rows with at least one right label among the first k."""
    return float(np.mean(matched.hits[:, :k].any(axis=1)))


def sureness(matched: Matched, k: int) -> float:
    """The mean of the first k probabilities."""
    assert matched.probabilities is not None
    return float(np.mean(matched.probabilities[:, :k]))


@pytest.fixture(autouse=True)
def _added() -> Iterator[None]:
    metrics.METRICS.add("hit", metrics.Metric("rows hit", rows_hit))
    metrics.METRICS.add("sure", metrics.Metric("sureness", sureness, needs_probabilities=True))
    yield
    metrics.METRICS.remove("hit")
    metrics.METRICS.remove("sure")


def test_evaluate_measures_it_where_it_has_what_it_needs() -> None:
    ids, labels = [[3, 1], [2, 0]], [[1, 4], [5]]
    scores = metrics.evaluate(ids, labels, (1, 2))
    assert (scores["hit@1"], scores["hit@2"]) == (0.0, 0.5)
    assert "sure@1" not in scores
    scores = metrics.evaluate(ids, labels, (1, 2), probs=[[0.5, 0.25], [1.0, 0.25]])
    assert (scores["sure@1"], scores["sure@2"]) == (0.75, 0.5)


def test_a_test_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = tmp_path / "test.txt", tmp_path / "m"
    data.write_text(write_fasttext(TEST))
    model = labeltree.train(TRAIN.texts, TRAIN.Y, arity=2, max_leaves=3)
    model.save(path)
    measures = model.test(data, k=(1, 3))
    assert 0.5 < measures["hit@1"] <= measures["hit@3"] <= 1.0
    assert f"rows hit {100 * measures['hit@1']:.2f} {100 * measures['hit@3']:.2f}" in [
        " ".join(line.split()) for line in measures.lines()
    ]
    assert "<td>sureness</td>" in measures._repr_html_()
    assert cli.main(["test", str(path), str(data), "--json", "-k", "1,3"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == list(measures)
    assert (printed["hit@3"], printed["sure@1"]) == (measures["hit@3"], measures["sure@1"])
