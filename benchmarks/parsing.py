"""How fast a plain fastText file becomes hashed, looked-up token ids, on one thread.

    python -m benchmarks.parsing [FILE...]

Without files it takes two of the real data sets (folder: LABELTREE_DATA). The file is in the page cache;
the best of five runs counts. "learn" builds the tables of words and labels on the way, "look up" has them.
Times are CPU times, so that other programs on the machine disturb less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.datasets import MissingData, data_file
from labeltree.config import make_config
from labeltree.data.bad_lines import BadLines
from labeltree.data.reading import read_blocks
from labeltree.features.splitting import split_block
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures

BAR = 100  # MB/s, for learning as for looking up
RUNS = 5
DATA_SETS = ("debian-debtags", "llms4subjects-all")


def read_only(path: Path) -> int:
    return sum(block.n_rows for block in read_blocks(path, "fasttext", bad_lines=BadLines()))


def learn(path: Path) -> tuple[StringTable, StringTable]:
    """Every word and label of the file gets an id."""
    words, labels = StringTable(), StringTable()
    for block in read_blocks(path, "fasttext", bad_lines=BadLines()):
        for batch in split_block(block, make_config(), BadLines()):
            words.insert(batch.words, batch.n_words)
            labels.insert(batch.labels, batch.n_labels)
    return words, labels


def look_up(path: Path, words: StringTable, labels: StringTable) -> int:
    n_words = 0
    for block in read_blocks(path, "fasttext", bad_lines=BadLines()):
        for batch in split_block(block, make_config(), BadLines()):
            words.find(batch.words, batch.n_words)
            labels.find(batch.labels, batch.n_labels)
            n_words += batch.n_words
    return n_words


def best_seconds(function: Callable[[], object]) -> float:
    def seconds() -> float:
        start = time.thread_time()
        function()
        return time.thread_time() - start

    return min(seconds() for _ in range(RUNS))


def measure(name: str, path: Path) -> bool:
    megabytes = path.stat().st_size / 1e6
    words, labels = learn(path)  # also compiles, and brings the file into the page cache
    n_words = look_up(path, words, labels)
    speeds = [
        megabytes / best_seconds(function)
        for function in (
            lambda: read_only(path),
            lambda: learn(path),
            lambda: look_up(path, words, labels),
            lambda: TextFeatures.fit(read_blocks(path, "fasttext", bad_lines=BadLines()), make_config()),
        )
    ]
    columns = "".join(f"{speed:>11.0f}" for speed in speeds)
    print(f"{name:<24}{megabytes:>7.1f}{n_words:>12}{len(words):>10}{columns}")
    return min(speeds[1:3]) >= BAR


def default_files() -> dict[str, Path]:
    files = {}
    for name in DATA_SETS:
        try:
            files[name] = data_file(name, "train")
        except MissingData as error:
            print(error)
    return files


def main(arguments: list[str]) -> int:
    files = {name: Path(name) for name in arguments} or default_files()
    print(f"{'':24}{'MB':>7}{'words':>12}{'distinct':>10}{'MB/s: read':>11}{'learn':>11}", end="")
    print(f"{'look up':>11}{'whole fit':>11}")
    reached = [measure(name, path) for name, path in files.items()]
    print(f"bar: learn and look up at least {BAR} MB/s: {'reached' if all(reached) else 'MISSED'}")
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
