"""What gives rows and labels together, some at a time: blocks, rows by name, and pyarrow's data sets.

They are read once, from the first row to the last, so a generator is as good as a list; nothing of what has
been read is kept but what training makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from labeltree.data.bad_lines import BadLines
from labeltree.data.columns import Columns, cells_of, find_columns
from labeltree.data.formats import TextFormat, VectorFormat
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.memory import BLOCK_ROWS, bad_text
from labeltree.data.numbering import LabelNumbers
from labeltree.data.rows import RowParts, SparseRows
from labeltree.errors import DataError, show
from labeltree.storage.space import IN_MEMORY, Space

NO_LABELS = (
    "Y is missing: give the labels of each row, or as X what has labels: the path of a file, or blocks "
    "(texts, labels)"
)


class Part(NamedTuple):
    """Some rows of a source."""

    X: Any  # texts, or a matrix
    Y: Any
    place: str  # for messages, before the name of either; empty where rows are numbered from the first of all
    first_row: int

    @contextmanager
    def named(self) -> Iterator[None]:
        """What is wrong with it is told with its place."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.place}{error}") from error


class RowSource:
    """Parts that can be read once; the first one, which has been looked at, says what all hold."""

    def __init__(self, parts: Iterator[Part], *, has_columns: bool) -> None:
        first = next(parts, None)
        if first is None:
            raise DataError(
                "X has no rows: nothing came when it was iterated over; a generator can be used only once"
            )
        self.has_columns = has_columns
        self._is_matrix = _is_matrix(first.X)
        self._parts = chain([first], parts)

    @property
    def input(self) -> str:
        """What the rows hold: the name of the features that take it."""
        return VectorFormat.input if self._is_matrix else TextFormat.input

    def parts(self, labels: LabelNumbers) -> Iterator[tuple[Part, list[str] | SparseRows]]:
        """Each part with its rows, checked, whose labels have got their numbers."""
        n_columns = None
        for part in self._parts:
            with part.named():
                X: list[str] | SparseRows
                if _is_matrix(part.X) != self._is_matrix:
                    raise DataError("X is texts in some blocks and a matrix in others; give one of both")
                if self._is_matrix:
                    X = sparse_rows(part.X)
                    _check_width(X, n_columns)
                    n_columns, n_rows = X.n_columns, X.n_rows
                else:
                    X = _checked_texts(part.X, part.first_row)
                    n_rows = len(X)
                labels.add(part.Y, n_rows, part.first_row)
            yield part, X

    def rows(self, labels: LabelNumbers, space: Space = IN_MEMORY) -> Any:
        """What features take from memory: texts as they come, or one matrix."""
        found = (X for _, X in self.parts(labels))
        if not self._is_matrix:
            return chain.from_iterable(found)
        matrices: Iterator[Any] = found
        first = next(matrices)
        parts = RowParts(space)
        for X in chain([first], matrices):
            # Copies: whoever makes blocks may fill the same arrays again.
            parts.add(np.diff(X.indptr), X.indices.copy(), X.values.copy())
        return parts.rows(first.n_columns)


def is_source(X: Any) -> bool:
    """Whether X may have labels of its own, where nobody gives them: all but matrices and what is no list."""
    is_single = isinstance(X, (str, bytes, Mapping)) or not (isinstance(X, Iterable) or _is_arrow(X))
    return not is_single and not _is_matrix(X) and not hasattr(X, "ndim")


def open_source(X: Any, columns: Columns) -> RowSource:
    """A source, of which the first rows are read to see what it is."""
    if _is_arrow(X):
        return RowSource(_parts_of_arrow(X, columns), has_columns=True)
    items = iter(X)
    first = next(items, None)
    if isinstance(first, Mapping):
        return RowSource(_parts_of_rows(chain([first], items), columns), has_columns=True)
    if first is not None and not _is_pair(first):
        raise DataError(NO_LABELS)
    return RowSource(_parts_of_blocks(items if first is None else chain([first], items)), has_columns=False)


def _is_matrix(X: Any) -> bool:
    return type(X) is SparseRows or is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


def _is_arrow(X: Any) -> bool:
    """A data set or a table of pyarrow, which is not imported for those who do not use it."""
    is_theirs = type(X).__module__.partition(".")[0] == "pyarrow"
    return is_theirs and hasattr(X, "to_batches") and hasattr(X, "schema")


def _is_pair(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and type(item) is not SparseRows and len(item) == 2


def _parts_of_blocks(blocks: Iterable[Any]) -> Iterator[Part]:
    for number, block in enumerate(blocks):
        place = f"block {number}: "
        if not _is_pair(block):
            raise DataError(f"{place}must be a pair (texts or rows, labels), but is {show(block)}")
        X, Y = block
        if not _is_matrix(X) and (isinstance(X, (str, bytes)) or not isinstance(X, Iterable)):
            raise DataError(
                f"{place}must begin with a list of texts or a matrix, but begins with {show(X)}; "
                "a block has lists, even of one row"
            )
        yield Part(X, Y, place, 0)


def _parts_of_rows(rows: Iterable[Any], columns: Columns) -> Iterator[Part]:
    """Rows by name, as those of Hugging Face's data sets are."""
    remaining, first_row = iter(rows), 0
    while some := list(islice(remaining, BLOCK_ROWS)):
        pairs = [_read_row(row, number, columns) for number, row in enumerate(some, first_row)]
        yield Part([text for text, _ in pairs], [labels for _, labels in pairs], "", first_row)
        first_row += len(some)


class _Row(NamedTuple):
    """A row as a table of its own."""

    name: str
    columns: Columns
    wants_labels: bool = True


def _read_row(row: Any, number: int, columns: Columns) -> tuple[Any, Any]:
    place = f"X, row {number}"
    if not isinstance(row, Mapping):
        raise DataError(f"{place}: must be a dict, as the first row is, but is {show(row)}")
    if columns.text not in row or columns.labels not in row:
        find_columns(_Row(place, columns), list(row))
    labels = row[columns.labels]
    if labels is None:  # as in tables, and in JSON lines
        labels = []
    elif isinstance(labels, str):
        labels = cells_of(labels, columns.separator)
    elif not isinstance(labels, Iterable):
        labels = [labels]
    return row[columns.text], labels


def _parts_of_arrow(X: Any, columns: Columns) -> Iterator[Part]:
    from labeltree.data.parquet import check_schema, read_batch

    table, bad_lines, first_row = _Row("X", columns), BadLines(), 0
    wanted = check_schema(table, X.schema)
    for batch in _batches(X, wanted):
        records = read_batch(table, batch, first_row, bad_lines)
        yield Part([each.text for each in records], [each.labels for each in records], "", first_row)
        first_row += batch.num_rows


def _batches(X: Any, wanted: list[str]) -> Iterator[Any]:
    import pyarrow
    from pyarrow import dataset

    source = dataset.dataset(X) if isinstance(X, pyarrow.Table) else X
    try:
        yield from source.to_batches(columns=wanted, batch_size=BLOCK_ROWS)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"X: pyarrow cannot read it ({error}); check its files") from error


def _checked_texts(X: Any, first_row: int) -> list[str]:
    texts: list[str] = X if type(X) is list else list(X)
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise DataError(bad_text(texts, first_row)) from error
    return texts


def _check_width(X: SparseRows, n_columns: int | None) -> None:
    if n_columns not in (None, X.n_columns):
        raise DataError(
            f"X has {X.n_columns} columns, but the blocks before have {n_columns}; give all the same number"
        )
