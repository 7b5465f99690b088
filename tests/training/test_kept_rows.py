"""A training goes on where it was, with the same data and parameters only."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_data import make_toy, write_fasttext
from support.work import MANY_TASKS, cut, flip_bit, model_bytes

import labeltree
from labeltree.errors import DataError, WorkDirError
from labeltree.storage.work_dir import WorkDir
from labeltree.training import kept_rows

TOY, OTHER = make_toy(200), make_toy(200, seed=7)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_text(write_fasttext(TOY))
    return path


class Ended(BaseException):
    """As a signal would end it, or the power."""


def end_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    real, n_writes = WorkDir.write, 0

    def write(*arguments: Any) -> None:
        nonlocal n_writes
        n_writes += 1
        if n_writes == number:
            raise Ended
        real(*arguments)

    monkeypatch.setattr(WorkDir, "write", write)


@pytest.mark.parametrize("kind", ["file", "files", "memory", "blocks"])
def test_it_goes_on_after_any_result(
    kind: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended before each, one after another; what is there is not made again."""
    (tmp_path / "more.txt").write_text(write_fasttext(OTHER))
    blocks = [(TOY.texts[:50], TOY.Y[:50]), (TOY.texts[50:], TOY.Y[50:])]
    X, Y = dict[str, Any](
        file=(data, None), files=([data, tmp_path / "more.txt"], None), memory=(TOY.texts, TOY.Y),
        blocks=(blocks, None),
    )[kind]  # fmt: skip
    how: dict[str, Any] = dict(threads=1, trees=2, **MANY_TASKS)
    expected = model_bytes(labeltree.train(X, Y, **how))
    n_ends = 0
    while n_ends < 100:
        # The second write is never reached before something new is kept, unless nothing is left to write;
        # which files are read is written anew by every run.
        end_at_write(monkeypatch, 2 + (kind == "files"))
        try:
            model = labeltree.train(X, Y, work_dir=tmp_path / "work", **how)
            break
        except Ended:
            monkeypatch.undo()
            n_ends += 1
    assert 10 < n_ends < 100
    assert model_bytes(model) == expected


