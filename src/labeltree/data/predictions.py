"""Predictions as a Parquet file: of each row its number, its labels and their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from labeltree.data.parquet import PARQUET, import_pyarrow
from labeltree.data.rows import pointers
from labeltree.storage.files import whole_file

GROUP_ROWS = 1 << 16  # of a row group, the least that readers load

Row = Sequence[tuple[str, float]]  # labels and probabilities, best first


def is_table(path: Path) -> bool:
    """Whether a file to be written has the name of a Parquet file; an error where that is not possible."""
    if not path.name.lower().endswith(PARQUET.extensions):
        return False
    import_pyarrow(str(path))
    return True


def write_predictions(path: Path, answers: Iterable[Iterable[Row]]) -> None:
    """All rows or no file: columns ``row``, counted from 0, ``labels`` and ``probabilities``, lists both."""
    pyarrow, parquet = import_pyarrow(str(path))
    schema = pyarrow.schema(
        [
            ("row", pyarrow.int64()),
            ("labels", pyarrow.list_(pyarrow.string())),
            ("probabilities", pyarrow.list_(pyarrow.float32())),
        ]
    )
    with whole_file(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for columns in _columns(pyarrow, chain.from_iterable(answers)):
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema), row_group_size=GROUP_ROWS)


def _columns(pyarrow: Any, rows: Iterator[Row]) -> Iterator[list[Any]]:
    """Of a row group at a time."""
    first = 0
    while some := list(islice(rows, GROUP_ROWS)):
        ends = pyarrow.array(pointers([len(row) for row in some]).astype(np.int32))
        labels = pyarrow.array([label for row in some for label, _ in row], pyarrow.string())
        probabilities = pyarrow.array([p for row in some for _, p in row], pyarrow.float32())
        yield [
            pyarrow.array(np.arange(first, first + len(some))),
            pyarrow.ListArray.from_arrays(ends, labels),
            pyarrow.ListArray.from_arrays(ends, probabilities),
        ]
        first += len(some)
