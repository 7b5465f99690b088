"""A model has the same bytes wherever its training keeps rows, large arrays and finished work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_data import LABELS, make_toy, write_fasttext
from support.work import MANY_TASKS, map_all, model_bytes, shared_out

import labeltree
from labeltree.errors import ParameterError, TrainingError
from labeltree.nodes import KINDS
from labeltree.training.means import check_folder, open_means

TOY = make_toy(300)
WEIGHT = np.linspace(0.0, 2.0, len(TOY.texts))

# What is trained; "rows" are the toy's features, "weight" whether rows have weights.
TRAININGS: dict[str, dict[str, Any]] = {
    "texts": {},
    "vectors": dict(rows="vectors"),
    "joined": dict(rows="joined"),
    "weights": dict(weight=True),
    "vectors with weights": dict(rows="vectors", weight=True),
    "many tasks": MANY_TASKS,
    "three trees": dict(trees=3, **MANY_TASKS),
    "log": dict(loss="log", **MANY_TASKS),
    "sgd": dict(solver="sgd", **MANY_TASKS),
    "active": dict(solver="active", **MANY_TASKS),
    "active-hinge": dict(solver="active", loss="hinge", rows="vectors"),
    "hsm": dict(link="hsm", **MANY_TASKS),
    "hsm sgd": dict(link="hsm", solver="sgd"),
    "not calibrated": dict(calibrate=False, neighbours=0, **MANY_TASKS),
    "no neighbours": dict(neighbours=0, **MANY_TASKS),
    "neighbours only": dict(trees=0),
    "forest": dict(forest=3),
    "characters": dict(char_weight=0.5),
    "huffman": dict(tree="huffman"),
    "Bonsai": dict(balanced=False, **MANY_TASKS),
    "dense": dict(nodes="dense", epochs=2),
    "direct": dict(nodes="direct"),
    "both": dict(nodes="both", epochs=2),
}


def arguments(training: str) -> tuple[Any, dict[str, Any]]:
    """X, and all others but Y."""
    how = dict(TRAININGS[training])
    kind, weighted = how.pop("rows", "text"), how.pop("weight", False)
    dense = np.random.default_rng(1).normal(size=(len(TOY.texts), 5)) + TOY.indicator[:, :5]
    X = [TOY.texts, dense] if kind == "joined" else TOY.rows(kind)
    return X, how | (dict(sample_weight=WEIGHT) if weighted else {})


def has_parts(how: dict[str, Any]) -> bool:
    return all(KINDS[kind].has_parts for kind in KINDS.parts_of(how.get("nodes", "sparse")))


@pytest.mark.parametrize("training", TRAININGS)
def test_the_same_bytes(training: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, how = arguments(training)
    expected = model_bytes(labeltree.train(X, TOY.Y, threads=1, **how))
    sizes = map_all(monkeypatch)
    found = {
        "a work dir": labeltree.train(X, TOY.Y, threads=1, work_dir=tmp_path / "one", **how),
        "two threads": labeltree.train(X, TOY.Y, threads=2, work_dir=tmp_path / "two", **how),
        "again": labeltree.train(X, TOY.Y, threads=2, work_dir=tmp_path / "two", **how),
    }
    assert sizes, "arrays are in files"
    sizes.clear()
    found["little memory"] = labeltree.train(X, TOY.Y, threads=2, max_memory="256MB", **how)
    assert sizes, "arrays are in files"
    if has_parts(how):
        found["plan, work, merge"] = shared_out(tmp_path / "plan", X, TOY.Y, **how)
    assert [way for way, model in found.items() if model_bytes(model) != expected] == []


def test_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several are read by themselves where there is a work dir."""
    lines = write_fasttext(TOY).splitlines(keepends=True)
    paths = [tmp_path / f"{number}.txt" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text("".join(lines[100 * number : 100 * number + 100]))
    expected = model_bytes(labeltree.train(paths, threads=1, sample_weight=WEIGHT))
    map_all(monkeypatch)
    found = {
        "a work dir": labeltree.train(paths, threads=2, sample_weight=WEIGHT, work_dir=tmp_path / "work"),
        "little memory": labeltree.train(paths, threads=1, sample_weight=WEIGHT, max_memory="256MB"),
        "plan, work, merge": shared_out(tmp_path / "plan", paths, sample_weight=WEIGHT),
    }
    assert [way for way, model in found.items() if model_bytes(model) != expected] == []


def test_blocks_too(tmp_path: Path) -> None:
    blocks = [(TOY.texts[start : start + 50], TOY.Y[start : start + 50]) for start in range(0, 300, 50)]
    expected = model_bytes(labeltree.train(blocks, threads=1))
    assert expected == model_bytes(labeltree.train(blocks, threads=1, work_dir=tmp_path / "work"))
    assert expected == model_bytes(labeltree.train(iter(blocks), threads=1, work_dir=tmp_path / "work"))
    assert expected == model_bytes(labeltree.train(TOY.texts, TOY.Y, threads=1, work_dir=tmp_path / "work"))


def test_a_model_outlives_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mapped files have no names, and those that have may be removed while they are mapped."""
    import shutil

    map_all(monkeypatch)
    model = labeltree.train(TOY.texts, TOY.Y, threads=1, work_dir=tmp_path / "work")
    expected = model.predict(TOY.texts[:5])
    shutil.rmtree(tmp_path / "work")
    assert model.predict(TOY.texts[:5]) == expected
    assert {label for row in expected for label, _ in row} <= set(LABELS)


def test_without_a_work_dir_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    map_all(monkeypatch)
    labeltree.train(TOY.texts, TOY.Y, threads=1, max_memory="256MB")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("work_dir", ["", 3, b"work", ["work"], "zero\0byte"])
def test_no_folder(work_dir: Any) -> None:
    with pytest.raises(ParameterError, match="work_dir must be the path of a folder, but is"):
        check_folder(work_dir)


def test_a_file_is_no_work_dir(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ParameterError, match="is a file; give a folder"):
        labeltree.train(TOY.texts, TOY.Y, work_dir=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["file/work", "x" * 300])
def test_a_work_dir_that_cannot_be_made_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TrainingError, match=r"cannot be written .* choose a folder"):
        labeltree.train(TOY.texts, TOY.Y, work_dir=tmp_path / name)


def test_a_folder_is_for_one_training_at_a_time(tmp_path: Path) -> None:
    with open_means(1, tmp_path), pytest.raises(TrainingError, match="another process trains here"):
        labeltree.train(TOY.texts, TOY.Y, work_dir=tmp_path)
    labeltree.train(TOY.texts, TOY.Y, threads=1, work_dir=tmp_path)