@pytest.mark.parametrize("damage", [cut, flip_bit])
def test_damaged_results_are_made_again_or_named(damage: Any, data: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    how: dict[str, Any] = dict(threads=1, **MANY_TASKS)
    expected = model_bytes(labeltree.train(data, work_dir=work, **how))
    results = sorted(work.glob("*.part"))
    assert len(results) > 5
    for path in results:
        damage(path)
        if path.stem == kept_rows.ROWS:
            with pytest.raises(WorkDirError, match=r"rows.part: cannot be used .* remove it, and run"):
                labeltree.train(data, work_dir=work, **how)
            path.unlink()
        assert model_bytes(labeltree.train(data, work_dir=work, **how)) == expected, path.name


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read everything")
def test_unreadable_rows_are_named(data: Path, tmp_path: Path) -> None:
    labeltree.train(data, work_dir=tmp_path / "work", threads=1)
    (tmp_path / "work" / "rows.part").chmod(0)
    with pytest.raises(WorkDirError, match=r"rows.part: cannot be used .*Permission denied"):
        labeltree.train(data, work_dir=tmp_path / "work", threads=1)


def test_rows_that_are_no_file_are_named(data: Path, tmp_path: Path) -> None:
    labeltree.train(data, work_dir=tmp_path / "work", threads=1)
    (tmp_path / "work" / "rows.part").unlink()
    (tmp_path / "work" / "rows.part").mkdir()
    with pytest.raises(WorkDirError, match=r"rows.part: cannot be used .*not a regular file"):
        labeltree.train(data, work_dir=tmp_path / "work", threads=1)


def test_another_training_is_refused(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how: dict[str, Any] = dict(work_dir=tmp_path / "work", threads=1)
    labeltree.train(data, **how)
    before = {path.name: path.read_bytes() for path in (tmp_path / "work").iterdir()}
    weight = np.ones(len(TOY.texts))
    for told, X, Y, others in (
        ("arity is 0 there and 4 now", data, None, dict(arity=4)),
        ("seed is 1 there and 2 now", data, None, dict(seed=2)),
        ("reading is ", data, None, dict(skip_bad_lines=True)),
        ("sample_weight is None there and ", data, None, dict(sample_weight=weight)),
        ("data is ", TOY.texts, TOY.Y, {}),
    ):
        with pytest.raises(WorkDirError, match="holds the work of another training") as error:
            labeltree.train(X, Y, **how, **others)
        assert told in str(error.value)
    data.write_text(write_fasttext(OTHER))
    with pytest.raises(WorkDirError, match=r"file 1 is '[0-9a-f]{32}' there and '[0-9a-f]{32}' now"):
        labeltree.train(data, **how)
    data.write_text(write_fasttext(TOY))
    monkeypatch.setattr(kept_rows, "__version__", "99.0")
    with pytest.raises(WorkDirError, match=r"labeltree is '.*' there and '99.0' now"):
        labeltree.train(data, **how)
    assert {path.name: path.read_bytes() for path in (tmp_path / "work").iterdir()} == before


def test_a_name_or_the_number_of_threads_is_no_other_training(data: Path, tmp_path: Path) -> None:
    labeltree.train(data, work_dir=tmp_path / "work", threads=1)
    data.rename(tmp_path / "moved.txt")
    labeltree.train(tmp_path / "moved.txt", work_dir=tmp_path / "work", threads=2, card={"licence": "CC0"})


def test_other_rows_in_memory_are_refused(tmp_path: Path) -> None:
    work = tmp_path / "work"
    labeltree.train(TOY.texts, TOY.Y, work_dir=work, threads=1)
    renamed = [[label.upper() for label in labels] for labels in TOY.Y]
    for X, Y, weight in (
        (OTHER.texts, OTHER.Y, None),
        (TOY.texts, renamed, None),
        (TOY.X, TOY.Y, None),
        (TOY.texts, TOY.Y, np.full(len(TOY.texts), 2.0)),
    ):
        with pytest.raises(WorkDirError, match="holds the work of a training on other rows"):
            labeltree.train(X, Y, sample_weight=weight, work_dir=work, threads=1)
    (work / "rows.part").unlink()  # then nobody knows what the others were made from
    found = model_bytes(labeltree.train(OTHER.texts, OTHER.Y, work_dir=work, threads=1))
    assert found == model_bytes(labeltree.train(OTHER.texts, OTHER.Y, threads=1))


def tree_lines(n_groups: int) -> str:
    groups = [f"root group{n}\n" for n in range(n_groups)]
    return "".join([*groups, *(f"group{n % n_groups} leaf{n} topic-{n}\n" for n in range(12))])


def test_a_tree_of_a_file_is_part_of_the_key(data: Path, tmp_path: Path) -> None:
    tree = tmp_path / "labels.tree"
    tree.write_text(tree_lines(3))
    labeltree.train(data, tree=str(tree), work_dir=tmp_path / "work", threads=1)
    tree.write_text(tree_lines(4))
    with pytest.raises(WorkDirError, match="tree file is"):
        labeltree.train(data, tree=str(tree), work_dir=tmp_path / "work", threads=1)


def test_standard_input(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read anew by each run, and must be the same."""

    def given(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    expected = model_bytes(labeltree.train(data, threads=1))
    for _ in range(2):
        given(write_fasttext(TOY))
        assert model_bytes(labeltree.train("-", threads=1, work_dir=tmp_path / "work")) == expected
    given(write_fasttext(OTHER))
    with pytest.raises(WorkDirError, match="file 1 is"):
        labeltree.train("-", threads=1, work_dir=tmp_path / "work")
    kept_rows.remove_work(tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_labels_beside_files_are_refused(data: Path, tmp_path: Path) -> None:
    """By every way to read them, and at a resume."""
    labeltree.train(data, work_dir=tmp_path / "one", threads=1)
    for X, work_dir in ((data, None), ([data, data], tmp_path / "two"), (data, tmp_path / "one")):
        with pytest.raises(DataError, match="Y and label_names must be None when X is a file"):
            labeltree.train(X, TOY.Y, work_dir=work_dir, threads=1)


def test_files_are_told_one_at_a_time(data: Path, tmp_path: Path) -> None:
    """A callback need not be made for several threads."""
    lock, heard = threading.Lock(), list[float]()

    def listen(progress: Any) -> None:
        assert lock.acquire(blocking=False)
        time.sleep(0.01)
        if progress.stage == "read":
            heard.append(progress.fraction)
        lock.release()

    labeltree.train([data] * 6, work_dir=tmp_path / "work", threads=4, callback=listen)
    assert heard == sorted(heard)


def test_what_was_skipped_is_known_at_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "a b", "labels": ["x"]}\n{broken\n{"text": "c", "labels": ["y"]}\n' * 3)
    for _ in range(2):
        model = labeltree.train(path, skip_bad_lines=True, work_dir=tmp_path / "work", threads=1)
        assert model.skipped_lines == 3
        assert len(model.skipped_messages) == 3


def test_bad_data_is_named_and_can_be_mended(tmp_path: Path) -> None:
    """What failed is no other training: only results make one."""
    path = tmp_path / "data.txt"
    with pytest.raises(DataError, match=r"data.txt: cannot be read"):
        labeltree.train(path, work_dir=tmp_path / "work", threads=1)
    path.write_text("words without a label\n")
    with pytest.raises(DataError, match="no row has a label"):
        labeltree.train(path, work_dir=tmp_path / "work", threads=1)
    path.write_text(write_fasttext(TOY))
    labeltree.train(path, work_dir=tmp_path / "work", threads=1)
