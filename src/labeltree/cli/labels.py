"""The command ``labeltree labels``: what a model can answer with."""

from __future__ import annotations

from pathlib import Path

import click

from labeltree.cli.options import json_option, model_argument
from labeltree.cli.steps import print_lines

_LINES_AT_A_TIME = 10_000


@click.command()
@model_argument
@click.option("--search", metavar="TEXT", help="Only labels whose names have this part, in any case.")
@json_option
def labels(model: Path, search: str | None, as_json: bool) -> None:
    """List the labels of MODEL, those of most training rows first.

    A line of output is LABEL<TAB>ROWS, the training rows that have it. With --search the label of this very
    name comes first, then those that begin with the text, then the others.
    """
    from labeltree.cli.reports import label_json, label_lines
    from labeltree.model import load

    loaded = load(model)
    found = loaded.find_labels(search or "")
    lines = label_json if as_json else label_lines
    for start in range(0, len(found), _LINES_AT_A_TIME):
        print_lines(lines(found[start : start + _LINES_AT_A_TIME]))
    if not found:
        click.echo(f"No label has {search!r} in its name.", err=True)
