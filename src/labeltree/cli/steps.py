"""Steps that commands share: reading a model with its data, and printing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labeltree.errors import ParameterError

if TYPE_CHECKING:
    from labeltree.config import Config
    from labeltree.data.formats import Reading
    from labeltree.decisions.tuning import Tuned
    from labeltree.features.reading import DataSet
    from labeltree.model import Model
    from labeltree.query import Query


def load_with_data(
    model: Path, data: str, reading: Reading, *, skip_bad_lines: bool
) -> tuple[Model, DataSet]:
    """A model, and a data file in its features and labels."""
    from labeltree.features.reading import read_data_set
    from labeltree.model import load

    loaded = load(model)
    rows = read_data_set(loaded.features, loaded.labels, data, reading, skip_bad_lines=skip_bad_lines)
    report_skipped(rows.bad_lines.skipped, rows.bad_lines.messages)
    return loaded, rows


def inputs_of(model: Path, data: str, only: Path | None, without: Path | None) -> tuple[str | Path, ...]:
    """All files that are read. Standard input is one of them at most, as it can be read only once."""
    named = {"the data": data, "--only": only, "--without": without}
    given = {name: file for name, file in named.items() if file is not None}
    from_pipe = [name for name, file in given.items() if str(file) == "-"]
    if len(from_pipe) > 1:
        raise ParameterError(
            f"standard input (-) is given for {' and '.join(from_pipe)}, but can be read only once; "
            "give the name of a file"
        )
    return (model, *given.values())


def with_mask(model: Model, query: Query, only: Path | None, without: Path | None) -> Query:
    """For the labels of a file only, and without those of another."""
    if only is None and without is None:
        return query
    from labeltree.experts.masks import LabelMask, mask_of_files

    mask: LabelMask = mask_of_files(model.labels, only, without)
    return query._replace(mask=mask)


def print_lines(lines: Sequence[str], *, err: bool = False) -> None:
    """Write UTF-8 whatever the locale, and at once: whoever reads the pipe may be waiting."""
    click.echo(_encoded(lines), nl=False, err=err)


def put_lines(parts: Iterable[Sequence[str]], output: Path | None) -> None:
    """Print lines as they come, or make a file of them all."""
    if output is None:
        for lines in parts:
            print_lines(lines)
        return
    from labeltree.storage.files import write_whole

    write_whole(output, map(_encoded, parts))


def _encoded(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def report_skipped(n_lines: int, messages: Sequence[str]) -> None:
    if n_lines:
        from labeltree.data.bad_lines import skipped_lines

        print_lines(skipped_lines(n_lines, messages), err=True)


def print_tuned(tuned: Tuned, *, err: bool = False) -> None:
    """What a rule gains and costs, and what to know before it is used; that never among the results."""
    print_lines(tuned.lines(), err=err)
    print_lines(tuned.notices(), err=True)


@contextmanager
def cluster_of(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """A client of the cluster that options ask for; None where they ask for none."""
    if workers is None and scheduler is None:
        yield None
        return
    if workers is not None and scheduler is not None:
        raise ParameterError("--workers and --scheduler exclude each other; give one")
    from labeltree.distributed.clusters import open_client

    with open_client(workers or 0, scheduler) as client:
        yield client


@contextmanager
def help_with_compiling(config: Config, *, threads: int, quiet: bool = False) -> Iterator[None]:
    """Where training must compile kernels, say so, and have another process help if there is a CPU for it."""
    from labeltree.kernels import cache
    from labeltree.parallel import available_threads
    from labeltree.training.warming import collect_seldom, jobs_ahead, start_ahead

    def begin() -> None:
        if not quiet:
            cache.announce(everywhere=True)
        collect_seldom()
        if min(threads or 2, available_threads()) > 1 and cache.can_share():
            start_ahead(jobs_ahead(config))

    before, cache.when_compiling = cache.when_compiling, begin
    try:
        yield
    finally:
        cache.when_compiling = before
