"""What recorded runs become as files: a page with figures per data set, one over all, the README's table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.overview import (
    COMMAND,
    absences,
    data_sets,
    newest,
    overview,
    readme_section,
    standing_of,
)
from benchmarks.report import Record
from benchmarks.running import Tool

BEGIN = "<!-- begin of the results, written by python -m benchmarks.compare --readme -->"
END = "<!-- end of the results -->"


def write_pages(
    records: Sequence[Record], tools: Mapping[str, Tool], folder: Path, drawn: Iterable[str] = ()
) -> str:
    """Write a page per data set, with new figures of those that are drawn, and the one over all: its text."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = {tool: found.module.NOTE for tool, found in tools.items()}
    for name in data_sets(records):
        runs = runs_of(records, tools, name)
        if name in drawn:
            from benchmarks.plotting import plot

            plot(name, runs, folder)
        figures = sorted(path.name for path in folder.glob(f"{name}-*.svg"))
        absent = absences(standing_of(records, name, tools))
        text = report.page(name, runs, notes, COMMAND, figures, absent)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    page = overview(records, tools)
    (folder / "README.md").write_text(page, encoding="utf-8")
    return page


def runs_of(
    records: Iterable[Record], tools: Mapping[str, Tool], data: str, full: bool = False
) -> list[Record]:
    """The runs of a data set that count, in the order of the tools, then of their threads."""
    order = {name: place for place, name in enumerate(tools)}
    return sorted(
        newest(records, data, full), key=lambda run: (order.get(run["tool"], len(order)), run["threads"])
    )


def outdated(records: Sequence[Record], tools: Mapping[str, Tool]) -> list[str]:
    """Tools with runs that were not made as the tool is now, each with its data sets."""
    found: dict[str, dict[str, None]] = {}
    for name in data_sets(records):
        for run in newest(records, name):
            tool = tools.get(run["tool"])
            if tool is None or tool.fingerprint != run["fingerprint"]:
                found.setdefault(run["tool"], {})[name] = None
    return [f"{tool} ({', '.join(names)})" for tool, names in found.items()]


def replace_section(text: str, section: str) -> str:
    """The README with ``section`` between its two markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"the README must have these two lines once, in this order:\n{BEGIN}\n{END}")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{section}\n{END}{rest.partition(END)[2]}"


def write_readme(records: Sequence[Record], tools: Mapping[str, Tool], path: Path) -> None:
    text = replace_section(path.read_text(encoding="utf-8"), readme_section(records, tools))
    path.write_text(text, encoding="utf-8")
