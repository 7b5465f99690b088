"""Experiments over data sets: which ones, with which seeds, and what is run for each that is here."""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from benchmarks.datasets import MissingData, both_files

Files = Callable[[str], tuple[Path, Path]]  # training and test file of a data set
Found = TypeVar("Found")


class Defaults(NamedTuple):
    """Comma-separated; those of ``--quick`` are generated."""

    data: str
    quick_data: str
    seeds: str
    quick_seeds: str


def add_set_options(parser: argparse.ArgumentParser, defaults: Defaults, of_seeds: str = "") -> None:
    parser.add_argument(
        "--data", help=f"comma-separated; default: {defaults.data}; with --quick generated ones"
    )
    parser.add_argument(
        "--seeds",
        help=f"{of_seeds}comma-separated; default: {defaults.seeds}; with --quick {defaults.quick_seeds}",
    )


def chosen_sets(options: argparse.Namespace, defaults: Defaults) -> tuple[list[str], list[int]]:
    """The names of the data sets, and the seeds."""
    data, seeds = (defaults.quick_data, defaults.quick_seeds) if options.quick else defaults[::2]
    return (options.data or data).split(","), [int(seed) for seed in (options.seeds or seeds).split(",")]


def run_sets(
    names: list[str],
    generate: Callable[[Path, str], tuple[Path, Path]] | None,
    run: Callable[[str, Files, Path], Found],
) -> dict[str, Found]:
    """``run(name, files, scratch folder)`` for each data set that is here or generated; others are told."""
    found: dict[str, Found] = {}
    with tempfile.TemporaryDirectory(prefix="labeltree-experiments-") as temporary:
        scratch = Path(temporary)
        files = functools.partial(generate, scratch) if generate else both_files
        for name in names:
            try:
                found[name] = run(name, files, scratch)
            except MissingData as error:
                print(error, file=sys.stderr)
    if not found:
        raise SystemExit("no data set, no page")
    return found
