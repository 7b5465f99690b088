"""What a test says, for people to look at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import labeltree
from labeltree.cli import main
from labeltree.metrics.matching import Matched
from labeltree.metrics.scorecard import calibration_curve, scorecard

WORDS = {"bread": "flour yeast", "cake": "sugar icing", "soup": "broth pot", "tea": "leaf cup"}
TEXTS = [f"{words} {number}" for number in range(8) for words in WORDS.values()]
LABELS = [[label] for _ in range(8) for label in WORDS]


@pytest.fixture(scope="module")
def model() -> labeltree.Model:
    return labeltree.train(TEXTS, LABELS, threads=1)


def test_a_curve_compares_what_was_promised_with_what_came() -> None:
    ids = np.array([[0, 1], [1, -1], [0, 1]])
    probabilities = np.array([[0.95, 0.25], [0.92, 0.0], [1.0, 0.21]])
    matched = Matched(ids, [[0], [2], [0, 1]], (2,), probs=probabilities)
    low, high = calibration_curve(matched)
    assert low == {"probability": pytest.approx(0.23), "right": 0.5, "n": 2}
    assert high == {
        "probability": pytest.approx((0.95 + 0.92 + 1.0) / 3),
        "right": pytest.approx(2 / 3),
        "n": 3,
    }


def test_best_and_worst_labels(model: labeltree.Model) -> None:
    wrong = [["tea"] if labels == ["soup"] else labels for labels in LABELS]
    card = scorecard(model, model.test(TEXTS, wrong, threads=1))
    assert [each["label"] for each in card["best"]] == ["bread", "cake"]
    assert [each["label"] for each in card["worst"]] == ["tea"]
    assert card["labels_judged"] == 3
    assert card["rows"] == len(TEXTS)
    assert card["worst"][0]["training_rows"] == 8
    assert card["worst"][0]["rows"] == 16


def test_it_says_which_rule_it_judges() -> None:
    model = labeltree.train(TEXTS, LABELS, threads=1)
    card = scorecard(model, model.test(TEXTS, LABELS, threads=1, threshold=0.3))
    assert card["rule"] is None
    assert card["threshold"] == pytest.approx(0.3)
    model.rule = model.tune(TEXTS, LABELS, measure="psp@2").rule
    card = scorecard(model, model.test(TEXTS, LABELS, threads=1))
    assert (card["rule"], card["threshold"]) == ("psp@2", None)
    assert {"micro-precision", "micro-recall", "micro-f1"} <= card["measures"].keys()


def test_the_command_writes_one(model: labeltree.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.labeltree")
    rows = zip(TEXTS, LABELS, strict=True)
    data = "".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows)
    (tmp_path / "test.jsonl").write_text(data)
    files = [str(tmp_path / name) for name in ("model.labeltree", "test.jsonl", "score.json")]
    assert main(["test", *files[:2], "--scorecard", files[2]]) == 0
    card = json.loads((tmp_path / "score.json").read_text())
    expected = scorecard(model, model.test(TEXTS, LABELS, threads=1))
    for key in ("calibration", "best", "worst", "rows", "k"):
        assert card[key] == expected[key]
