"""The command ``labeltree serve``: models as a web service."""

from __future__ import annotations

from pathlib import Path

import click

from labeltree.errors import MissingPackageError, ParameterError


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="[NAME=]MODEL...")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0: of all networks."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free.")
@click.option(
    "--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes that answer."
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Answer only those who send one of the tokens of FILE, one per line.",
)
@click.option(
    "--corrections",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Append what users of the page say the labels are to FILE, as lines to train on.",
)
@click.option(
    "--scorecard",
    "scorecards",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Show on the page how good a model is: a file of labeltree test --scorecard.",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not log requests.")
def serve(
    models: tuple[str, ...],
    host: str,
    port: int,
    workers: int,
    token_file: Path | None,
    corrections: Path | None,
    scorecards: tuple[str, ...],
    quiet: bool,
) -> None:
    """Answer HTTP requests with MODELs, under the NAMEs given or those of their files.

    A model is loaded anew when its file is replaced, or on SIGHUP. SIGTERM lets requests be answered first.
    """
    named = named_models(models)
    tested = named_scorecards(scorecards, named)
    try:
        from labeltree.serve.app import create_app
        from labeltree.serve.memory import keep_little
        from labeltree.serve.running import is_loopback, listen, run
        from labeltree.serve.tokens import Tokens, read_tokens
        from labeltree.serve.workers import check_workers, run_workers
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"labeltree serve needs {error.name}: pip install 'labeltree[serve]'"
        ) from error
    check_workers(workers)
    keep_little()
    tokens = Tokens() if token_file is None else read_tokens(token_file)
    app = create_app(named, tokens=tokens, corrections=corrections, scorecards=tested)
    sockets = listen(host, port, workers)
    try:
        _log_to_standard_error(quiet=quiet)
        at = f"[{host}]" if ":" in host else host
        told = ", ".join(f"{served.name} ({served.version})" for served in app.state.service.registry)
        by = "" if workers == 1 else f" with {workers} workers"
        click.echo(f"Serving {told} on http://{at}:{sockets[0].getsockname()[1]}{by}", err=True)
        if not (tokens or is_loopback(host)):
            click.echo(f"Everybody who reaches {host} may ask: --token-file limits that.", err=True)
        if workers == 1:
            run(app, sockets[0])
        else:
            run_workers(app, sockets)
    finally:
        for each in sockets:
            each.close()


def named_models(given: tuple[str, ...]) -> dict[str, Path]:
    """``NAME=MODEL`` or ``MODEL``, whose name is that of the file without its ending."""
    named: dict[str, Path] = {}
    for each in given:
        name, separator, path = each.partition("=")
        if not separator or not name or "/" in name:  # a path may have a = too
            name, path = Path(each).name.partition(".")[0], each
        if name in named:
            raise ParameterError(f"two models are called {name}; give names: NAME=MODEL")
        named[name] = Path(path)
    return named


def named_scorecards(given: tuple[str, ...], models: dict[str, Path]) -> dict[str, Path]:
    """``NAME=FILE``, or ``FILE`` where there is one model."""
    named: dict[str, Path] = {}
    for each in given:
        name, separator, path = each.partition("=")
        if name not in models or not separator:
            if separator and not Path(each).exists():  # a file's name may have a = too
                raise ParameterError(
                    f"--scorecard {each}: there is no model {name}, and no such file; there are "
                    f"{', '.join(models)}"
                )
            name, path = next(iter(models)), each
            if len(models) > 1:
                told = ", ".join(models)
                raise ParameterError(f"--scorecard {each}: of which model? Give NAME=FILE with one of {told}")
        named[name] = Path(path)
    return named


def _log_to_standard_error(*, quiet: bool) -> None:
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("labeltree.serve")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    # Of uvicorn only faults: what clients send that is no HTTP would fill the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    if quiet:
        logging.getLogger("labeltree.serve.access").setLevel(logging.WARNING)
