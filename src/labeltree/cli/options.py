"""Command-line options made from the config, and the checks that come before any work.

Nothing here imports numpy or numba: ``labeltree --help`` must be instant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from labeltree.config import PRESETS, Config, parameters
from labeltree.data.formats import USUAL_READING, Reading, format_choices
from labeltree.errors import ParameterError
from labeltree.memory_size import check_memory
from labeltree.parallel import MOST_THREADS
from labeltree.parameter import Parameter, needed
from labeltree.query import (
    DEFAULT_BEAM,
    DEFAULT_SEARCH,
    IF_UNKNOWN,
    MOST_RANKS,
    OF_MODEL,
    RULES,
    SEARCHES,
    WITH_LABELS,
)
from labeltree.storage.files import check_can_write
from labeltree.trees import BUILDERS

Command = TypeVar("Command", bound=Callable[..., Any])


class LiveChoice(click.Choice):
    """Choices of a table: those that are added after the commands were made are among them."""

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names
        super().__init__(names())

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self._names())

    @choices.setter
    def choices(self, choices: Sequence[str]) -> None:
        """Click sets them once and for all, which is not wanted."""


class MemorySize(click.ParamType):
    """Bytes, as people write them."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return value if isinstance(value, int) else check_memory(str(value))


model_argument = click.argument("model", type=click.Path(path_type=Path))
threads_option = click.option(
    "--threads",
    type=click.IntRange(0, MOST_THREADS),
    default=0,
    show_default="all CPUs",
    help="Threads to use; results do not depend on it.",
)
_READING_OPTIONS = (
    click.option(
        "--format",
        type=LiveChoice(format_choices),
        default="auto",
        show_default=True,
        help="Format of the data; auto looks at its first line.",
    ),
    click.option(
        "--text-column",
        default=USUAL_READING.text_column,
        show_default=True,
        help="Of CSV and Parquet files the column with the texts.",
    ),
    click.option(
        "--labels-column",
        default=USUAL_READING.labels_column,
        show_default=True,
        help="And the one with the labels.",
    ),
    click.option(
        "--label-separator",
        default=USUAL_READING.label_separator,
        show_default=True,
        help="What stands between labels where they are one string.",
    ),
)
skip_option = click.option(
    "--skip-bad-lines", is_flag=True, help="Leave out lines that cannot be read, and count them."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
normalize_option = click.option(
    "--normalize", is_flag=True, help="Rescale children whose probabilities sum to less than 1."
)
unknown_option = click.option(
    "--if-unknown",
    type=click.Choice(IF_UNKNOWN),
    default=WITH_LABELS,
    show_default=True,
    help="What a row gets that has no word or feature which the model knows: the labels of any row, or none.",
)
work_dir_option = click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep rows and finished work here: for data larger than memory, and to go on after an end.",
)
memory_option = click.option(
    "--max-memory",
    type=MemorySize(),
    metavar="SIZE",
    help="Of the process, like 2GB; what is beyond is on the disk (--work-dir, or MODEL.work).",
)
card_option = click.option(
    "--card",
    multiple=True,
    metavar="KEY=VALUE",
    help="A fact to keep in MODEL, like licence=CC0-1.0; repeatable.",
)
rule_option = click.option(
    "--rule",
    type=click.Choice(RULES),
    default=OF_MODEL,
    show_default=True,
    help="Which labels are given: by the rule that MODEL was tuned with, if it was, or the most probable.",
)
_MASK_OPTIONS = (
    click.option(
        "--only",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Give no labels but those of FILE, one per line.",
    ),
    click.option(
        "--without",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Give none of the labels of FILE, one per line.",
    ),
)
_search_option = click.option(
    "--search",
    type=click.Choice(SEARCHES),
    default=DEFAULT_SEARCH,
    show_default=True,
    help="auto ends where a row would take too long, exact never; beam is quicker, but may miss labels.",
)
_beam_option = click.option(
    "--beam",
    type=click.IntRange(min=1),
    metavar="N",
    show_default=str(DEFAULT_BEAM),
    help="Nodes of each level that --search beam opens.",
)


def reading_options(command: Command) -> Command:
    """How data files are read, which the command gets as ``reading``."""

    @functools.wraps(command)
    def with_reading(*arguments: Any, **options: Any) -> Any:
        reading = Reading(*(options.pop(name) for name in Reading._fields))
        return command(*arguments, reading=reading.check(), **options)

    made: Any = with_reading
    for option in reversed(_READING_OPTIONS):
        made = option(made)
    return made


def search_options(command: Command) -> Command:
    """How labels are searched for; see :func:`labeltree.query.make_query`."""
    return _search_option(_beam_option(command))


def mask_options(command: Command) -> Command:
    """Files with the labels that may be given, and may not."""
    for option in reversed(_MASK_OPTIONS):
        command = option(command)
    return command


def config_options(command: Command) -> Command:
    """Add one option per parameter of :class:`Config`, and the two that set many of them at once."""
    for parameter in reversed(list(parameters())):
        command = _option(parameter)(command)
    command = click.option(
        "--preset",
        type=click.Choice(sorted(PRESETS)),
        help="Begin with other parameters than the defaults: less, more, or those of a published system.",
    )(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE.toml",
        help="Take parameters from a file; options given here win.",
    )(command)


