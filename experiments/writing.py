"""Where experiments write: options, tables, pages, figures.

Every experiment NAME writes into one folder NAME.jsonl (the ledger), NAME.csv, NAME.md and NAME-*.png/svg.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DEFAULT_FOLDER = Path("docs") / "experiments"


def parser_of(module_doc: str) -> argparse.ArgumentParser:
    """The options that every experiment has; the module's doc is the help."""
    parser = argparse.ArgumentParser(
        description=module_doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help=f"default: {DEFAULT_FOLDER.as_posix()}; with --quick a new temporary folder",
    )
    parser.add_argument("--quick", action="store_true", help="tiny, on generated data: does it work at all?")
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    return parser


def output_folder(chosen: argparse.Namespace) -> Path:
    """The folder to write to, made if need be; where it is a new temporary one, it is told."""
    if chosen.output is None and chosen.quick:
        folder = Path(tempfile.mkdtemp(prefix="labeltree-experiments-"))
        print(f"--quick: writing to {folder}")
        return folder
    folder = DEFAULT_FOLDER if chosen.output is None else Path(chosen.output)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def command_of(name: str, chosen: argparse.Namespace, *options: str) -> str:
    """The command line that repeats an experiment: with those of the options that were given."""
    words = ["python", "-m", f"experiments.{name}"]
    for option in options:
        value = getattr(chosen, option)
        words += [f"--{option.replace('_', '-')}", str(value)] if value else []
    return shlex.join([*words, *(["--quick"] if chosen.quick else [])])


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """A column for each name in any record, in order of first sight; empty where a record lacks it."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    partial.replace(path)


def write_page(path: Path, title: str, command: str, sections: Sequence[str]) -> None:
    """A Markdown page, replaced as a whole; what stands in it comes from the command."""
    blocks = [f"# {title}", f"Written by `{command}`; not edited by hand.", *sections]
    partial = path.with_name(path.name + ".partial")
    partial.write_text("\n\n".join(block.strip("\n") for block in blocks) + "\n", encoding="utf-8")
    partial.replace(path)


def load_pyplot() -> Any:
    """matplotlib's pyplot, set so that the same figure gives the same bytes; None, and told, without it."""
    try:
        import matplotlib
    except ImportError:
        print("no figures: they need matplotlib (pip install 'labeltree[plots]')", file=sys.stderr)
        return None
    matplotlib.use("Agg")
    # Without this the ids in an SVG are random.
    matplotlib.rcParams["svg.hashsalt"] = "labeltree"
    from matplotlib import pyplot

    return pyplot


def save_figure(figure: Any, path: Path) -> list[str]:
    """Write a figure as PNG and SVG and close it; the files' names, to be linked from the page.

    Without matplotlib there is no figure (None), and nothing is written.
    """
    if figure is None:
        return []
    from matplotlib import pyplot

    # The date and the version of matplotlib would make the files differ from run to run.
    metadata: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
    names = []
    for suffix, left_out in metadata.items():
        written = path.with_name(f"{path.name}.{suffix}")
        figure.savefig(written, dpi=150, metadata=left_out)
        names.append(written.name)
    pyplot.close(figure)
    return names


def mean_and_deviation(values: Iterable[float]) -> str:
    """As the paper prints it, "71.68 ± 5.65"; the deviation is that of a sample, absent for one value."""
    found = list(values)
    mean = statistics.fmean(found)
    return f"{mean:.2f} ± {statistics.stdev(found):.2f}" if len(found) > 1 else f"{mean:.2f}"
