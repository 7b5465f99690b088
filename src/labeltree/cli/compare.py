"""The command ``labeltree compare-search``."""

from __future__ import annotations

from pathlib import Path

import click

from labeltree.cli.options import (
    OutputFile,
    Ranks,
    check_output,
    format_option,
    json_option,
    model_argument,
    normalize_option,
    skip_option,
)
from labeltree.cli.steps import load_with_data, print_lines

BEAMS = "1,2,5,10,20,50"


@click.command("compare-search")
@model_argument
@click.argument("data")
@click.option("--beam", "beams", type=Ranks(), default=BEAMS, show_default=True, help="Beams to compare.")
@click.option("-k", "ranks", type=Ranks(), default="1,3,5", show_default=True, help="As in `test`.")
@json_option
@click.option("--missed", type=OutputFile(), metavar="FILE.tsv", help="Write each label that a beam misses.")
@normalize_option
@format_option
@skip_option
def compare_search(
    model: Path,
    data: str,
    beams: tuple[int, ...],
    ranks: tuple[int, ...],
    as_json: bool,
    missed: Path | None,
    normalize: bool,
    fmt: str,
    skip_bad_lines: bool,
) -> None:
    """Compare beam search with exact search on DATA: what it misses, precision, and CPU time per row."""
    from labeltree.cli.comparing import compare_searches, comparison_lines, write_missed
    from labeltree.cli.reports import json_text

    if missed is not None:
        check_output(missed, inputs=(model, data))
    loaded, rows = load_with_data(model, data, fmt, skip_bad_lines=skip_bad_lines)
    counts = rows.counts("compare")
    print_lines(counts.notices(rows.name), err=True)
    found = list(compare_searches(loaded, rows.rows, rows.labels, ranks, beams, normalize=normalize))
    if missed is not None:
        write_missed(missed, loaded, found)
    if as_json:
        facts = {"examples": counts.rows, "k": min(max(ranks), loaded.n_labels)}
        print_lines([json_text({**facts, "searches": [comparison.facts() for comparison in found]})])
    else:
        print_lines(comparison_lines(found))
