"""``python -m fuzz TARGET``; see the package's docstring."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import click

NAMES = ("model", "fasttext", "weighted", "xmlc", "jsonl", "annif", "auto", "tree", "config", "gzip", "xz")
_SECONDS = 60  # of one execution: the first one may compile kernels


@click.command()
@click.argument("name", metavar="TARGET", type=click.Choice([*NAMES, "all"]))
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--runs", type=click.IntRange(min=1), default=3000, show_default=True, help="Executions.")
@click.option("--seed", type=click.IntRange(1, 2**31 - 1), default=1, show_default=True)
@click.option("--compiled", is_flag=True, help="Readers with compiled kernels: quicker, but less is seen.")
@click.option("--bounds-check", is_flag=True, help="Compiled kernels that check every index.")
def main(
    name: str, files: tuple[Path, ...], runs: int, seed: int, compiled: bool, bounds_check: bool
) -> None:
    """Fuzz TARGET, or run it on FILES that were found before."""
    if name == "all":
        _fuzz_all(sys.argv[1:])
        return
    if importlib.util.find_spec("atheris") is None:
        raise click.UsageError('atheris is not installed: pip install ".[fuzz]"')
    as_python = name != "model" and not (compiled or bounds_check)
    if bounds_check:
        os.environ["NUMBA_BOUNDSCHECK"] = "1"  # read when Numba is imported
    if as_python:
        _kernels_as_python()
    target = _import_target(name, as_python)
    for file in files:
        target.check(file.read_bytes())
    if not files:
        _fuzz(target, runs, seed)


def _fuzz_all(arguments: list[str]) -> None:
    """Each in a process of its own: a fuzzer ends its process."""
    for name in NAMES:
        click.echo(f"== {name}", err=True)
        command = [sys.executable, "-m", "fuzz", *(name if word == "all" else word for word in arguments)]
        code = subprocess.run(command, check=False).returncode
        if code:
            sys.exit(code)


def _kernels_as_python() -> None:
    """Let kernels stay the Python functions that they are written as."""
    from labeltree.kernels import atomic, jit

    jit.kernel = jit.helper = jit.inlined = lambda function: function
    atomic.prefetch = lambda array, index: None  # which Python has no word for
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # wrapping is meant to


def _import_target(name: str, as_python: bool) -> Any:
    import atheris

    import labeltree

    # Numba cannot compile what is instrumented.
    folder = Path(labeltree.__file__).parent
    kernels = [path.relative_to(folder.parent).with_suffix("") for path in (folder / "kernels").rglob("*.py")]
    exclude = [] if as_python else [".".join(path.parts) for path in kernels]
    with (
        contextlib.redirect_stderr(io.StringIO()),  # a line per module
        atheris.instrument_imports(include=["labeltree", "tomllib"], exclude=exclude),
    ):
        if name == "model":
            import labeltree.training.driver
            from fuzz.models import MODEL

            return MODEL
        from fuzz.readers import READERS

        return READERS[name]


def _fuzz(target: Any, runs: int, seed: int) -> None:
    import atheris

    with tempfile.TemporaryDirectory(prefix="labeltree-fuzz-") as folder:
        corpus, words = Path(folder) / "corpus", Path(folder) / "words"
        corpus.mkdir()
        for number, content in enumerate(target.seeds()):
            target.check(content)  # also compiles what is needed before any execution is timed
            (corpus / f"seed{number}").write_bytes(content)
        options = [
            f"-runs={runs}", f"-seed={seed}", f"-max_len={target.longest}", f"-timeout={_SECONDS}",
            "-artifact_prefix=fuzz-", "-print_final_stats=1",
        ]  # fmt: skip
        if target.words:
            escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words)
            words.write_text("".join(f'"{word}"\n' for word in escaped))
            options.append(f"-dict={words}")
        how = {} if target.mutate is None else {"custom_mutator": target.mutate}
        atheris.Setup([sys.argv[0], *options, str(corpus)], target.check, **how)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
