"""The command ``labeltree neighbours``: which training rows a model compares texts with."""

from __future__ import annotations

from pathlib import Path

import click

from labeltree.cli.options import (
    SavingCommand,
    json_option,
    model_argument,
    reading_options,
    skip_option,
    threads_option,
)
from labeltree.cli.steps import print_lines, report_skipped
from labeltree.data.formats import Reading


@click.command(cls=SavingCommand, saving="a smaller -n needs less")
@model_argument
@click.argument("input", default="-", metavar="[INPUT|-]")
@click.option(
    "-n", type=click.IntRange(min=1), default=5, show_default=True, help="At most so many training rows."
)
@json_option
@reading_options
@skip_option
@threads_option
def neighbours(
    model: Path, input: str, n: int, as_json: bool, reading: Reading, skip_bad_lines: bool, threads: int
) -> None:
    """Print the training rows that are the most similar to each line of INPUT, one line per line.

    A line of output is ROW<TAB>SIMILARITY, repeated, the most similar first. ROW counts the rows that MODEL
    was trained on from 0. Labels in INPUT are ignored.
    """
    from labeltree.cli.reports import neighbour_json, neighbour_lines
    from labeltree.data.bad_lines import BadLines
    from labeltree.features.reading import stream_rows
    from labeltree.model import load

    loaded = load(model)
    bad_lines = BadLines(skip=skip_bad_lines)
    for rows, _ in stream_rows(loaded.features, loaded.labels, input, reading, bad_lines):
        found = loaded.neighbours(rows, n, threads=threads)
        print_lines(neighbour_json(found) if as_json else neighbour_lines(found))
    report_skipped(bad_lines.skipped, bad_lines.messages)
