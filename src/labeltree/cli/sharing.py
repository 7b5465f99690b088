"""The commands ``plan``, ``work`` and ``merge``: training shared out by any scheduler, or by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from labeltree.cli.options import (
    GroupedCommand,
    OutputFile,
    SavingCommand,
    card_option,
    check_output,
    config_options,
    given_parameters,
    memory_option,
    reading_options,
    skip_option,
    threads_option,
)
from labeltree.cli.steps import help_with_compiling, print_lines, report_skipped
from labeltree.config import ask_config
from labeltree.data.files import find_files
from labeltree.data.formats import Reading
from labeltree.storage.card import card_of_options

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class Tasks(click.ParamType):
    """``7``, or ``0-15,20``."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        numbers: list[int] = []
        for part in str(value).split(","):
            match = _RANGE.fullmatch(part.strip())
            if match is None or len(part) > 20:
                self.fail(f"{value!r} is not a number of a task, or a list like 0-15,20", param, ctx)
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last < first + 1_000_000:
                self.fail(f"{part!r} is not a range of tasks: it must rise", param, ctx)
            numbers += range(first, last + 1)
        return numbers


plan_argument = click.argument("plan", type=click.Path(file_okay=False, path_type=Path))


@click.command(cls=GroupedCommand, saving="--max-memory needs less")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="PLAN",
    help="The folder to write, on storage that all machines see.",
)  # fmt: skip
@reading_options
@skip_option
@threads_option
@memory_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors and the number of tasks.")
@config_options
@click.pass_context
def plan(
    context: click.Context,
    data: tuple[str, ...],
    output: Path,
    reading: Reading,
    skip_bad_lines: bool,
    threads: int,
    max_memory: int | None,
    quiet: bool,
    config_file: Path | None,
    preset: str | None,
    **_parameters: Any,
) -> None:
    """Read DATA and build the trees: what is left is tasks, which `labeltree work` does anywhere.

    Prints the number of tasks, which are counted from 0.
    """
    asked = ask_config(given_parameters(context), preset=preset, file=config_file)
    from labeltree.training.driver import Source
    from labeltree.training.means import open_means
    from labeltree.training.progress import ProgressBar
    from labeltree.training.sharing import make_tasks

    source = Source(find_files(data), None, None, None, reading, skip_bad_lines)
    helped = help_with_compiling(asked.config, threads=threads, quiet=quiet)
    with helped, ProgressBar(quiet=quiet) as bar, open_means(threads, output, max_memory) as means:
        n_tasks = make_tasks(source, asked, means, bar)
    print_lines([str(n_tasks)])


@click.command(cls=SavingCommand, saving="--max-memory needs less")
@plan_argument
@click.option("--task", "tasks", type=Tasks(), metavar="N", help="Only this one, or a list like 0-15,20.")
@click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True, help="Tasks at the same time."
)
@memory_option
def work(plan: Path, tasks: list[int] | None, threads: int, max_memory: int | None) -> None:
    """Do tasks of PLAN that are not done yet; all of them, unless --task says which."""
    from labeltree.training.sharing import do_tasks

    do_tasks(plan, tasks, threads=threads, max_memory=max_memory)


@click.command(cls=SavingCommand, saving="--max-memory needs less")
@plan_argument
@click.option("-o", "--output", required=True, type=OutputFile(), metavar="MODEL", help="The file to write.")
@threads_option
@memory_option
@card_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def merge(
    plan: Path, output: Path, threads: int, max_memory: int | None, card: tuple[str, ...], quiet: bool
) -> None:
    """Make a model of PLAN, whose tasks are all done, and write it to MODEL. PLAN stays as it is."""
    check_output(output)
    facts = card_of_options(card)
    from labeltree.training.means import open_means
    from labeltree.training.progress import ProgressBar
    from labeltree.training.sharing import merge as merge_tasks
    from labeltree.training.sharing import open_plan

    open_plan(plan)  # before a folder is made for it
    with ProgressBar(quiet=quiet) as bar, open_means(threads, plan, max_memory) as means:
        model = merge_tasks(plan, means, bar, facts)
        model.save(output)
    if not quiet:
        report_skipped(model.skipped_lines, model.skipped_messages)
