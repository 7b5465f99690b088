"""Generated data as files of the repository's format (XMLC), which every tool reads.

Rows are drawn, weighted and written some at a time: only a piece of them is ever in memory. All have unit
length, and values five decimals, so that no tool gains by normalising. A set is written once, into a folder
whose name holds a digest; the file `complete.json` says that it is all there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.generate import TEST, TRAIN, Shape, choose_test_rows, draw_rows, find_rarity
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.kernels.jit import inlined, kernel

N_TEST = 10_000
SEED = 1
_ENTRIES_AT_A_TIME = 1 << 23
_SAMPLED_ROWS = 200  # that tell one recipe from another
_DECIMALS = 5
_SCALE = 10**_DECIMALS
_MOST_DIGITS = 10  # of an id
COMPLETE, LABEL_COUNTS = "complete.json", "label_counts.npy"


class FileSet(NamedTuple):
    """A generated data set on the disk, as `benchmarks.running.Runner` wants it."""

    name: str
    folder: Path
    digest: str
    shape: Shape
    is_text: bool = False

    @property
    def n_train(self) -> int:
        return self.shape.n_documents

    @property
    def n_features(self) -> int:
        return self.shape.n_features

    @property
    def n_labels(self) -> int:
        return self.shape.n_labels

    @property
    def label_counts(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = np.load(self.folder / LABEL_COUNTS)
        return counts

    @property
    def test_labels(self) -> LabelRows:
        with np.load(self.folder / "test.npz") as arrays:
            return LabelRows(arrays["label_indptr"], arrays["label_indices"], self.n_labels)

    def files(self, part: str, forms: tuple[str, ...]) -> dict[str, str]:
        """Form -> path; the arrays of the training rows are written when a tool first asks for them."""
        found = {"source": self.folder / f"{part}.xmlc", "xmlc": self.folder / f"{part}.xmlc"}
        if "npz" in forms:
            found["npz"] = self.folder / f"{part}.npz"
            if not found["npz"].exists():
                _write_arrays(found["xmlc"], found["npz"])
        return {form: str(path) for form, path in found.items() if form in forms}


def open_set(name: str, shape: Shape, cache: Path, n_test: int = N_TEST) -> FileSet:
    """The set of this shape, written now unless it is there."""
    n_test = min(n_test, shape.n_documents)
    digest = find_digest(shape, n_test)
    folder = cache / "generated" / f"{name}-{digest}"
    found = FileSet(name, folder, digest, shape)
    if not (folder / COMPLETE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        sizes = write_set(shape, n_test, folder)
        (folder / COMPLETE).write_text(json.dumps(sizes))
    return found


def find_digest(shape: Shape, n_test: int) -> str:
    """Of sizes and the first rows: they change with the recipe and the format, not with comments there."""
    X, Y = draw_rows(shape, np.arange(min(_SAMPLED_ROWS, shape.n_documents)), part=TRAIN, seed=SEED)
    weight_rows(X, np.ones(shape.n_features, np.float32))
    asked = json.dumps([shape, n_test, SEED]).encode()
    return hashlib.sha256(asked + format_rows(X, Y)).hexdigest()[:16]


def write_set(shape: Shape, n_test: int, folder: Path) -> dict[str, Any]:
    """Both parts, and how many training rows each label has; returns sizes."""
    n_with_word, n_with_label = np.zeros(shape.n_features, np.int64), np.zeros(shape.n_labels, np.int64)
    drawn = folder / "drawn"
    drawn.mkdir()
    n_pieces = 0
    # Weights need the words of all rows: what is drawn waits on the disk until they are counted.
    for rows in _pieces(shape):
        X, Y = draw_rows(shape, rows, part=TRAIN, seed=SEED)
        n_with_word += np.bincount(X.indices, minlength=shape.n_features)
        n_with_label += np.bincount(Y.indices, minlength=shape.n_labels)
        _save_rows(drawn / f"{n_pieces}.npz", X, Y)
        n_pieces += 1
    rarity = find_rarity(n_with_word, shape.n_documents)
    with (folder / "train.xmlc").open("wb") as out:
        out.write(_header(shape.n_documents, shape))
        for number in range(n_pieces):
            path = drawn / f"{number}.npz"
            X, Y = _load_rows(path, shape)
            weight_rows(X, rarity)
            out.write(format_rows(X, Y))
            path.unlink()
    drawn.rmdir()
    X, Y = draw_rows(shape, choose_test_rows(shape, n_test), part=TEST, seed=SEED)
    weight_rows(X, rarity)
    (folder / "test.xmlc").write_bytes(_header(n_test, shape) + format_rows(X, Y))
    _save_rows(folder / "test.npz", X, Y)
    np.save(folder / LABEL_COUNTS, n_with_label)
    return {"n_entries": int(n_with_word.sum()), "n_test": n_test}


def _pieces(shape: Shape) -> Iterator[NDArray[np.int64]]:
    """Row numbers, as many at a time as make about the wanted number of entries."""
    n_rows = max(1, int(_ENTRIES_AT_A_TIME / shape.features_per_document))
    for start in range(0, shape.n_documents, n_rows):
        yield np.arange(start, min(start + n_rows, shape.n_documents), dtype=np.int64)


def _header(n_rows: int, shape: Shape) -> bytes:
    return f"{n_rows} {shape.n_features} {shape.n_labels}\n".encode()


def _save_rows(path: Path, X: SparseRows, Y: LabelRows) -> None:
    with path.open("wb") as out:
        np.savez(
            out, indptr=X.indptr, indices=X.indices, values=X.values, label_indptr=Y.indptr,
            label_indices=Y.indices,
        )  # fmt: skip


def _load_rows(path: Path, shape: Shape) -> tuple[SparseRows, LabelRows]:
    with np.load(path) as arrays:
        X = SparseRows(arrays["indptr"], arrays["indices"], arrays["values"], shape.n_features)
        return X, LabelRows(arrays["label_indptr"], arrays["label_indices"], shape.n_labels)


def _write_arrays(source: Path, path: Path) -> None:
    from labeltree.data.bad_lines import BadLines
    from labeltree.data.xmlc import read_xmlc

    X, Y = read_xmlc(source, bad_lines=BadLines())
    partial = path.with_suffix(".part")
    _save_rows(partial, X, Y)
    partial.replace(path)


def weight_rows(X: SparseRows, rarity: NDArray[np.float32]) -> None:
    """In place: multiply by the words' rarity, make rows of unit length, round as the file will have it."""
    X.values[:] *= rarity[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.values.astype(np.float64) ** 2, X.indptr[:-1]))
    X.values[:] /= np.repeat(lengths, np.diff(X.indptr))
    X.values[:] = np.maximum(np.rint(X.values * _SCALE), 1) / _SCALE