def _option(parameter: Parameter) -> Callable[[Command], Command]:
    names = parameter.option
    if parameter.type is bool:
        names += f"/--no-{parameter.option[2:]}"
    return click.option(
        names,
        parameter.name,
        type=_click_type(parameter),
        default=parameter.default,
        metavar=_metavar(parameter),
        show_default=True,
        help=parameter.full_help,
    )


def _click_type(parameter: Parameter) -> click.ParamType:
    if parameter.choices and not parameter.open_choice:
        return LiveChoice(lambda: tuple(parameter.choices))
    low, high = parameter.low, parameter.high
    if parameter.type is int:
        return click.IntRange(None if low is None else int(low), None if high is None else int(high))
    if parameter.type is float:
        return click.FloatRange(low, high)
    return click.BOOL if parameter.type is bool else click.STRING


def _metavar(parameter: Parameter) -> str | None:
    if parameter.open_choice:
        return f"[{'|'.join(parameter.choices)}|FILE]"
    return {int: "N", float: "X"}.get(parameter.type)


class SavingCommand(click.Command):
    """A command that knows what to tell where memory is not enough for it."""

    def __init__(self, *arguments: Any, saving: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.saving = saving


class GroupedCommand(SavingCommand):
    """A command whose help shows the parameters of a model under their own headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        group_of = {parameter.name: parameter.group for parameter in parameters()}
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                group = group_of.get(option.name or "")
                sections.setdefault("Options" if group is None else f"Model: {group}", []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def given_parameters(context: click.Context) -> dict[str, Any]:
    """The options of the config that were really given."""
    return {
        parameter.name: context.params[parameter.name]
        for parameter in parameters()
        if context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


def refuse_beside(option: str, others: Mapping[str, Any]) -> None:
    """Refuse those options that were given beside one with which they have no effect."""
    for other, value in others.items():
        if value:
            raise ParameterError(f"{other} has no effect with {option}; give one of them")


def input_files(
    data: Sequence[str | Path], config: Config, config_file: Path | None
) -> tuple[str | Path, ...]:
    """The files that training reads: the output must be none of them."""
    tree_file = () if config.tree in BUILDERS else (config.tree,)
    return (*data, *tree_file) if config_file is None else (*data, *tree_file, config_file)


class Ranks(click.ParamType):
    """A list like ``1,3,5``: the k of the metrics."""

    name = "list"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and 1 <= int(part) <= MOST_RANKS for part in parts):
            self.fail(f"{value!r} is not a list of numbers from 1 to {MOST_RANKS}, like 1,3,5", param, ctx)
        return tuple(sorted({int(part) for part in parts}))


class OutputFile(click.ParamType):
    """A file to write. Not standard output: files are written whole or not at all."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if str(value) == "-":
            self.fail("this cannot go to standard output; give the name of a file", param, ctx)
        if isinstance(value, str) and not value:
            self.fail("the name is empty; give the name of a file", param, ctx)
        return Path(value)


def check_output(path: Path, *, inputs: tuple[str | Path, ...] = ()) -> None:
    """Refuse a name that cannot be written, before an hour of work is spent on its content."""
    folder = path.resolve().parent
    if path.is_dir():
        raise ParameterError(f"output {path}: is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise ParameterError(f"output {path}: is a device or a pipe; give the name of a file")
    if not folder.is_dir():
        raise ParameterError(f"output {path}: the folder {folder} does not exist; create it first")
    try:
        check_can_write(folder)
    except OSError as error:
        told = f"the folder {folder} is not writable ({error.strerror})"
        raise ParameterError(f"output {path}: {told}; choose another") from error
    for name in inputs:
        if str(name) != "-" and path.exists() and Path(name).exists() and path.samefile(name):
            raise ParameterError(f"output {path}: is an input too; choose another name")


def options_table() -> str:
    """The parameters as a Markdown table, for ``docs/cli.md``."""
    lines = ["| option | default | values | what it does | needs |", "|---|---|---|---|---|"]
    for parameter in parameters():
        name = parameter.option
        if parameter.type is bool:
            name += f"`, `--no-{name[2:]}"
        text = parameter.help.replace("|", "\\|")
        cells = (f"`{name}`", _default(parameter), _values(parameter), text, needed(parameter))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def presets_table() -> str:
    """What each preset changes, for ``docs/cli.md``."""
    lines = ["| preset | its parameters; the others keep their defaults |", "|---|---|"]
    for preset, values in PRESETS.items():
        given = [_as_option(parameter, values) for parameter in parameters() if parameter.name in values]
        lines.append(f"| `{preset}` | {' '.join(given)} |")
    return "\n".join(lines)


def _as_option(parameter: Parameter, values: Mapping[str, Any]) -> str:
    value = values[parameter.name]
    if parameter.type is bool:
        return f"`{parameter.option}`" if value else f"`--no-{parameter.option[2:]}`"
    return f"`{parameter.option} {value}`"


def _default(parameter: Parameter) -> str:
    if parameter.type is bool:
        return "yes" if parameter.default else "no"
    return f"`{parameter.default}`"


def _values(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(f"`{c}`" for c in parameter.choices) + (
            " or a file" if parameter.open_choice else ""
        )
    if parameter.type is bool:
        return "yes, no"
    low, high = parameter.low, parameter.high
    if low is None:
        return "text" if parameter.type is str else "any number"
    whole = "" if parameter.type is float else "whole "
    return (
        f"{whole}number, {low:g} or more"
        if high is None
        else f"{whole}number, {low:g} to {high if high % 1 else int(high)}"
    )
