"""What we hold ourselves to beside the peers: each bar with its numbers and a verdict per data set.

Everything is computed from the recorded runs: means over the runs with one thread (of a peer that has none,
with more: the page says so), CPU time of the whole training process with warm caches. A bar is `MISSED` as
soon as one tool shows it, `not measured` while a tool that could still show it has no runs, and `reached`
only when all of them have been beaten.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from benchmarks.report import Record, aligned, number

SETS = ("cooking-stackexchange", "debian-debtags", "wordnet-hypernyms", "llms4subjects-all")
PRECISIONS = ("p@1", "p@3", "p@5")
OUR_PACKAGE = "labeltree"
OURS, OURS_LIKE_EXTREMETEXT, EXTREMETEXT = "labeltree-dense", "labeltree-xt", "extremetext"
TIMES_FASTER = 10.0
SLACK = 0.2  # points of P@k that noise may take
ENOUGH_RUNS, FEWER = 3, "fewer than 3:"
FEW_RUNS = ", few runs"  # after a verdict of such means
MOST_NAMED = 3  # more tools of few runs are only counted
# The tools with one fast model for all nodes: those a dense tree competes with in training.
TRAINING_PEERS = ("extremetext", "fasttext", "vowpalwabbit")
TENFOLD_PEERS = ("extremetext", "napkinxc")
ENSEMBLES = ("napkinxc-3",)  # nothing that a single one of their trees would not show sooner
REACHED, MISSED, NOT_MEASURED = "reached", "MISSED", "not measured"


class Standing(NamedTuple):
    """The runs that count for one data set, and the kinds of input that each peer predicts from."""

    data: str
    # tool -> its successful runs with one thread; of a peer that has none, with the fewest threads
    runs: Mapping[str, Sequence[Record]]
    peers: Mapping[str, Sequence[str]]
    more_threads: Mapping[str, Sequence[Record]] = MappingProxyType({})
    # tool whose training failed by itself, so that it is not among the peers -> which of those that stand in
    # for it were run
    failed: Mapping[str, Mapping[str, bool]] = MappingProxyType({})
    # tool that is not meant for so many labels, so that it is not among the peers -> for how many it is
    limited: Mapping[str, float] = MappingProxyType({})

    def mean(self, tool: str, field: str) -> float | None:
        values = [run[field] for run in self.runs.get(tool, ()) if run.get(field) is not None]
        return statistics.mean(values) if values else None

    def precisions(self, tool: str) -> list[float] | None:
        """Means of P@1, P@3 and P@5."""
        means = [self.mean(tool, field) for field in PRECISIONS]
        found = [mean for mean in means if mean is not None]
        return found if len(found) == len(means) else None

    def taking(self, kind: str) -> list[str]:
        """The peers that predict from this kind of input."""
        return [peer for peer, kinds in self.peers.items() if kind in kinds and peer not in ENSEMBLES]

    def named(self, prefixes: Iterable[str]) -> list[str]:
        """The peers of these families."""
        return [peer for peer in self.peers if peer.startswith(tuple(prefixes))]


def outcome(checks: Mapping[str, bool | None]) -> str:
    """The verdict over tools: whether each is beaten, None where that was not measured."""
    beating = [tool for tool, beaten in checks.items() if beaten is False]
    unknown = [tool for tool, beaten in checks.items() if beaten is None]
    if beating:
        return f"{MISSED} ({', '.join(beating)})"
    if unknown or not checks:
        return f"{NOT_MEASURED} ({', '.join(unknown)})" if unknown else NOT_MEASURED
    return REACHED


def shown(value: float | None) -> str:
    return "-" if value is None else number(value)


def shown_precisions(values: Sequence[float] | None) -> str:
    return "-" if values is None else "/".join(f"{value:.2f}" for value in values)


def shown_runs(standing: Standing, tools: Iterable[str]) -> str:
    """How many runs the means are of; which tools have fewer than enough, or ran with more threads."""
    counted = {tool: standing.runs[tool] for tool in tools if standing.runs.get(tool)}
    least = min(map(len, counted.values()), default=0)
    few = {tool: runs for tool, runs in counted.items() if len(runs) < ENOUGH_RUNS}
    threaded = [tool + with_threads(runs) for tool, runs in counted.items() if with_threads(runs)]
    if len(few) > MOST_NAMED:
        return ", ".join([f"{FEWER} {len(few)} of {len(counted)} tools, least {least}", *threaded])
    if few:
        return f"{FEWER} {', '.join(f'{tool} {len(runs)}{with_threads(runs)}' for tool, runs in few.items())}"
    return ", ".join([str(least), *threaded])


def with_threads(runs: Sequence[Record]) -> str:
    """A mark behind the number of runs that were trained with more threads than one."""
    threads = runs[0]["threads"]
    return f" with {threads} threads" if threads > 1 else ""


def shown_training(standing: Standing, tool: str) -> str:
    """CPU seconds of the whole process, and apart how many of them were parsing, where the tool tells."""
    parsing = standing.mean(tool, "parse_cpu_s")
    told = "" if parsing is None else f" ({number(parsing)} parsing)"
    return shown(standing.mean(tool, "train_cpu_s")) + told


def times_less(standing: Standing) -> float | None:
    """CPU time of extremeText's training as a multiple of ours, each with as many epochs."""
    ours = standing.mean(OURS_LIKE_EXTREMETEXT, "train_cpu_s")
    theirs = standing.mean(EXTREMETEXT, "train_cpu_s")
    return theirs / ours if ours and theirs else None


