"""Generated data as files: what a plain writer would write, whatever the pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.generate import Shape, generate
from benchmarks.scaling import files
from benchmarks.scaling.files import FileSet, format_rows, open_set, weight_rows
from labeltree.data.bad_lines import BadLines
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.data.xmlc import read_xmlc

SHAPE = Shape(300, 40, 200, 2, 10)


@pytest.fixture
def written(tmp_path: Path) -> FileSet:
    return open_set("tiny", SHAPE, tmp_path, n_test=50)


def test_lines_are_those_of_a_plain_writer() -> None:
    indices, values = np.array([3, 1234567890, 0], np.int32), np.array([0.5, 0.00001, 1], np.float32)
    X = SparseRows(np.array([0, 2, 2, 3]), indices, values, 2**31 - 1)
    Y = LabelRows(np.array([0, 2, 3, 3]), np.array([10, 7, 0], np.int32), 11)
    assert format_rows(X, Y) == b"10,7 3:0.50000 1234567890:0.00001\n0\n 0:1.00000\n"


def test_rows_have_unit_length_and_no_zeros() -> None:
    X = SparseRows(np.array([0, 2, 3]), np.array([0, 1, 2], np.int32), np.array([3, 4e-9, 7], "f4"), 3)
    weight_rows(X, np.array([1, 1, 5], np.float32))
    assert X.values.tolist() == pytest.approx([1, 0.00001, 1])


def test_files_hold_what_is_generated(written: FileSet) -> None:
    data = generate(SHAPE, n_test=50)
    for part, X, Y in (("train", data.X, data.Y), ("test", data.X_test, data.Y_test)):
        weight_rows(X, np.ones(SHAPE.n_features, np.float32))  # generated rows are weighted already
        found = written.files(part, ("source", "xmlc", "npz"))
        assert found["source"] == found["xmlc"]
        X_read, Y_read = read_xmlc(found["xmlc"], bad_lines=BadLines())
        assert (X_read.n_columns, Y_read.n_labels) == (200, 40)
        with np.load(found["npz"]) as arrays:
            for name, array, read in (
                ("indptr", X.indptr, X_read.indptr), ("indices", X.indices, X_read.indices),
                ("values", X.values, X_read.values), ("label_indptr", Y.indptr, Y_read.indptr),
                ("label_indices", Y.indices, Y_read.indices),
            ):  # fmt: skip
                assert np.allclose(arrays[name], array, atol=1.1e-5)
                assert np.array_equal(arrays[name], read)
    assert np.array_equal(written.label_counts, np.bincount(data.Y.indices, minlength=40))
    assert np.array_equal(written.test_labels.indices, data.Y_test.indices)


def test_pieces_make_no_difference(written: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_ENTRIES_AT_A_TIME", 70)
    other = open_set("tiny", SHAPE, tmp_path / "other", n_test=50)
    for part in ("train", "test"):
        assert (other.folder / f"{part}.xmlc").read_bytes() == (written.folder / f"{part}.xmlc").read_bytes()
    assert not (other.folder / "drawn").exists()


def test_a_set_is_written_once_and_completely(
    written: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (written.folder / "train.xmlc").stat().st_mtime_ns
    assert open_set("tiny", SHAPE, tmp_path, n_test=50) == written
    assert (written.folder / "train.xmlc").stat().st_mtime_ns == before
    (written.folder / files.COMPLETE).unlink()  # as if it had been ended on the way
    (written.folder / "train.xmlc").write_text("half")
    open_set("tiny", SHAPE, tmp_path, n_test=50)
    assert (written.folder / "train.xmlc").stat().st_size > 1000
    monkeypatch.setattr(files, "SEED", 2)
    assert open_set("tiny", SHAPE, tmp_path, n_test=50).digest != written.digest
