"""Choosing parameters without the test rows: nine tenths of the training file train, the rest judges.

    python -m benchmarks.validate --data bibtex,debian-debtags --set C=0.5,0.7,1 --set arity=16,32 --seeds 1,2
    python -m benchmarks.validate --data wordnet-hypernyms --preset paper --set lr=0.1,0.2 --rows 20000

Every combination of the values is trained on every data set with every seed, and a table shows the means over
seeds and, last, over data sets. The rows held out are contiguous blocks, because neighbours in a file are
often relatives (debian-debtags: packages of one source); another seed holds out other blocks. With
`--split rows` they are single rows, drawn at random, whose relatives may be trained on: test files of either
kind are met. `--rows` draws so many rows of larger files first, which are then split. CPU time is that of
training without reading, kernels compiled before.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import labeltree
from benchmarks.datasets import ALL_SETS, MissingData, data_file
from benchmarks.report import aligned, number
from labeltree.config import PRESETS, parameters
from labeltree.errors import ParameterError
from labeltree.experts.job import Progress
from labeltree.metrics import calibration_error, evaluate
from labeltree.parameter import Parameter, parsed

K = 5
PARTS = 10  # one of them is held out
BLOCKS_PER_PART = 10
SAMPLE_SEED = 1  # one sample for all that are compared
WARM_UP_ROWS = 500
TITLES = ("P@1", "P@3", "P@5", "ECE@5", "train CPU s", "model MB")

Combination = Mapping[str, Any]


class Split(NamedTuple):
    train: Path
    held_out: Path


class Result(NamedTuple):
    """In the order of TITLES: percents, a mean difference of probabilities, seconds, megabytes."""

    p_1: float
    p_3: float
    p_5: float
    calibration: float
    cpu_seconds: float
    megabytes: float


def split(source: Path, folder: Path, seed: int, kind: str = "blocks") -> Split:
    """Write both parts of a training file; which blocks or rows are held out depends on the seed."""
    header, rows = _read(source)
    is_held_out = SPLITS[kind](len(rows), seed)
    kept = [row for row, out in zip(rows, is_held_out, strict=True) if not out]
    held_out = [row for row, out in zip(rows, is_held_out, strict=True) if out]
    found = Split(folder / f"{source.stem}.{seed}.train.txt", folder / f"{source.stem}.{seed}.held-out.txt")
    for path, chosen in zip(found, (kept, held_out), strict=True):
        _write(path, header, chosen)
    return found


def sample(source: Path, folder: Path, n_rows: int) -> Path:
    """A file of so many rows, drawn at random and in their order; the file itself if it has no more."""
    header, rows = _read(source)
    if len(rows) <= n_rows:
        return source
    drawn = np.sort(np.random.default_rng(SAMPLE_SEED).permutation(len(rows))[:n_rows])
    path = folder / f"{source.stem}.{n_rows}.txt"
    _write(path, header, [rows[i] for i in drawn])
    return path


def _read(source: Path) -> tuple[list[bytes], list[bytes]]:
    """The header of an XMLC file, which others do not have, and the rows."""
    lines = source.read_bytes().splitlines(keepends=True)
    header = _xmlc_header(lines[0]) if lines else []
    return header, lines[1:] if header else lines


def _write(path: Path, header: Sequence[bytes], rows: Sequence[bytes]) -> None:
    first = [b" ".join([str(len(rows)).encode(), *header[1:]]) + b"\n"] if header else []
    path.write_bytes(b"".join([*first, *rows]))


def _blocks(n_rows: int, seed: int) -> NDArray[np.bool_]:
    n_blocks = max(1, min(PARTS * BLOCKS_PER_PART, n_rows))
    starts = np.arange(n_blocks + 1) * n_rows // n_blocks
    return np.repeat(np.arange(n_blocks) % PARTS == seed % PARTS, np.diff(starts))


def _single_rows(n_rows: int, seed: int) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).permutation(n_rows) % PARTS == 0


SPLITS: Mapping[str, Callable[[int, int], NDArray[np.bool_]]] = {"blocks": _blocks, "rows": _single_rows}


def _xmlc_header(line: bytes) -> list[bytes]:
    """Rows, features and labels, if this is the first line of an XMLC file."""
    words = line.split()
    return words if len(words) == 3 and all(word.isdigit() for word in words) else []


def measure(given: Split, combination: Combination, seed: int, threads: int, folder: Path) -> Result:
    """Train on one part, judge by the other."""
    began = 0.0

    def watch(progress: Progress) -> None:
        nonlocal began
        if progress.stage == "read":
            began = time.process_time()

    model = labeltree.train(str(given.train), threads=threads, seed=seed, callback=watch, **combination)
    cpu_seconds = time.process_time() - began
    model.save(folder / "model")
    X, Y, _ = model.read(given.held_out)
    ids, probabilities = model.predict_arrays(X, K, threads=threads)
    precisions = evaluate(ids, Y, (1, 3, 5))
    return Result(
        100 * precisions["p@1"],
        100 * precisions["p@3"],
        100 * precisions["p@5"],
        calibration_error(ids, probabilities, Y, K),
        cpu_seconds,
        (folder / "model").stat().st_size / 1e6,
    )


def warm_up(source: Path, combination: Combination, folder: Path) -> None:
    """Compile the kernels of a combination, on a few rows."""
    lines = source.read_bytes().splitlines(keepends=True)[: WARM_UP_ROWS + 1]
    header = _xmlc_header(lines[0])
    if header:
        lines[0] = b" ".join([str(len(lines) - 1).encode(), *header[1:]]) + b"\n"
    few = folder / "few.txt"
    few.write_bytes(b"".join(lines))
    measure(Split(few, few), combination, 1, 1, folder)


def mean(results: Sequence[Result]) -> Result:
    return Result(*(statistics.mean(column) for column in zip(*results, strict=True)))


def shown(result: Result) -> list[str]:
    precisions = [f"{value:.2f}" for value in result[:3]]
    return [*precisions, f"{result.calibration:.4f}", number(result.cpu_seconds), number(result.megabytes)]


def named(combination: Combination, varied: Sequence[str]) -> str:
    """A combination by the parameters that differ between them."""
    return " ".join(f"{name}={combination[name]}" for name in varied) or "all as given"


def parse_values(parameter: Parameter, text: str) -> list[Any]:
    """The comma-separated values of a parameter; whether they make sense is checked by training."""
    try:
        return [parsed(parameter, word) for word in text.split(",")]
    except ParameterError as error:
        raise SystemExit(str(error)) from None


def combinations(settings: Sequence[str]) -> tuple[list[Combination], list[str]]:
    """All combinations of `name=value,value` settings, and the names of those with several values."""
    known = {parameter.name: parameter for parameter in parameters()}
    values: dict[str, list[Any]] = {}
    for setting in settings:
        written, equals, text = setting.partition("=")
        name = written.replace("-", "_")
        if not equals or name not in known:
            raise SystemExit(f"--set {setting}: not NAME=VALUE,VALUE; known are {', '.join(known)}")
        values[name] = parse_values(known[name], text)
    found: list[Combination] = [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]
    return found, [name for name, choices in values.items() if len(choices) > 1]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help=f"comma-separated, of {', '.join(ALL_SETS)}")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE,VALUE", help="a parameter of labeltree"
    )
    parser.add_argument("--preset", choices=PRESETS, help="what the values change; default: the defaults")
    parser.add_argument("--rows", type=int, help="of larger files only so many rows, drawn at random")
    parser.add_argument("--seeds", default="1", help="comma-separated; default: 1")
    parser.add_argument("--split", choices=SPLITS, default="blocks", help="what is held out; default: blocks")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(argv)
    tried, varied = combinations(chosen.set)
    if chosen.preset:
        tried = [{"preset": chosen.preset, **combination} for combination in tried]
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    fixed = {name: value for name, value in tried[0].items() if name not in varied}
    how = f"seeds {seeds}, {chosen.threads} thread(s), fixed: {fixed or 'defaults'}"
    print(f"held-out training rows ({chosen.split}), {how}")
    results: dict[tuple[str, int], Result] = {}  # (data set, number of the combination)
    with tempfile.TemporaryDirectory(prefix="labeltree-validate-") as temporary:
        folder = Path(temporary)
        for name in chosen.data.split(","):
            try:
                source = data_file(name, "train")
            except MissingData as error:
                print(error)
                continue
            if chosen.rows:
                source = sample(source, folder, chosen.rows)
            splits = {seed: split(source, folder, seed, chosen.split) for seed in seeds}
            for i, combination in enumerate(tried):
                if not any(key[1] == i for key in results):
                    warm_up(source, combination, folder)
                runs = [measure(splits[seed], combination, seed, chosen.threads, folder) for seed in seeds]
                results[name, i] = mean(runs)
                print(name, named(combination, varied), *shown(results[name, i]), flush=True)
            for path in itertools.chain.from_iterable(splits.values()):
                path.unlink()
    print("\n" + table(results, [named(combination, varied) for combination in tried]))


def table(results: Mapping[tuple[str, int], Result], names: Sequence[str]) -> str:
    """One row per data set and combination, then the means over data sets; best P@k of each group in bold."""
    groups: dict[str, dict[int, Result]] = {}
    for (data, i), result in results.items():
        groups.setdefault(data, {})[i] = result
    if len(groups) > 1:
        each = range(len(names))
        groups["mean"] = {i: mean([found[i] for found in groups.values()]) for i in each}
    rows = [["data set", "parameters", *TITLES]]
    for data, found in groups.items():
        for i, result in found.items():
            cells = shown(result)
            for column in range(3):
                if len(found) > 1 and result[column] == max(other[column] for other in found.values()):
                    cells[column] = f"**{cells[column]}**"
            rows.append([data, names[i], *cells])
    return aligned(rows)


if __name__ == "__main__":
    main()
