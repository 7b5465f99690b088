"""The command ``labeltree check``: what is remarkable about data, before anything is trained on it."""

from __future__ import annotations

import click

from labeltree.cli.options import SavingCommand, json_option, reading_options
from labeltree.cli.steps import print_lines
from labeltree.config import Config
from labeltree.data.formats import Reading


@click.command(cls=SavingCommand, saving="DATA in several files needs less")
@click.argument("data")
@click.argument("other", required=False, metavar="[TEST]")
@json_option
@click.option(
    "--label-prefix",
    default=Config.label_prefix,
    show_default=True,
    help="What a label starts with in fastText lines.",
)
@reading_options
def check(data: str, other: str | None, as_json: bool, label_prefix: str, reading: Reading) -> None:
    """Count rows and labels of DATA, and say what may be wrong with it, before training.

    With a second file, such as the one to test with, also what the two have in common.
    """
    from labeltree.checking.collecting import collect
    from labeltree.checking.findings import check_file, check_pair
    from labeltree.cli.reports import check_lines, json_text

    collected = [collect(path, reading, label_prefix) for path in (data, other) if path is not None]
    reports = [check_file(each, to_train=each is collected[0]) for each in collected]
    if len(collected) == 2:
        reports.append(check_pair(*collected))
    if as_json:
        keys = ("data", "test", "both")
        facts = {
            key: {"name": name, **numbers, "findings": [finding.facts() for finding in findings]}
            for key, (name, numbers, findings) in zip(keys, reports, strict=False)
        }
        print_lines([json_text(facts)])
    else:
        print_lines([line for report in reports for line in check_lines(report)])
