"""How many passes over the data extremeText's epochs are: `python -m benchmarks.passes`.

An epoch of extremeText 0.8.4 ends when as many tokens are trained as the file has: words, labels and an end
of each line. With TF-IDF weights it counts a word once per row and no ends (`trainThread` in its
`fasttext.cc`), so that an epoch is more than one pass, and its CPU time beside that of `labeltree-xt`, whose
epochs are passes, is of more work. This prints by how much, and the ratio of CPU times per pass.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import compare
from benchmarks.datasets import MissingData, data_file
from benchmarks.overview import standing_of
from benchmarks.peer_bars import SETS, shown, times_less
from benchmarks.preparing import LABEL
from benchmarks.report import aligned
from benchmarks.running import discover


def passes_per_epoch(lines: Iterable[str]) -> float:
    n_tokens, n_counted = 0, 0
    for line in lines:
        tokens = line.split()
        words = [token for token in tokens if not token.startswith(LABEL)]
        n_tokens += len(tokens) + 1
        n_counted += len(set(words)) + len(tokens) - len(words)
    return n_tokens / max(n_counted, 1)


def main() -> None:
    records, tools = compare.Ledger(compare.RESULTS).records, discover(compare.TOOLS)
    rows = [["data set", "passes per epoch", "times less CPU", "times less CPU per pass"]]
    for name in SETS:
        try:
            with data_file(name, "train").open(encoding="utf-8") as lines:
                passes = passes_per_epoch(lines)
        except MissingData as error:
            print(error)
            continue
        ratio = times_less(standing_of(records, name, tools))
        rows.append([name, shown(passes), shown(ratio), shown(ratio and ratio / passes)])
    print(aligned(rows))


if __name__ == "__main__":
    main()
