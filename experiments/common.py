"""What all experiments share: a ledger of finished runs, options, and the writing of tables, pages, figures.

Every experiment NAME writes into one folder NAME.jsonl (the ledger), NAME.csv, NAME.md and NAME-*.png/svg.
Started again it runs only what the ledger lacks, so it may be stopped at any time.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DEFAULT_FOLDER = Path("docs") / "experiments"

Record = dict[str, Any]


class Ledger:
    """Results by key in a file of JSON lines that only grows; of a line half written nothing is used."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._results: dict[str, Record] = {}
        written = self.path.read_bytes() if self.path.is_file() else b""
        *whole, self._torn = written.split(b"\n")
        for number, line in enumerate(whole, 1):
            self._take(line, number)

    def _take(self, line: bytes, number: int) -> None:
        try:
            entry = json.loads(line)
            self._results[_canonical(entry["key"])] = entry["result"]
        except (ValueError, TypeError, KeyError):
            # A run stopped while it wrote; what follows was written by the next one.
            print(f"{self.path}, line {number}: not a record, left out", file=sys.stderr)

    def find(self, key: Mapping[str, Any]) -> Record | None:
        """The result recorded for this key, if any; of several the last."""
        found = self._results.get(_canonical(key))
        return None if found is None else dict(found)

    def add(self, key: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Append one result; it is in the file when this returns."""
        line = json.dumps({"key": dict(key), "result": dict(result)}, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write((b"\n" if self._torn else b"") + line.encode() + b"\n")
            file.flush()
        self._torn = b""
        # As it will be read: a tuple becomes a list, so that a resumed experiment sees the same.
        self._results[_canonical(key)] = json.loads(line)["result"]


def _canonical(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(key), sort_keys=True, allow_nan=False)


def run_missing(
    ledger: Ledger,
    keys: Sequence[Mapping[str, Any]],
    run: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    title: str,
) -> list[Record]:
    """The record {**key, **result} of every key, in order; only keys that the ledger lacks are run."""
    from tqdm import tqdm

    missing = {_canonical(key): key for key in keys if ledger.find(key) is None}
    for key in tqdm(missing.values(), desc=title, unit="run", disable=not missing, file=sys.stderr):
        ledger.add(key, run(key))
    return [{**key, **(ledger.find(key) or {})} for key in keys]


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
