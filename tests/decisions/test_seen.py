"""Rows that look like those that a model was trained on."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from support.small_data import make_toy

import labeltree
from labeltree import cli
from labeltree.decisions.seen import seen_notices
from labeltree.model import Model


def texts_of(n: int, seed: int) -> list[str]:
    """Of words that few of them share."""
    random = np.random.default_rng(seed)
    return [" ".join(f"word{number}" for number in random.integers(0, 150, 6)) for _ in range(n)]


TRAIN, OTHERS = texts_of(200, 1), texts_of(200, 2)
LABELS = [[f"topic-{i % 5}"] for i in range(200)]


@pytest.fixture(scope="module")
def model() -> Model:
    return labeltree.train(TRAIN, LABELS, neighbours=5, trees=0)


def test_training_rows_are_noticed(model: Model) -> None:
    def said(texts: list[str]) -> list[str]:
        return seen_notices(model, model.features.given_rows(texts), 1)

    assert said(TRAIN)[0].startswith(
        "Warning: most of these rows look like rows that the model was trained on"
    )
    assert said(TRAIN[:120] + OTHERS[:80])
    assert not said(TRAIN[:80] + OTHERS[:120])
    assert not said(OTHERS)
    assert not said([TRAIN[0]] * 100), "the same text again and again is no sign"
    assert not said(TRAIN[:5]), "too few to tell"


def test_models_without_neighbours_say_nothing() -> None:
    data = make_toy(60)
    model = labeltree.train(data.texts, data.Y, neighbours=0, calibrate=False)
    assert not seen_notices(model, model.features.given_rows(data.texts), 1)


def test_tuning_warns(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path, data = tmp_path / "m", tmp_path / "train.txt"
    model.save(path)
    data.write_text(
        "".join(f"__label__{names[0]} {text}\n" for names, text in zip(LABELS, TRAIN, strict=True))
    )
    assert cli.main(["tune", str(path), str(data), "--for", "micro-f1", "-o", str(tmp_path / "tuned")]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("look like rows that the model was trained on") == 1
    assert "look like" not in captured.out
    with caplog.at_level(logging.WARNING, "labeltree"):
        model.tune(TRAIN, LABELS, measure="micro-f1")
        assert "look like rows" in caplog.text
        caplog.clear()
        model.tune(OTHERS, LABELS, measure="micro-f1")
        assert not caplog.text
