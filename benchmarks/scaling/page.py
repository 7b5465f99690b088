"""The whole page, from what is kept in the folder beside it."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.compare import Ledger
from benchmarks.scaling.growth import read_records
from benchmarks.scaling.growth_page import SWEPT, summarize, write_section
from benchmarks.scaling.like_page import write_like
from benchmarks.scaling.memory_page import write_memory
from labeltree.nodes import KINDS

_BEGINNING = """# Scaling

How labeltree grows, on generated data (`benchmarks/generate.py`): labels have frequencies of a power law, and
documents have words that tell their labels. Each section names the command that printed it; every run is a
line of a file in `scaling/`, beside this page, from which
`python -m benchmarks.scaling --rewrite --page docs/scaling.md` writes the page without measuring."""


def write_page(folder: Path) -> str:
    """Sections without measurements are left out."""
    records = Ledger(folder).records
    sections = [_BEGINNING.splitlines(), write_like(records), write_memory(records)]
    sections += [_write_growth(folder, nodes) for nodes in KINDS]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _write_growth(folder: Path, nodes: str) -> list[str]:
    header, *steps = read_records(folder / f"{nodes}.jsonl") or [{}]
    if not steps:
        return []
    options = argparse.Namespace(**{name: header[name] for name in SWEPT})
    picture = folder / f"{nodes}.svg"
    shown = Path(folder.name) / picture.name if picture.exists() else None
    return write_section(summarize(steps), options, shown, header["command"])
