"""The command ``labeltree explain``: why texts get their labels."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labeltree.cli.options import (
    OutputFile,
    SavingCommand,
    check_output,
    json_option,
    model_argument,
    reading_options,
    refuse_beside,
    rule_option,
    skip_option,
)
from labeltree.cli.steps import print_lines, report_skipped
from labeltree.data.formats import Reading
from labeltree.query import OF_MODEL

if TYPE_CHECKING:
    from labeltree.data.bad_lines import BadLines
    from labeltree.explain.result import Explanation
    from labeltree.model import Model


@click.command(cls=SavingCommand, saving="a smaller -k, or INPUT in several files, needs less")
@model_argument
@click.argument("input", default="-", metavar="[INPUT|-]")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="Explain this label; repeatable.")
@click.option(
    "-k",
    type=click.IntRange(min=1),
    show_default="3, or fewer by a rule",
    help="Or so many of the best labels.",
)
@click.option(
    "--deletions",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also the N words that a label hangs on, and its probability without them.",
)
@rule_option
@json_option
@click.option("--html", type=OutputFile(), metavar="FILE", help="Write a page with the texts highlighted.")
@reading_options
@skip_option
def explain(
    model: Path,
    input: str,
    labels: tuple[str, ...],
    k: int | None,
    deletions: int,
    rule: str,
    as_json: bool,
    html: Path | None,
    reading: Reading,
    skip_bad_lines: bool,
) -> None:
    """Say why each line of INPUT gets its labels: the share of every word, exactly.

    Shares sum to the change of a label's log-probability from that of an empty document. Labels in INPUT are
    ignored.
    """
    if html is not None:
        refuse_beside("--html, which writes a file", {"--json": as_json})
        check_output(html, inputs=(model, input))
    if labels:
        refuse_beside("--label", {"-k": k, f"--rule {rule}": rule != OF_MODEL})
    from labeltree.data.bad_lines import BadLines
    from labeltree.explain.terminal import explanation_lines
    from labeltree.model import load

    loaded, bad_lines = load(model), BadLines(skip=skip_bad_lines)
    how: dict[str, Any] = dict(label=labels or None, k=k, deletions=deletions, rule=rule)
    explained = _explanations(loaded, input, how, reading, bad_lines)
    if html is not None:
        _write_page(html, explained)
    elif as_json:
        from labeltree.cli.reports import json_text

        for explanation in explained:
            print_lines([json_text(explanation.to_dict())])
    else:
        colour = wants_colour()
        for explanation in explained:
            print_lines([*explanation_lines(explanation, colour=colour), ""])
    report_skipped(bad_lines.skipped, bad_lines.messages)


def _explanations(
    model: Model, input: str, how: Mapping[str, Any], reading: Reading, bad_lines: BadLines
) -> Iterator[Explanation]:
    """Of each line; labels that the model does not know are an error before any is read."""
    from labeltree.features.reading import stream_single

    if how["label"]:
        model.check_labels(how["label"])
    for X in stream_single(model.features, model.labels, input, reading, bad_lines):
        yield model.explain(X, **how)


def _write_page(path: Path, explanations: Iterator[Explanation]) -> None:
    from labeltree.explain.html import page_of
    from labeltree.storage.files import write_whole

    found = list(explanations)
    write_whole(path, [page_of(found).encode("utf-8", "replace")])
    from labeltree.wording import counted

    click.echo(f"Page of {counted(len(found), 'document')} written to {path}.", err=True)


def wants_colour() -> bool:
    """Whether standard output is a terminal that shows colours, and nobody asked for none (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
