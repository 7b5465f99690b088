"""Parquet files: a column of texts, and one of labels, lists or strings, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labeltree.data.bad_lines import BadLines
from labeltree.data.columns import Columns, Table, cells_of, find_columns
from labeltree.data.csv import Record, block_of_records
from labeltree.data.formats import TextFormat
from labeltree.data.memory import BLOCK_ROWS
from labeltree.data.opening import Source
from labeltree.data.rows import Block
from labeltree.errors import DataError, MissingPackageError

_MAGIC = b"PAR1"


class _Parquet(TextFormat):
    name = "parquet"
    extensions = (".parquet",)
    has_columns = True
    example = ""  # it is no text

    def begins(self, line: bytes) -> bool:
        return line.startswith(_MAGIC)

    def where_labels_are(self, label_prefix: str) -> str:
        return (
            f'labels are in the column "{Columns().labels}", or that of labels_column (--labels-column): '
            "lists of strings or numbers, or strings with a label_separator (--label-separator)"
        )

    def blocks(self, source: Source, bad_lines: BadLines, block_bytes: int) -> Iterator[Block]:
        with source, _reading(source) as file:
            wanted = check_schema(source, file.schema_arrow)
            first_row, n_rows = 1, max(1, file.metadata.num_rows)
            for batch in file.iter_batches(batch_size=BLOCK_ROWS, columns=wanted):
                records = read_batch(source, batch, first_row, bad_lines)
                yield block_of_records(source.name, records)._replace(unit="row")
                first_row += batch.num_rows
                source.tell_progress(first_row / n_rows)


def import_pyarrow(file: str) -> tuple[Any, Any]:
    """The package, and its part for the Parquet file that needs it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackageError(
            f"{file}: Parquet files need pyarrow, which is not installed: pip install 'labeltree[parquet]'"
        ) from error
    return pyarrow, parquet


@contextmanager
def _reading(source: Source) -> Iterator[Any]:
    """The opened file; whatever pyarrow finds wrong with it is told with its name."""
    pyarrow, parquet = import_pyarrow(source.name)
    if source.path == "-":
        raise DataError("standard input: a Parquet file cannot be read from a pipe; give its name")
    if source.is_compressed:
        raise DataError(f"{source.name}: a compressed Parquet file cannot be read; unpack it")
    try:
        with parquet.ParquetFile(source.path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{source.name}: damaged or no Parquet file ({error}); get or write it again"
        ) from error


def check_schema(source: Table, schema: Any) -> list[str]:
    """The names of the columns to read: texts are strings, labels strings or numbers or lists of them."""
    columns = source.columns
    find_columns(source, schema.names)
    kind = schema.field(columns.text).type
    if not _is_string(kind):
        raise DataError(
            f'{source.name}: the column "{columns.text}" is of type {kind}, but texts are strings; '
            "name another one with text_column (--text-column)"
        )
    if not source.wants_labels:
        return [columns.text]
    from pyarrow import types

    kind = schema.field(columns.labels).type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    each = kind.value_type if is_list else kind
    if not (_is_string(each) or types.is_integer(each)):
        raise DataError(
            f'{source.name}: the column "{columns.labels}" is of type {kind}, but labels are strings or '
            "whole numbers, or lists of them; name another one with labels_column (--labels-column)"
        )
    return [columns.text, columns.labels]


def _is_string(kind: Any) -> bool:
    """Nulls may be strings too: writers that saw nothing else, as of an empty shard, know no type."""
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value) or types.is_null(value))


def read_batch(source: Table, batch: Any, first_row: int, bad_lines: BadLines) -> list[Record]:
    """The rows of some of pyarrow's, numbered from the first on."""
    columns = source.columns  # which may stand in any order
    texts = batch.column(columns.text).to_pylist()
    labels = batch.column(columns.labels).to_pylist() if source.wants_labels else [None] * len(texts)
    found = []
    for row, (text, own) in enumerate(zip(texts, labels, strict=True), first_row):
        problem = "the text is null" if text is None else ""
        cells = _labels(own, columns.separator)
        if cells is None:
            problem = "a label is null"
        if problem:
            bad_lines.report(f"{source.name}, row {row}: {problem}; fill or remove it")
        else:
            found.append(Record(row, text, cells or []))
    return found


def _labels(value: Any, separator: str) -> list[str] | None:
    """Of one row; None where a label is null."""
    if value is None:
        return []
    if isinstance(value, str):
        return cells_of(value, separator)
    if isinstance(value, int):
        return [str(value)]
    return None if any(label is None for label in value) else [str(label) for label in value if label != ""]


PARQUET = _Parquet()
