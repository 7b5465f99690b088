"""The file formats: what each one says about itself, their table, and how one is recognised.

Importing this is free: a format's own module is imported when it is first asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from labeltree.data.columns import Columns
from labeltree.errors import DataError, ParameterError, show
from labeltree.parameter import said
from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.data.bad_lines import BadLines
    from labeltree.data.opening import Source
    from labeltree.data.rows import Block, LabelRows, SparseRows
    from labeltree.storage.space import Space

UTF8_MARK = b"\xef\xbb\xbf"

_COMPRESSED = (".gz", ".xz")


class Reading(NamedTuple):
    """How data is to be read: what callers give under the same names."""

    format: str = "auto"
    text_column: str = Columns().text
    labels_column: str = Columns().labels
    label_separator: str = Columns().separator

    @property
    def columns(self) -> Columns:
        return Columns(*self[1:])

    def check(self) -> Reading:
        """Itself, or an error that says what is wrong with it."""
        check_format(self.format)
        self.columns.check()
        return self


USUAL_READING = Reading()


class Format(ABC):
    """What is known about the files of a format before one is read."""

    name: str  # in the table
    input: str  # what its rows hold: the name of the features that take it
    extensions: tuple[str, ...] = ()  # of files whose first line does not tell what they are
    example: str  # the content of a small file with labels; empty where it is no text
    has_columns = False  # that one may choose, as a table has

    @property
    def example_row(self) -> str:
        """The last one of the example."""
        return self.example.splitlines()[-1]

    @abstractmethod
    def begins(self, line: bytes) -> bool:
        """Whether the first line that is not blank is a sign of this format."""

    @abstractmethod
    def where_labels_are(self, label_prefix: str) -> str:
        """How a file gives labels, for those who find that theirs has none."""

    @abstractmethod
    def content(
        self, source: Source, bad_lines: BadLines, n_columns: int | None = None, n_labels: int | None = None
    ) -> Any:
        """What features of this input are fitted on, and read.

        Both numbers are those of a model, if there is one: formats that give labels and features by number
        need them.
        """

    def joined(self, contents: Iterator[Any], space: Space) -> Any:
        """The contents of several files of this input, one after another, as that of one."""
        content = next(contents)
        for _ in contents:
            raise DataError(f"files of format {self.name} cannot be joined; give one")
        return content

    def may_begin(self, word: bytes) -> bool:
        """Whether this may be the first word of a file, of which only the input is known."""
        return True


class TextFormat(Format):
    """Rows are texts; :class:`~labeltree.data.lines.LineFormat` is for those with a row per line."""

    input = "text"

    @abstractmethod
    def blocks(self, source: Source, bad_lines: BadLines, block_bytes: int) -> Iterator[Block]:
        """The rows, some megabytes of the file at a time; closes the source at the end."""

    def content(
        self, source: Source, bad_lines: BadLines, n_columns: int | None = None, n_labels: int | None = None
    ) -> Iterator[Block]:
        from labeltree.data.opening import BLOCK_BYTES  # imports numpy

        return self.blocks(source, bad_lines, BLOCK_BYTES)

    def joined(self, contents: Iterator[Iterator[Block]], space: Space) -> Iterator[Block]:
        return chain.from_iterable(contents)


class VectorFormat(Format):
    """Rows are sparse vectors; labels are numbers."""

    input = "vectors"

    @abstractmethod
    def content(
        self, source: Source, bad_lines: BadLines, n_columns: int | None = None, n_labels: int | None = None
    ) -> tuple[SparseRows, LabelRows]:
        """All rows; labels that the model does not know are -1."""

    def joined(
        self, contents: Iterator[tuple[SparseRows, LabelRows]], space: Space
    ) -> tuple[SparseRows, LabelRows]:
        """Numbers of features and labels mean the same in all files; the largest ones count."""
        from labeltree.data.rows import join_labels, join_rows  # imports numpy

        rows, labels = zip(*contents, strict=True)
        n_columns, n_labels = max(part.n_columns for part in rows), max(part.n_labels for part in labels)
        return join_rows(rows, n_columns, space), join_labels(labels, n_labels)


# In the order in which they are asked whether a file is theirs.
FORMATS: Table[Format] = Table(
    jsonl=Entry("data.jsonl:JSONL"),
    xmlc=Entry("data.xmlc:XMLC"),
    parquet=Entry("data.parquet:PARQUET"),
    annif=Entry("data.annif:ANNIF"),
    csv=Entry("data.csv:CSV"),
    fasttext=Entry("data.fasttext:FASTTEXT"),
)
# Whatever has no sign of a format: plain text is fastText lines without labels.
_WITHOUT_SIGN = {"text": "fasttext", "vectors": "xmlc"}
_TABLE = "csv"  # and a file of which someone names columns


def first_line(first_bytes: bytes) -> bytes:
    """The first one that is not blank, without the mark of UTF-8."""
    lines = first_bytes.removeprefix(UTF8_MARK).splitlines()
    return next((line for line in lines if line.strip()), b"")


def detect_format(first_bytes: bytes, path: str, input: str | None = None) -> Format:
    """The format of a file by its first line that is not blank; where that tells nothing, by its name.

    With ``input`` it is one of those with such rows.
    """
    formats = [found for found in FORMATS.values() if input in (None, found.input)]
    line = first_line(first_bytes)
    name = path.lower()
    for extension in _COMPRESSED:
        name = name.removesuffix(extension)
    signs = [found for found in formats if found.begins(line)]
    signs += [found for found in formats if name.endswith(found.extensions)]
    return signs[0] if signs else plain_format(input or TextFormat.input)


def plain_format(input: str) -> Format:
    """The format of files with such rows that have no sign of another one."""
    return FORMATS[_WITHOUT_SIGN[input]]


def find_format(fmt: str, source: Source) -> Format:
    """The format that is asked for; of ``auto`` the one that the file has."""
    if check_format(fmt) != "auto":
        found = FORMATS[fmt]
    elif source.columns == Columns():
        found = detect_format(source.first_bytes, source.path)
    else:  # whoever names columns has a table
        line = first_line(source.first_bytes)
        found = next((each for each in FORMATS.values() if each.begins(line)), FORMATS[_TABLE])
    check_columns(source, found)
    return found


def check_columns(source: Source, found: Format) -> None:
    """Refuse columns that were chosen of a file that has none."""
    if source.columns != Columns() and not found.has_columns:
        raise ParameterError(
            f"{source.name}: a file of format {found.name}, which has no columns to choose; leave out "
            "text_column, labels_column and label_separator, or set the format (--format)"
        )


def format_choices() -> tuple[str, ...]:
    """What one may ask for."""
    return ("auto", *FORMATS)


def check_format(fmt: str) -> str:
    """``fmt``, or an error that lists the known formats."""
    if fmt not in format_choices():
        raise ParameterError(f"format must be one of {', '.join(format_choices())}, but is {show(fmt)}")
    return fmt


def check_in_memory(reading: Reading, skip_bad_lines: bool, *, has_columns: bool = False) -> None:
    """Refuse what says how a file is to be read, where there is none; rows in memory may have columns."""
    given = (*zip(Reading._fields, reading.check(), USUAL_READING, strict=True),)
    refused = given[:1] if has_columns else given
    for name, value, default in (*refused, ("skip_bad_lines", skip_bad_lines, False)):
        if value != default:
            raise ParameterError(
                f"{name}={said(value)} has no effect where X is in memory: it needs the path of a file as X; "
                "or leave it out"
            )
