"""The command ``labeltree compare-search``: the other searches against exact search on the same rows.

What they miss, the time that they save, and for how many rows they prove that nothing is missed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from labeltree.cli.options import (
    OutputFile,
    Ranks,
    SavingCommand,
    check_output,
    json_option,
    model_argument,
    normalize_option,
    reading_options,
    skip_option,
)
from labeltree.cli.steps import load_with_data, print_lines
from labeltree.query import NO_BEAM, make_query
from labeltree.storage.files import write_whole
from labeltree.wording import align

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from labeltree.data.formats import Reading
    from labeltree.data.rows import LabelRows, SparseRows
    from labeltree.model import Model

BEAMS = "1,2,5,10,20,50"


@click.command(
    "compare-search", cls=SavingCommand, saving="a smaller -k, or DATA in several files, needs less"
)
@model_argument
@click.argument("data")
@click.option("--beam", "beams", type=Ranks(), default=BEAMS, show_default=True, help="Beams to compare.")
@click.option("-k", "ranks", type=Ranks(), default="1,3,5", show_default=True, help="As in `test`.")
@json_option
@click.option("--missed", type=OutputFile(), metavar="FILE.tsv", help="Write each label that is missed.")
@normalize_option
@reading_options
@skip_option
def compare_search(
    model: Path,
    data: str,
    beams: tuple[int, ...],
    ranks: tuple[int, ...],
    as_json: bool,
    missed: Path | None,
    normalize: bool,
    reading: Reading,
    skip_bad_lines: bool,
) -> None:
    """Compare --search auto and beams with exact search on DATA: what they miss, precision, CPU time."""
    from labeltree.cli.reports import json_text

    if missed is not None:
        check_output(missed, inputs=(model, data))
    loaded, rows = load_with_data(model, data, reading, skip_bad_lines=skip_bad_lines)
    counts = rows.counts("compare")
    print_lines(counts.notices(rows.name), err=True)
    found = list(compare_searches(loaded, rows.rows, rows.labels, ranks, beams, normalize=normalize))
    if missed is not None:
        write_missed(missed, loaded, found)
    if as_json:
        facts = {"examples": counts.rows, "k": min(max(ranks), loaded.n_labels)}
        print_lines([json_text({**facts, "searches": [comparison.facts() for comparison in found]})])
    else:
        print_lines(comparison_lines(found))


class Comparison(NamedTuple):
    """A search over all rows, and how its labels differ from those of exact search."""

    search: str
    beam: int  # or NO_BEAM
    precision: dict[str, float]  # p@k
    microseconds_per_row: float  # of CPU, on one thread
    rows_that_differ: float  # share of the rows that get another set of labels
    labels_missed: float  # share of the exact search's labels
    rows_proven: float  # share of the rows whose labels are proven to be the best ones
    missed_rows: NDArray[np.int64]  # (n_missed,) rows and ...
    missed_ids: NDArray[np.int32]  # (n_missed,) ... label ids that only exact search finds

    @property
    def title(self) -> str:
        return self.search if self.beam == NO_BEAM else f"{self.search} {self.beam}"

    def facts(self) -> dict[str, Any]:
        """For ``--json``."""
        beam = {} if self.beam == NO_BEAM else {"beam": self.beam}
        names = ("microseconds_per_row", "rows_that_differ", "labels_missed", "rows_proven")
        return {"search": self.search, **beam, **self.precision, **{n: getattr(self, n) for n in names}}


def compare_searches(
    model: Model,
    rows: SparseRows,
    labels: LabelRows,
    ranks: Sequence[int],
    beams: Sequence[int],
    *,
    normalize: bool = False,
) -> Iterator[Comparison]:
    """Exact search, auto, then each beam, for the largest of the ranks; on one thread, for its CPU time."""
    import numpy as np

    from labeltree.data.rows import first_rows
    from labeltree.metrics.matching import Matched
    from labeltree.metrics.measures import METRICS

    most, precision = max(ranks), METRICS["p"]
    exact: NDArray[np.int32] | None = None
    for search, beam in (("exact", None), ("auto", None), *(("beam", beam) for beam in beams)):
        query = make_query(most, normalize=normalize, search=search, beam=beam)
        model.best(first_rows(rows, 2), query, threads=1)  # loading machine code is no part of its speed
        started = time.thread_time()
        ids, _, is_proven = model.best(rows, query, threads=1)
        seconds = time.thread_time() - started
        exact = ids if exact is None else exact
        missed = (exact >= 0) & ~np.isin(_keys(exact, model.n_labels), _keys(ids, model.n_labels))
        matched = Matched(ids, labels, ranks)
        yield Comparison(
            search,
            query.beam,
            {f"p@{k}": precision.at(matched, k) for k in ranks},
            1e6 * seconds / rows.n_rows,
            float(missed.any(axis=1).mean()),
            float(missed.sum() / np.count_nonzero(exact >= 0)),
            float(is_proven.mean()),
            np.nonzero(missed)[0],
            exact[missed],
        )


def _keys(ids: NDArray[np.int32], n_labels: int) -> NDArray[np.int64]:
    """A number for each pair of a row and one of its labels, or -1."""
    import numpy as np

    return np.arange(len(ids))[:, None] * (n_labels + 1) + ids + 1


def comparison_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """A line per search, shares and precisions in percent."""
    names = list(comparisons[0].precision)
    shares = ("rows that differ", "labels missed", "rows proven")
    table = [["search", *(name.upper() for name in names), "µs/row", *shares]]
    for comparison in comparisons:
        precision = [f"{100 * value:.2f}" for value in comparison.precision.values()]
        of_rows = comparison.rows_that_differ, comparison.labels_missed, comparison.rows_proven
        percent = [f"{100 * share:.2f}" for share in of_rows]
        table.append([comparison.title, *precision, f"{comparison.microseconds_per_row:.1f}", *percent])
    return align(table)


def write_missed(path: Path, model: Model, comparisons: Sequence[Comparison]) -> None:
    """A table of the labels that only exact search finds: beam (or auto), row (the first is 1) and label."""
    from labeltree.wording import escape_name

    names = model.label_names
    lines = ["beam\trow\tlabel\n"]
    for comparison in comparisons:
        pairs = zip(comparison.missed_rows.tolist(), comparison.missed_ids.tolist(), strict=True)
        search = comparison.search if comparison.beam == NO_BEAM else comparison.beam
        lines += [f"{search}\t{row + 1}\t{escape_name(names[id])}\n" for row, id in pairs]
    write_whole(path, [line.encode() for line in lines])