def format_rows(X: SparseRows, Y: LabelRows) -> bytes:
    """The lines of the rows: `1,7 3:0.50000 9:0.86603`."""
    scaled = np.rint(X.values * _SCALE).astype(np.int64)
    n_bytes = len(Y.indices) * (_MOST_DIGITS + 1) + len(X.indices) * (_MOST_DIGITS + _DECIMALS + 4) + X.n_rows
    buffer = np.empty(n_bytes, np.uint8)
    end = print_rows(X.indptr, X.indices, scaled, Y.indptr, Y.indices, buffer)
    return buffer[:end].tobytes()


@inlined
def _print_number(number, out, place):
    """The digits of a number that is not negative; returns where they end."""
    n_digits, rest = 1, number // 10
    while rest > 0:
        n_digits += 1
        rest //= 10
    for digit in range(place + n_digits - 1, place - 1, -1):
        out[digit] = 48 + number % 10
        number //= 10
    return place + n_digits


@kernel
def print_rows(indptr, indices, scaled, label_indptr, labels, out_bytes):
    """Rows as text; ``scaled`` are values times 10 ** 5. Returns the number of bytes."""
    place = 0
    for i in range(len(indptr) - 1):
        for q in range(label_indptr[i], label_indptr[i + 1]):
            if q > label_indptr[i]:
                out_bytes[place] = 44  # a comma
                place += 1
            place = _print_number(labels[q], out_bytes, place)
        for q in range(indptr[i], indptr[i + 1]):
            out_bytes[place] = 32  # a space
            place = _print_number(indices[q], out_bytes, place + 1)
            out_bytes[place] = 58  # a colon
            place = _print_number(scaled[q] // _SCALE, out_bytes, place + 1)
            out_bytes[place] = 46  # a point
            place += 1
            rest = scaled[q] % _SCALE
            for digit in range(place + _DECIMALS - 1, place - 1, -1):
                out_bytes[digit] = 48 + rest % 10
                rest //= 10
            place += _DECIMALS
        out_bytes[place] = 10  # a line feed
        place += 1
    return place
