"""The command line: a function per command, and ``main``.

The commands only arrange: what they do is in the modules they import when they run, so that ``--help`` stays
instant. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import click

    from labeltree import __version__
    from labeltree.cli.check import check
    from labeltree.cli.compare import compare_search
    from labeltree.cli.explain import explain
    from labeltree.cli.labels import labels
    from labeltree.cli.neighbours import neighbours
    from labeltree.cli.options import (
        OutputFile,
        Ranks,
        SavingCommand,
        check_output,
        json_option,
        mask_options,
        model_argument,
        normalize_option,
        reading_options,
        refuse_beside,
        rule_option,
        search_options,
        skip_option,
        threads_option,
        unknown_option,
    )
    from labeltree.cli.serve import serve
    from labeltree.cli.sharing import merge, plan, work
    from labeltree.cli.signals import Terminated, orderly_end
    from labeltree.cli.steps import (
        help_with_compiling,
        inputs_of,
        load_with_data,
        print_lines,
        put_lines,
        report_skipped,
        with_mask,
    )
    from labeltree.cli.train import train
    from labeltree.cli.tune import tune
    from labeltree.cli.warm_up import warm_up
    from labeltree.config import Config
    from labeltree.data.formats import Reading
    from labeltree.errors import LabelTreeError, ParameterError
    from labeltree.query import SET_THRESHOLD, USUAL_K, make_query
    from labeltree.wording import near_names
except KeyboardInterrupt:  # Ctrl-C right after the start: `main` is not there yet to say so
    sys.stderr.write("Interrupted.\n")
    raise SystemExit(130) from None

USAGE = 2  # as click's own
INTERRUPTED = 130  # 128 + SIGINT, as shells expect


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="labeltree", message="%(prog)s %(version)s")
def cli() -> None:
    """Tag texts with the few labels that fit, out of millions, with honest probabilities."""


@cli.command(cls=SavingCommand, saving="a smaller -k, or DATA in several files, needs less")
@model_argument
@click.argument("data")
@click.option(
    "-k", "ranks", type=Ranks(), default="1,3,5", show_default=True, help="Score the first k labels."
)
@json_option
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    show_default=f"{SET_THRESHOLD}, or what a rule says",
    help="Also score, as sets, all labels at least this probable.",
)
@click.option(
    "--per-label",
    type=OutputFile(),
    metavar="FILE.tsv",
    help="Write a row per label, those that miss the most rows first, and print advice.",
)
@click.option(
    "--scorecard",
    "scorecard_file",
    type=OutputFile(),
    metavar="FILE.json",
    help="Write what the page of labeltree serve shows: measures, calibration, best and worst labels.",
)
@normalize_option
@search_options
@mask_options
@rule_option
@reading_options
@skip_option
@threads_option
def test(
    model: Path,
    data: str,
    ranks: tuple[int, ...],
    as_json: bool,
    threshold: float | None,
    per_label: Path | None,
    scorecard_file: Path | None,
    normalize: bool,
    search: str,
    beam: int | None,
    only: Path | None,
    without: Path | None,
    rule: str,
    reading: Reading,
    skip_bad_lines: bool,
    threads: int,
) -> None:
    """Score MODEL on DATA: how good the first k labels are, by precision and other measures."""
    query = make_query(ranks[-1], normalize=normalize, search=search, beam=beam)  # before the model is read
    from labeltree.cli.per_label import write_per_label
    from labeltree.cli.reports import json_text, write_scorecard
    from labeltree.metrics.testing import measure

    inputs = inputs_of(model, data, only, without)
    for written in (per_label, scorecard_file):
        if written is not None:
            check_output(written, inputs=inputs)
    loaded, rows = load_with_data(model, data, reading, skip_bad_lines=skip_bad_lines)
    query = loaded.ruled(with_mask(loaded, query, only, without), rule)
    measures = measure(loaded, rows, ranks, query, threads, threshold)
    print_lines(measures.notices, err=True)
    if per_label is not None:
        print_lines(write_per_label(per_label, loaded, measures, data, reading), err=True)
    if scorecard_file is not None:
        write_scorecard(scorecard_file, loaded, measures)
    print_lines([json_text(measures)] if as_json else measures.lines())


@cli.command(cls=SavingCommand, saving="a smaller -k or a larger --threshold needs less")
@model_argument
@click.argument("input", default="-", metavar="[INPUT|-]")
@click.option(
    "-k",
    type=click.IntRange(min=0),
    show_default="5, or what a rule says",
    help="At most so many labels; 0: all above --threshold, or as many as a rule says.",
)
@click.option(
    "--threshold", type=click.FloatRange(0, 1), default=0.0, help="Only labels at least this probable."
)
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    metavar="FILE",
    help="Write to a file, all or nothing; named .parquet: a table of row, labels and probabilities.",
)
@unknown_option
@json_option
@normalize_option
@search_options
@mask_options
@rule_option
@reading_options
@skip_option
@threads_option
def predict(
    model: Path,
    input: str,
    k: int | None,
    threshold: float,
    output: Path | None,
    if_unknown: str,
    as_json: bool,
    normalize: bool,
    search: str,
    beam: int | None,
    only: Path | None,
    without: Path | None,
    rule: str,
    reading: Reading,
    skip_bad_lines: bool,
    threads: int,
) -> None:
    """Print the most probable labels of each line of INPUT, one line per line, or write them to FILE.

    A line of output is LABEL<TAB>PROBABILITY, repeated, the most probable first or in the order of a rule.
    Labels in INPUT are ignored.
    """
    asked = USUAL_K if k is None else k
    query = make_query(asked, threshold, normalize, search, beam, if_unknown)  # before the model is read
    from labeltree.cli.reports import prediction_json, prediction_lines
    from labeltree.data.bad_lines import BadLines
    from labeltree.data.predictions import is_table, write_predictions
    from labeltree.features.reading import stream_rows
    from labeltree.model import load

    inputs = inputs_of(model, input, only, without)
    if output is not None:
        check_output(output, inputs=inputs)
    table = output if output is not None and is_table(output) else None
    if table is not None:
        refuse_beside(f"--output {table}, which is a table", {"--json": as_json})
        if skip_bad_lines:
            raise ParameterError(
                f"--skip-bad-lines is not for --output {table}: the table numbers the rows, and lines that "
                "are left out would have no number; repair them"
            )
    loaded, bad_lines = load(model), BadLines(skip=skip_bad_lines)
    query = loaded.ruled(with_mask(loaded, query, only, without), rule, is_usual=k is None)
    parts = (rows for rows, _ in stream_rows(loaded.features, loaded.labels, input, reading, bad_lines))
    found = ((rows, *loaded.answer(rows, query, threads)) for rows in parts)
    if table is not None:
        write_predictions(table, (answers for _, answers, _ in found))
    elif as_json:
        put_lines((prediction_json(each, loaded.knows(rows), exact) for rows, each, exact in found), output)
    else:
        put_lines((prediction_lines(answers) for _, answers, _ in found), output)
    report_skipped(bad_lines.skipped, bad_lines.messages)


@cli.command(cls=SavingCommand, saving="DATA in several files needs less")
@model_argument
@click.argument("data")
@json_option
@normalize_option
@reading_options
@skip_option
@threads_option
def prob(
    model: Path,
    data: str,
    as_json: bool,
    normalize: bool,
    reading: Reading,
    skip_bad_lines: bool,
    threads: int,
) -> None:
    """Print the probability of each label that DATA gives to a row, in the form of `predict`."""
    from labeltree.cli.reports import given_labels, prediction_json, prediction_lines
    from labeltree.wording import counted

    loaded, rows = load_with_data(model, data, reading, skip_bad_lines=skip_bad_lines)
    probabilities = loaded.probability_rows(rows.rows, rows.labels, normalize=normalize, threads=threads)
    answers, n_unknown = given_labels(rows.labels, probabilities, loaded)
    print_lines(prediction_json(answers) if as_json else prediction_lines(answers))
    if n_unknown:
        click.echo(f"Left out {counted(n_unknown, 'label')} of {data}: unknown to the model.", err=True)


@cli.command()
@model_argument
@json_option
@click.option(
    "--tree", "tree_file", type=OutputFile(), metavar="FILE", help="Only write the tree(s) to FILE."
)
def inspect(model: Path, as_json: bool, tree_file: Path | None) -> None:
    """Show what MODEL is: its card, parameters, sizes, and the shape of its trees."""
    if tree_file is not None:
        refuse_beside("--tree, which only writes the tree", {"--json": as_json})
    from labeltree.cli.reports import inspect_lines, json_text, tree_files
    from labeltree.errors import DataError
    from labeltree.model import load
    from labeltree.trees.file import write_tree

    loaded = load(model)
    if tree_file is not None:
        if not loaded.label_trees:
            raise DataError(f"{model}: there is no tree of labels to write; it was trained with --trees 0")
        outputs = tree_files(tree_file, loaded.label_trees)
        for path, _ in outputs:
            check_output(path, inputs=(model,))
        for path, tree in outputs:
            write_tree(path, tree, loaded.label_names)
            click.echo(f"Tree written to {path}.", err=True)
        return
    facts = {"file": str(model), "file_bytes": model.stat().st_size, **loaded.inspect()}
    print_lines([json_text(facts)] if as_json else inspect_lines(facts))


@cli.command(cls=SavingCommand, saving="fewer --documents need less")
@click.option("-o", "--output", type=OutputFile(), metavar="MODEL", help="Keep the model in this file.")
@click.option(
    "--documents", type=click.IntRange(min=100), default=12_000, show_default=True, help="At most so many."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Which documents are taken."
)
@threads_option
def demo(output: Path | None, documents: int, seed: int, threads: int) -> None:
    """Train and test on the docstrings of the installed Python libraries: no download, about a minute."""
    if output is not None:
        check_output(output)
    from labeltree.cli.demo import run_demo
    from labeltree.training.progress import ProgressBar

    how: dict[str, Any] = dict(output=output, max_documents=documents, seed=seed, threads=threads)
    with help_with_compiling(Config(), threads=threads):
        run_demo(click.echo, bar=ProgressBar(), **how)


cli.add_command(check)
cli.add_command(compare_search)
cli.add_command(explain)
cli.add_command(labels)
cli.add_command(merge)
cli.add_command(neighbours)
cli.add_command(plan)
cli.add_command(serve)
cli.add_command(train)
cli.add_command(tune)
cli.add_command(warm_up)
cli.add_command(work)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (error), 2 (usage), or 128 + a signal's number."""
    try:
        with orderly_end():
            code = cli.main(arguments, prog_name="labeltree", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        _suggest_near(error)
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("Interrupted.", INTERRUPTED)
    except Terminated as error:
        return _fail("Terminated.", 128 + error.number)
    except LabelTreeError as error:
        return _fail(f"Error: {error}", USAGE if isinstance(error, ParameterError) else 1)
    except MemoryError:
        return _fail(f"Error: not enough memory{_saving(sys.argv[1:] if arguments is None else arguments)}")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"Error: {place}{error.strerror or error}")


def _suggest_near(error: click.UsageError) -> None:
    """Of what click would suggest for a wrong option or command, leave what is near."""
    wrong = getattr(error, "option_name", None) or getattr(error, "command_name", None)
    if wrong and getattr(error, "possibilities", None):
        vars(error)["possibilities"] = near_names(wrong, vars(error)["possibilities"])


def _saving(arguments: Sequence[str]) -> str:
    """What the command that was called says about needing less memory."""
    command = cli.commands.get(next(iter(arguments), ""))
    return f"; {command.saving}" if isinstance(command, SavingCommand) else ""


def _fail(message: str, code: int = 1) -> int:
    click.echo(message, err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
