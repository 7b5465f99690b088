"""Steps that commands share: reading a model with its data, and printing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labeltree.errors import DataError

if TYPE_CHECKING:
    from labeltree.config import Config
    from labeltree.data.rows import LabelRows, SparseRows
    from labeltree.model import Model
    from labeltree.reports import LabelCounts


def load_with_data(
    model: Path, data: str, fmt: str, *, skip_bad_lines: bool
) -> tuple[Model, SparseRows, LabelRows, int]:
    """A model, a data file in its features and labels, and how many bad lines were skipped."""
    from labeltree.data.bad_lines import BadLines
    from labeltree.model import load
    from labeltree.streaming import read_rows

    loaded = load(model)
    bad_lines = BadLines(skip=skip_bad_lines)
    rows, labels = read_rows(loaded.features, loaded.labels, data, fmt, bad_lines)
    report_skipped(bad_lines.skipped, bad_lines.messages)
    return loaded, rows, labels, bad_lines.skipped


def count_labels(data: str, rows: SparseRows, labels: LabelRows, purpose: str) -> LabelCounts:
    """The labels of data to score on; says what lowers the scores, and refuses data without rows."""
    from labeltree.reports import LabelCounts

    name = "standard input" if data == "-" else data
    if rows.n_rows == 0:
        raise DataError(f"{name}: no rows to {purpose} on; give a file with a row per line")
    counts = LabelCounts.of(labels)
    print_lines(counts.notices(name), err=True)
    return counts


def print_lines(lines: Sequence[str], *, err: bool = False) -> None:
    """Write UTF-8 whatever the locale, and at once: whoever reads the pipe may be waiting."""
    content = "".join(f"{line}\n" for line in lines)
    click.echo(content.encode("utf-8", "surrogateescape"), nl=False, err=err)


def report_skipped(n_lines: int, messages: Sequence[str]) -> None:
    if n_lines:
        from labeltree.progress import counted

        first = " The first of them:" if n_lines > len(messages) else ""
        print_lines([f"Skipped {counted(n_lines, 'bad line')}.{first}", *messages], err=True)


def expect_compiling(config: Config, *, threads: int, quiet: bool = False) -> None:
    """Where training must compile kernels, say so, and have another process help."""
    from labeltree.kernels import cache
    from labeltree.warming import jobs_ahead, start_ahead

    def begin() -> None:
        if not quiet:
            cache.announce()
        if threads != 1:
            start_ahead(jobs_ahead(config))

    cache.when_compiling = begin
