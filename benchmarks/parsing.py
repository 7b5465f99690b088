"""How fast a plain fastText file becomes hashed, looked-up token ids, on one thread.

    python -m benchmarks.parsing [FILE...]
    python -m benchmarks.parsing --jsonl [FILE...]

Without files it takes two of the real data sets (folder: LABELTREE_DATA). The file is in the page cache;
the best of five runs counts. "learn" builds the tables of words and labels on the way, "look up" has them.
Times are CPU times, so that other programs on the machine disturb less.

With --jsonl the same texts are read as JSON lines, by orjson as the package does and by the standard library.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import orjson

from benchmarks.datasets import MissingData, data_file
from labeltree.config import make_config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import FORMATS
from labeltree.data.opening import Source
from labeltree.data.rows import Block
from labeltree.features.splitting import split_block
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures

BAR = 100  # MB/s, for learning as for looking up
RUNS = 5
DATA_SETS = ("debian-debtags", "wordnet-hypernyms", "llms4subjects-all")


def blocks_of(path: Path, fmt: str = "fasttext") -> Iterator[Block]:
    return FORMATS[fmt].content(Source(path), BadLines())


def read_only(path: Path, fmt: str = "fasttext") -> int:
    return sum(block.n_rows for block in blocks_of(path, fmt))


def fit(path: Path, fmt: str = "fasttext") -> object:
    return TextFeatures.fit(blocks_of(path, fmt), make_config())


def learn(path: Path) -> tuple[StringTable, StringTable]:
    """Every word and label of the file gets an id."""
    words, labels = StringTable(), StringTable()
    for block in blocks_of(path):
        for batch in split_block(block, make_config(), BadLines()):
            words.insert(batch.words, batch.n_words)
            labels.insert(batch.labels, batch.n_labels)
    return words, labels


def look_up(path: Path, words: StringTable, labels: StringTable) -> int:
    n_words = 0
    for block in blocks_of(path):
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
            lambda: fit(path),
        )
    ]
    columns = "".join(f"{speed:>11.0f}" for speed in speeds)
    print(f"{name:<24}{megabytes:>7.1f}{n_words:>12}{len(words):>10}{columns}")
    return min(speeds[1:3]) >= BAR


def write_jsonl(path: Path, out: Path) -> None:
    """The texts and labels of a fastText file as JSON lines."""
    prefix = make_config().label_prefix
    with path.open(encoding="utf-8", newline="\n") as lines, out.open("w", encoding="utf-8") as written:
        for line in lines:
            words = line.split()
            labels = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
            text = " ".join(word for word in words if not word.startswith(prefix))
            written.write(json.dumps({"text": text, "labels": labels}, ensure_ascii=False) + "\n")


def measure_jsonl(name: str, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "data.jsonl"
        write_jsonl(path, lines)
        megabytes, n_rows = lines.stat().st_size / 1e6, read_only(lines, "jsonl")
        parsers = ("orjson.loads", orjson.loads), ("json.loads", lambda line: json.loads(line.decode()))
        for parser, loads in parsers:
            with mock.patch("labeltree.data.jsonl.orjson.loads", loads):
                speeds = [
                    megabytes / best_seconds(lambda read=read: read(lines, "jsonl"))  # type: ignore[misc]
                    for read in (read_only, fit)
                ]
            columns = "".join(f"{speed:>11.0f}" for speed in speeds)
            print(f"{name:<24}{megabytes:>7.1f}{n_rows:>12}  {parser:<12}{columns}", flush=True)


def default_files() -> dict[str, Path]:
    files = {}
    for name in DATA_SETS:
        try:
            files[name] = data_file(name, "train")
        except MissingData as error:
            print(error)
    return files


def main(arguments: list[str]) -> int:
    as_jsonl, names = "--jsonl" in arguments, [name for name in arguments if name != "--jsonl"]
    files = {name: Path(name) for name in names} or default_files()
    if as_jsonl:
        print(f"{'':24}{'MB':>7}{'rows':>12}  {'by':<12}{'MB/s: read':>11}{'whole fit':>11}")
        for name, path in files.items():
            measure_jsonl(name, path)
        return 0
    print(f"{'':24}{'MB':>7}{'words':>12}{'distinct':>10}{'MB/s: read':>11}{'learn':>11}", end="")
    print(f"{'look up':>11}{'whole fit':>11}")
    reached = [measure(name, path) for name, path in files.items()]
    print(f"bar: learn and look up at least {BAR} MB/s: {'reached' if all(reached) else 'MISSED'}")
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
