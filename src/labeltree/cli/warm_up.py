"""The command ``labeltree warm-up``: compile every kernel now, for images, services and CI."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from labeltree.errors import ParameterError


@click.command("warm-up")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the machine code in this folder; LABELTREE_KERNELS=DIR makes programs use it.",
)
@click.option(
    "--processes", type=click.IntRange(min=0), default=0, show_default="all CPUs", help="To compile with."
)
def warm_up(folder: Path | None, processes: int) -> None:
    """Compile every kernel now, so that no program has to wait for that later.

    A container that cannot write, or a user without a home, uses what was compiled while its image was built.
    """
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"--to {folder}: cannot be made ({error.strerror}); choose another"
            ) from error
        if not os.access(folder, os.W_OK):
            raise ParameterError(f"--to {folder}: is not writable; choose another")
        folder = folder.resolve()
    from labeltree.training.warming import compile_all
    from labeltree.wording import counted, duration

    click.echo("Compiling every kernel, which takes a minute or two ...", err=True)
    started = time.perf_counter()
    compiled, folders = compile_all(folder, processes)
    took = f" in {duration(time.perf_counter() - started)}" if compiled else ""
    places = " and ".join(sorted(map(str, folders))) or "memory alone: no folder can be written"
    click.echo(f"{counted(len(compiled), 'kernel')} compiled{took}; all are in {places}")
