"""The command ``labeltree tune``: a rule for the measure that one cares about, kept in the model."""

from __future__ import annotations

from pathlib import Path

import click

from labeltree.cli.options import (
    OutputFile,
    SavingCommand,
    check_output,
    model_argument,
    reading_options,
    skip_option,
    threads_option,
)
from labeltree.cli.steps import load_with_data, print_lines, print_tuned
from labeltree.data.formats import Reading


@click.command(cls=SavingCommand, saving="fewer rows of DATA need less")
@model_argument
@click.argument("data")
@click.option(
    "--for", "measure", required=True, metavar="MEASURE", help="Like macro-f1, psp@5, precision>=0.9."
)
@click.option("-k", type=click.IntRange(min=1), help="Labels of a row, where MEASURE does not say it.")
@click.option("-o", "--output", type=OutputFile(), required=True, metavar="MODEL", help="The file to write.")
@reading_options
@skip_option
@threads_option
def tune(
    model: Path,
    data: str,
    measure: str,
    k: int | None,
    output: Path,
    reading: Reading,
    skip_bad_lines: bool,
    threads: int,
) -> None:
    """Find the rule that is best for MEASURE on DATA, and write MODEL with it.

    DATA are rows that MODEL was not trained on. What the rule gains and costs is printed, for rows that it
    was not fitted to.
    """
    from labeltree.decisions.goals import parse_goal
    from labeltree.decisions.seen import seen_notices
    from labeltree.decisions.tuning import tune_rule

    goal = parse_goal(measure, k)  # before the model is read
    check_output(output, inputs=(model, data))
    loaded, rows = load_with_data(model, data, reading, skip_bad_lines=skip_bad_lines)
    print_lines(rows.counts("tune").notices(rows.name), err=True)
    print_lines(seen_notices(loaded, rows.rows, threads), err=True)
    tuned = tune_rule(loaded, rows, goal, threads)
    loaded.rule = tuned.rule
    loaded.save(output)
    print_tuned(tuned)
    print_lines([f"Model written to {output}."], err=True)
