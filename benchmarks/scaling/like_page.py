"""The section of the paper's sets: a table of all runs on each, and the bars against omikuji."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.scaling.like import LIMIT, SEED, THREADS, TIMEOUT
from benchmarks.scaling.sets import PAPER_SETS, PaperSet, Reported

PEER = "omikuji-1"
JUDGED = ("labeltree-fast", "labeltree")  # beside the peer
JUDGED_SETS = ("wikilshtc", "amazon670k")
MARK = "\\*"  # of numbers that were not measured here
_COLUMNS = (
    "tool", "train CPU s", "wall s", "peak MB anonymous", "peak MB resident", "model MB",
    "batch µs/row CPU (wall)", "single µs", "predict peak MB anonymous", "P@1/3/5", "load average", "source",
)  # fmt: skip


def latest(records: Sequence[dict[str, Any]], data: str, tool: str) -> dict[str, Any] | None:
    """The last run of the tool on this data."""
    found = [record for record in records if (record["data"], record["tool"]) == (data, tool)]
    return found[-1] if found else None


def write_like(records: Sequence[dict[str, Any]]) -> list[str]:
    """Nothing where nothing has been run."""
    sections = [line for name, of in PAPER_SETS.items() for line in _write_set(name, of, records)]
    if not sections:
        return []
    return [
        "## The paper's scale",
        "",
        "Printed by `python -m benchmarks.scaling --like SETS`: generated data with the number of documents, "
        "labels, features and labels per document that the Extreme Classification Repository gives for each "
        "set. Features per document are assumptions: its table does not have them. Words tell labels more "
        "clearly than in the real sets, so P@k compares tools with each other, not with the paper. Rows have "
        "unit length; all tools read the same files.",
        "",
        f"Training on {THREADS} threads, prediction on one (k=5, {_n_test()} rows), seed {SEED}; every stage "
        f"is a process of its own, stopped after {TIMEOUT // 60} minutes. CPU time and memory are of the "
        "whole training process, reading and saving included. Anonymous memory (RssAnon) is what no file can "
        "give back; the resident peak has mapped files too. Where the load is above 2, others used the "
        "machine: wall times are too long, and CPU times somewhat. `labeltree-fast` is `--preset fast`, "
        f"`labeltree` the defaults, `labeltree {LIMIT}` the defaults with `--max-memory {LIMIT}`.",
        "",
        f"{MARK} as the paper reports, on the real set and other hardware: for orientation only.",
        *sections,
        *write_bars(records),
    ]


def _n_test() -> str:
    from benchmarks.scaling.files import N_TEST

    return f"{N_TEST:,}"


def _write_set(name: str, of: PaperSet, records: Sequence[dict[str, Any]]) -> list[str]:
    tools = dict.fromkeys(record["tool"] for record in records if record["data"] == name)
    runs = [run for tool in sorted(tools, key=_order) if (run := latest(records, name, tool))]
    if not runs:
        return []
    shape = runs[-1]["shape"]
    lines = [
        "",
        f"### Like {of.name}",
        "",
        f"{shape['n_documents']:,} documents, {shape['n_labels']:,} labels, {shape['n_features']:,} "
        f"features; {shape['labels_per_document']:g} labels and (assumed) "
        f"{shape['features_per_document']:g} features per document. {runs[-1]['machine']}.",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "|" + "---|" * len(_COLUMNS),
    ]
    rows = [_cells(run) for run in runs]
    rows += [_reported("XT", of.xt), _reported("Parabel, 1 tree", of.parabel)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def _order(tool: str) -> tuple[bool, str]:
    return not tool.startswith("labeltree"), tool


def _cells(run: dict[str, Any]) -> list[str]:
    where = [f"{run.get('load_average', float('nan')):.1f}", run["fingerprint"]]
    if "error" in run:
        return [run["tool"], run["error"].replace("|", "/"), *["-"] * (len(_COLUMNS) - 4), *where]
    return [
        run["tool"],
        f"{run['train_cpu_s']:,.0f}",
        f"{run['train_wall_s']:,.0f}",
        f"{run['train_peak_anonymous_bytes'] / 1e6:,.0f}",
        f"{run['train_peak_bytes'] / 1e6:,.0f}",
        f"{run['model_bytes'] / 1e6:,.0f}",
        f"{run['batch_vectors_cpu_us']:,.0f} ({run['batch_vectors_us']:,.0f})",
        f"{run['p50_vectors_us']:,.0f}",
        f"{run['predict_peak_anonymous_bytes'] / 1e6:,.0f}",
        "/".join(f"{run[f'p@{k}']:.2f}" for k in (1, 3, 5)),
        *where,
    ]


def _reported(tool: str, found: Reported) -> list[str]:
    return [
        f"{tool} {MARK}",
        f"{60 * found.train_minutes:,} {MARK}",
        *["-"] * 3,
        f"{1e3 * found.model_gigabytes:,.0f} {MARK}",
        f"{1e3 * found.row_milliseconds:,.0f} {MARK}",
        "-",
        "-",
        "/".join(f"{precision:.2f}" for precision in found.precisions) + f" {MARK}",
        "-",
        "-",
    ]


def write_bars(records: Sequence[dict[str, Any]]) -> list[str]:
    """Less CPU time, less memory, a smaller model, and no lower P@k than omikuji with one tree."""
    lines = []
    for data in JUDGED_SETS:
        peer = latest(records, data, PEER)
        for tool in JUDGED:
            run = latest(records, data, tool)
            if run and peer and "error" not in run:
                lines.append(f"- like {PAPER_SETS[data].name}, {tool}: {_judge(run, peer)}")
    if not lines:
        return []
    about = f"Less CPU time, less memory, a smaller model than {PEER}, at the same or higher P@k:"
    return ["", "### Bars against peers", "", about, "", *lines]


def _judge(run: dict[str, Any], peer: dict[str, Any]) -> str:
    if "error" in peer:
        return f"{PEER} did not finish ({peer['error']})"
    ratios = {
        "CPU time": run["train_cpu_s"] / peer["train_cpu_s"],
        "anonymous memory": run["train_peak_anonymous_bytes"] / peer["train_peak_anonymous_bytes"],
        "model": run["model_bytes"] / peer["model_bytes"],
    }
    gained = [run[f"p@{k}"] - peer[f"p@{k}"] for k in (1, 3, 5)]
    is_reached = max(ratios.values()) < 1 and min(gained) >= 0
    shown = ", ".join(f"{what} {ratio:.2f} times" for what, ratio in ratios.items())
    differences = "/".join(f"{difference:+.2f}" for difference in gained)
    return f"{shown}, P@1/3/5 {differences}: {'reached' if is_reached else 'MISSED'}"
