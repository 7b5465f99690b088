"""The section of training within little memory: what the limit costs, and growth with rows under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.scaling.growth_page import fit_exponent, verdict
from benchmarks.scaling.like import LIMIT, LIMITED_SET
from benchmarks.scaling.like_page import latest
from benchmarks.scaling.sets import PAPER_SETS
from labeltree.memory_size import check_memory

MOST_OVERHEAD = 1.5  # CPU time within the limit against that in memory
MOST_EXPONENT = 1.05  # of CPU time against rows
TOOL = "labeltree"


def write_memory(records: Sequence[dict[str, Any]]) -> list[str]:
    """Nothing where nothing has been run within the limit."""
    limited = _limited_runs(records)
    if not limited:
        return []
    lines = [
        f"## Within {LIMIT} of memory",
        "",
        f"Printed by `python -m benchmarks.scaling --memory`: the defaults with `--max-memory {LIMIT}` on "
        f"data like {PAPER_SETS[LIMITED_SET].name}, and on fewer rows with the same labels and features. "
        "Anonymous memory was read from the system 20 times a second.",
        "",
        "| rows | memory | train CPU s | wall s | peak MB anonymous | peak MB resident | model MB "
        "| model digest | load average |",
        "|" + "---|" * 9,
    ]
    in_memory = latest(records, LIMITED_SET, TOOL)
    whole = [in_memory] if in_memory and "error" not in in_memory else []
    lines += [_row(run, LIMIT) for run in limited] + [_row(run, "no limit") for run in whole]
    return [*lines, "", *_bars(limited, whole)]


def _limited_runs(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last run of each number of rows, in their order."""
    found = {
        record["shape"]["n_documents"]: record
        for record in records
        if record["tool"] == f"{TOOL} {LIMIT}" and "error" not in record
    }
    return [found[n_rows] for n_rows in sorted(found)]


def _row(run: dict[str, Any], memory: str) -> str:
    cells = (
        f"{run['shape']['n_documents']:,}",
        memory,
        f"{run['train_cpu_s']:,.0f}",
        f"{run['train_wall_s']:,.0f}",
        f"{run['train_peak_anonymous_bytes'] / 1e6:,.0f}",
        f"{run['train_peak_bytes'] / 1e6:,.0f}",
        f"{run['model_bytes'] / 1e6:,.0f}",
        run["model_digest"],
        f"{run.get('load_average', float('nan')):.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def _bars(limited: Sequence[dict[str, Any]], whole: Sequence[dict[str, Any]]) -> list[str]:
    limit, peaks = check_memory(LIMIT), [run["train_peak_anonymous_bytes"] for run in limited]
    lines = [
        f"- most anonymous memory of any of these runs: {max(peaks) / 1e6:,.0f} MB, bar {limit / 1e6:,.0f}: "
        f"{verdict(max(peaks) <= limit)}"
    ]
    for run in whole:
        for same in limited:
            if same["shape"] == run["shape"]:
                lines += _against_memory(same, run)
    sizes = [run["shape"]["n_documents"] for run in limited]
    if len(sizes) > 1:
        exponent = fit_exponent(sizes, [run["train_cpu_s"] for run in limited])
        lines += [
            f"- CPU time ~ rows ^ {exponent:.2f}, bar {MOST_EXPONENT}: {verdict(exponent <= MOST_EXPONENT)}",
            f"- anonymous memory ~ rows ^ {fit_exponent(sizes, peaks):.2f} (bounded by the limit)",
        ]
    return lines


def _against_memory(limited: dict[str, Any], run: dict[str, Any]) -> list[str]:
    overhead = limited["train_cpu_s"] / run["train_cpu_s"]
    is_same = limited["model_digest"] == run["model_digest"]
    return [
        f"- CPU time against in memory: {overhead:.2f} times, bar {MOST_OVERHEAD}: "
        f"{verdict(overhead <= MOST_OVERHEAD)}",
        f"- the same bytes of the model as in memory: {verdict(is_same)}",
    ]