def same_work(standing: Standing) -> list[list[str]]:
    ratio, verdict = times_less(standing), NOT_MEASURED
    our_precisions = standing.precisions(OURS_LIKE_EXTREMETEXT)
    their_precisions = standing.precisions(EXTREMETEXT)
    if ratio and our_precisions and their_precisions:
        as_good = all(a >= b - SLACK for a, b in zip(our_precisions, their_precisions, strict=True))
        verdict = REACHED if ratio >= TIMES_FASTER and as_good else MISSED
    return [[
        shown_training(standing, OURS_LIKE_EXTREMETEXT), shown_training(standing, EXTREMETEXT), shown(ratio),
        shown_precisions(our_precisions), shown_precisions(their_precisions),
        shown_runs(standing, (OURS_LIKE_EXTREMETEXT, EXTREMETEXT)), verdict,
    ]]  # fmt: skip


def own_defaults(standing: Standing) -> list[list[str]]:
    ours, our_precisions = standing.mean(OURS, "train_cpu_s"), standing.precisions(OURS)
    peers = standing.named(TRAINING_PEERS)
    # Without runs of ours there is only one reason to name.
    not_ahead: dict[str, bool | None] = dict.fromkeys(peers if our_precisions else (OURS,))
    above = dict(not_ahead)
    best = [0.0] * len(PRECISIONS)
    for peer in peers:
        theirs, their_precisions = standing.mean(peer, "train_cpu_s"), standing.precisions(peer)
        if theirs is None or their_precisions is None:
            continue
        best = [max(pair) for pair in zip(best, their_precisions, strict=True)]
        if ours is not None and our_precisions is not None:
            pairs = list(zip(our_precisions, their_precisions, strict=True))
            not_ahead[peer] = theirs >= ours or any(a > b for a, b in pairs)
            above[peer] = all(a > b for a, b in pairs)
    return [[
        shown_training(standing, OURS), fastest(standing, peers, "train_cpu_s")[0],
        shown_precisions(our_precisions), shown_precisions(best if any(best) else None),
        shown_runs(standing, (OURS, *peers)), outcome(not_ahead), outcome(above),
    ]]  # fmt: skip


def fastest(
    standing: Standing, peers: Iterable[str], field: str, scale: float = 1.0
) -> tuple[str, float | None]:
    """The least of the peers' means, scaled and with its name, and as a number."""
    means = {peer: standing.mean(peer, field) for peer in peers}
    measured = {peer: mean for peer, mean in means.items() if mean is not None}
    if not measured:
        return "-", None
    best = min(measured, key=measured.__getitem__)
    return f"{number(measured[best] * scale)} ({best})", measured[best]


def beaten(standing: Standing, peers: Iterable[str], field: str, times: float) -> dict[str, bool | None]:
    """Whether labeltree takes less than each peer: ``times`` less, or just less if that is 1."""
    ours = standing.mean(OURS, field)
    if ours is None:
        return {OURS: None}
    found: dict[str, bool | None] = dict.fromkeys(peers)
    for peer in found:
        theirs = standing.mean(peer, field)
        if theirs is not None:
            found[peer] = theirs >= times * ours if times > 1 else theirs > ours
    return found


def single_rows(standing: Standing) -> list[list[str]]:
    rows = []
    for kind in ("text", "vectors"):
        field = f"p50_{kind}_us"
        peers = standing.taking(kind)
        tenfold = [peer for peer in standing.named(TENFOLD_PEERS) if peer in peers]
        ours, (quickest, least) = standing.mean(OURS, field), fastest(standing, tenfold, field)
        lead = f"{number(least / ours)} times" if ours and least else "-"
        rows.append([
            kind, shown(ours), quickest, lead, fastest(standing, peers, field)[0],
            shown_runs(standing, (OURS, *peers)), outcome(beaten(standing, tenfold, field, TIMES_FASTER)),
            outcome(beaten(standing, peers, field, 1.0)),
        ])  # fmt: skip
    return rows


def batches(standing: Standing) -> list[list[str]]:
    rows = []
    for kind in ("text", "vectors"):
        field = f"batch_{kind}_us"
        peers = standing.taking(kind)
        rows.append([
            kind, shown(standing.mean(OURS, field)), fastest(standing, peers, field)[0],
            shown_runs(standing, (OURS, *peers)), outcome(beaten(standing, peers, field, 1.0)),
        ])  # fmt: skip
    return rows


