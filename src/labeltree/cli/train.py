"""The command ``labeltree train``: data in, a model file out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import click

from labeltree.cli.options import (
    GroupedCommand,
    OutputFile,
    card_option,
    check_output,
    config_options,
    given_parameters,
    input_files,
    memory_option,
    reading_options,
    refuse_beside,
    skip_option,
    threads_option,
    work_dir_option,
)
from labeltree.cli.steps import cluster_of, help_with_compiling, print_lines, print_tuned, report_skipped
from labeltree.config import AskedConfig, ask_config
from labeltree.data.files import Files, find_files
from labeltree.data.formats import Reading
from labeltree.errors import ParameterError
from labeltree.storage.card import card_of_options


class _Means(NamedTuple):
    """Options beside those of data and config: where the work is done, and what for."""

    work_dir: Path | None
    max_memory: int | None
    workers: int | None
    scheduler: str | None
    tune_for: str | None

    @property
    def is_shared(self) -> bool:
        return bool(self.workers or self.scheduler)

    def work_dir_for(self, output: Path) -> Path | None:
        """As asked for, or beside the model if rows and finished work must be kept somewhere."""
        if self.work_dir is None and (self.max_memory or self.is_shared):
            return output.with_name(f"{output.name}.work")
        if self.work_dir is not None and self.work_dir.resolve() == output.resolve():
            raise ParameterError(f"--work-dir {self.work_dir}: is --output too; give a folder of its own")
        return self.work_dir


@click.command(
    cls=GroupedCommand,
    saving="`labeltree train --dry-run` estimates what is needed, and fewer --trees, a larger --prune or "
    "--min-count, or for dense nodes a smaller --dim or --batch-size, needs less",
)
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--output", type=OutputFile(), metavar="MODEL", help="The file to write.")
@reading_options
@skip_option
@threads_option
@card_option
@work_dir_option
@memory_option
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Train on a Dask cluster of N local processes."
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Or on the cluster of this scheduler, like tcp://host:8786."
)
@click.option(
    "--tune-for", metavar="MEASURE", help="Also tune a rule, like labeltree tune, on rows held out at first."
)
@click.option("--dry-run", is_flag=True, help="Only estimate memory and model size; without --output.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line per stage and epoch instead of the bar.")
@config_options
@click.pass_context
def train(
    context: click.Context,
    data: tuple[str, ...],
    output: Path | None,
    reading: Reading,
    skip_bad_lines: bool,
    threads: int,
    card: tuple[str, ...],
    dry_run: bool,
    quiet: bool,
    verbose: bool,
    config_file: Path | None,
    preset: str | None,
    **others: Any,
) -> None:
    """Train a model on DATA, files with labels, and write it to MODEL.

    DATA are files, folders or patterns such as 'part-*.csv'; "-" is standard input.

    Parameters come from the defaults, then --preset, then --config, then the options given.
    """
    if quiet and verbose:
        raise click.UsageError("-q / --quiet and -v / --verbose exclude each other; give one.", context)
    means = _Means(*(others[name] for name in _Means._fields))
    if dry_run:
        beside: dict[str, Any] = {"--output": output, "--card": card, "--quiet": quiet, "--verbose": verbose}
        beside |= {f"--{name.replace('_', '-')}": value for name, value in means._asdict().items()}
        refuse_beside("--dry-run, which only estimates", beside)
    asked = ask_config(given_parameters(context), preset=preset, file=config_file)
    facts = card_of_options(card)
    how: dict[str, Any] = dict(config=asked, skip_bad_lines=skip_bad_lines, threads=threads)
    how |= reading._asdict()
    files = find_files(data)
    if files.notices and not quiet:
        print_lines(files.notices, err=True)
    if dry_run:
        _print_estimate(files, how)
        return
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output': the file to write the model to.", context)
    check_output(output, inputs=input_files(files, asked.config, config_file))
    _train(files, output, asked, how | {"card": facts}, means, quiet=quiet, verbose=verbose)


def _print_estimate(files: Files, how: dict[str, Any]) -> None:
    from labeltree.cli.reports import estimate_lines
    from labeltree.training.driver import estimate

    print_lines(estimate_lines(estimate(files, **how)))


def _train(
    files: Files,
    output: Path,
    asked: AskedConfig,
    how: dict[str, Any],
    means: _Means,
    *,
    quiet: bool,
    verbose: bool,
) -> None:
    """Train, write the model, and say what it is."""
    started = time.perf_counter()
    from labeltree.cli.reports import training_lines
    from labeltree.training import driver
    from labeltree.training.kept_rows import remove_work
    from labeltree.training.progress import ProgressBar

    work_dir = means.work_dir_for(output)
    if means.is_shared:
        driver.check_can_share(asked.config)  # before a cluster is started
    where: dict[str, Any] = dict(work_dir=work_dir, max_memory=means.max_memory)
    cluster = cluster_of(means.workers, means.scheduler)
    helped = help_with_compiling(asked.config, threads=how["threads"], quiet=quiet)
    with cluster as client, helped, ProgressBar(quiet=quiet, verbose=verbose) as bar:
        model = driver.train(files, **how, **where, client=client, callback=bar, tune_for=means.tune_for)
    model.save(output)
    if work_dir is not None:
        remove_work(work_dir)
    if quiet:
        return
    report_skipped(model.skipped_lines, model.skipped_messages)
    print_lines(training_lines(model, output, time.perf_counter() - started, bar.losses), err=True)
    if model.tuned is not None:
        print_tuned(model.tuned, err=True)