def model_size(standing: Standing) -> list[list[str]]:
    ours, theirs = standing.mean(OURS, "model_bytes"), standing.mean(EXTREMETEXT, "model_bytes")
    our_precisions, their_precisions = standing.precisions(OURS), standing.precisions(EXTREMETEXT)
    verdict = NOT_MEASURED
    if ours and theirs and our_precisions and their_precisions:
        higher = all(a > b for a, b in zip(our_precisions, their_precisions, strict=True))
        verdict = REACHED if ours < theirs and higher else MISSED
    return [[
        shown(ours and ours / 1e6), shown(theirs and theirs / 1e6), shown_precisions(our_precisions),
        shown_precisions(their_precisions), shown_runs(standing, (OURS, EXTREMETEXT)), verdict,
    ]]  # fmt: skip


class Bar(NamedTuple):
    title: str
    promise: str
    columns: tuple[str, ...]  # after the data set's
    n_verdicts: int  # how many of the last columns are verdicts
    rows: Callable[[Standing], list[list[str]]]


BARS = (
    Bar(
        "Training, same work as extremeText",
        "The same tree shape, length of vectors and epochs, one thread: at least 10 times less CPU time of "
        "the whole process, P@1/3/5 not lower by more than 0.2.",
        ("labeltree-xt CPU s", "extremetext CPU s", "times less", "labeltree-xt P@1/3/5",
         "extremetext P@1/3/5", "runs", "verdict"),
        1,
        same_work,
    ),
    Bar(
        "Training, each with its own defaults",
        "Beside extremeText, fastText and Vowpal Wabbit: none of them is both faster (CPU time) and at least "
        f"as accurate (P@1, P@3 and P@5), and the P@1/3/5 of {OURS} are above all of theirs.",
        (f"{OURS} CPU s", "fastest peer CPU s", f"{OURS} P@1/3/5", "highest of the peers", "runs",
         "no peer ahead", "above all"),
        2,
        own_defaults,
    ),
    Bar(
        "Single rows",
        "Median time of one call, k = 5, texts beside texts, vectors beside vectors: at least 10 times "
        "faster than extremeText and napkinXC, and faster than every peer.",
        ("input", f"{OURS} µs", "extremeText, napkinXC µs", "lead", "fastest peer µs", "runs",
         "10 times faster", "faster than all"),
        2,
        single_rows,
    ),
    Bar(
        "Batches",
        "Per row, one thread, k = 5: faster than every peer.",
        ("input", f"{OURS} µs", "fastest peer µs", "runs", "verdict"),
        1,
        batches,
    ),
    Bar(
        "Model size",
        "Smaller than extremeText's at higher P@1/3/5.",
        (f"{OURS} MB", "extremetext MB", f"{OURS} P@1/3/5", "extremetext P@1/3/5", "runs", "verdict"),
        1,
        model_size,
    ),
)  # fmt: skip


def bars_section(
    standings: Sequence[Standing],
    bars: Sequence[Bar] = BARS,
    title: str = "What we hold ourselves to with dense nodes",
) -> str:
    """All bars as Markdown, what came of them in front."""
    verdicts: list[str] = []
    sections = []
    for bar in bars:
        rows = [["data set", *bar.columns]]
        for standing in standings:
            for cells in bar.rows(standing):
                rows.append([standing.data, *marked(cells, bar.n_verdicts)])
                verdicts += rows[-1][-bar.n_verdicts :]
        sections += [f"### {bar.title}", bar.promise, aligned(rows)]
    counts = [
        f"{sum(verdict.startswith(word) for verdict in verdicts)} {word}"
        for word in (REACHED, MISSED, NOT_MEASURED)
    ]
    n_weak = sum(verdict.endswith(FEW_RUNS) for verdict in verdicts)
    head = (
        f"Verdicts: {', '.join(counts)}; {n_weak} of those reached rest on fewer than {ENOUGH_RUNS} runs of "
        "some tool. Training is CPU time of the whole process with warm caches, parsing shown apart where a "
        "tool separates it. A tool in brackets is the reason of the verdict."
    )
    for standing in standings:
        for failed, stand_ins in standing.failed.items():
            told = [f"{name} {'stands in' if ran else 'was not run'}" for name, ran in stand_ins.items()]
            head += f" {standing.data} is without {failed}, whose training failed there"
            head += f": {', '.join(told)}." if told else "."
        for limited, most in standing.limited.items():
            head += f" {standing.data} is without {limited}, which is for up to {most:,.0f} labels."
    return "\n\n".join([f"## {title}", head, *sections])


def marked(cells: Sequence[str], n_verdicts: int) -> list[str]:
    """The cells of a row, its verdicts (the last ones) with a mark if they rest on few runs."""
    is_weak = any(cell.startswith(FEWER) for cell in cells)
    verdicts = [
        cell + FEW_RUNS if is_weak and cell.startswith(REACHED) else cell for cell in cells[-n_verdicts:]
    ]
    return [*cells[:-n_verdicts], *verdicts]
