"""What we promise of training and prediction: each section prints its numbers beside the bar.

    python -m benchmarks.bars [SECTION ...] [--preset fast,default,best] [--nodes sparse,dense] [--seeds 3]
                              [--data NAME,NAME]

For each preset ("default": none) and, if given, each kind of nodes with it; without either the defaults, and
one tree on words (`--preset fast`) of sparse and of dense nodes. Every `labeltree train` runs as its own
process; CPU time is user + system time of all its threads, and kernels are compiled before. Parsing and
compiling have their own commands, `python -m benchmarks.parsing` and `python -m benchmarks.cold`; what is
promised beside peers stands in `preset_bars.py`, for `python -m benchmarks.compare`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.commands import peak_of, run, test, train, train_command, verdict
from benchmarks.datasets import ALL_SETS, MissingData, data_file
from benchmarks.forest_bars import forest
from benchmarks.ways import ONE_TREE, PRESETS, Way, ways

MEMORY_SETS = ("wordnet-hypernyms", "llms4subjects-all")


def accuracy(folder: Path, chosen: argparse.Namespace) -> None:
    """P@1/3/5 and ECE@5 over all test rows: mean and spread over seeds; the least CPU time of training."""
    print("\n## accuracy: `labeltree train` + `labeltree test`, mean [lowest..highest] over seeds")
    for name, way in itertools.product(chosen.data, chosen.ways):
        tested, seconds, model = [], list[float](), folder / "accuracy.labeltree"
        for seed in range(1, chosen.seeds + 1):
            seconds.append(train(name, way, model, "--seed", str(seed)).cpu_seconds)
            tested.append(test(name, model))
        told = f"{judged(tested, way, name)}  {judged_cost(seconds, way, name)}"
        print(f"{name:<24}{way!s:<16}{told}", flush=True)


def judged(tested: Sequence[Mapping[str, float]], way: Way, data: str) -> str:
    """What `labeltree test` said of each seed, beside the bars."""
    columns = {f"P@{k}": [100 * result[f"p@{k}"] for result in tested] for k in (1, 3, 5)}
    means = [statistics.mean(column) for column in columns.values()]
    shown = [
        f"{title} {mean:.2f} [{min(column):.2f}..{max(column):.2f}]"
        for (title, column), mean in zip(columns.items(), means, strict=True)
    ]
    bar = way.accuracy_bar(data)
    if bar:
        reached = all(mean >= wanted for mean, wanted in zip(means, bar, strict=True))
        shown.append(f"bar {'/'.join(map(str, bar))}: {verdict(reached)}")
    error = statistics.mean(result["ece@5"] for result in tested)
    shown.append(f"ECE@5 {error:.4f}")
    most = way.calibration_bar
    if most:
        shown.append(f"bar below {most}: {verdict(error < most)}")
    return "  ".join(shown)


def judged_cost(seconds: Sequence[float], way: Way, data: str) -> str:
    """The least CPU time of all seeds: what others do on the machine only adds to it."""
    bar = way.cpu_bar(data)
    least = min(seconds)
    return f"CPU {least:.1f} s" + (f"  bar {bar:.0f} s: {verdict(least <= bar)}" if bar else "")


def cost(folder: Path, chosen: argparse.Namespace) -> None:
    """CPU time of the whole `labeltree train` process."""
    print("\n## training cost: CPU seconds of the whole process, best of three")
    for name, way in itertools.product(chosen.data, chosen.ways):
        model = folder / "cost.labeltree"
        runs = {
            threads: [train(name, way, model, "--threads", threads) for _ in range(3)]
            for threads in ("1", "2")
        }
        shown = "  ".join(
            f"{threads} thread(s): CPU {min(r.cpu_seconds for r in part):.1f} s, "
            f"wall {min(r.wall_seconds for r in part):.1f} s"
            for threads, part in runs.items()
        )
        if way.cpu_bar(name):
            worst = max(min(r.cpu_seconds for r in part) for part in runs.values())
            shown += f"  both: {judged_cost([worst], way, name)}"
        print(f"{name:<24}{way!s:<16}{shown}", flush=True)


def determinism(folder: Path, chosen: argparse.Namespace) -> None:
    """One and two threads, twice each, write the same bytes."""
    print("\n## determinism: SHA-256 of the model files of --threads 1, 2, 1, 2")
    for name, way in itertools.product(chosen.data, chosen.ways):
        model = folder / "same.labeltree"
        digests = []
        for threads in ("1", "2", "1", "2"):
            train(name, way, model, "--threads", threads)
            digests.append(hashlib.sha256(model.read_bytes()).hexdigest()[:16])
        reached = verdict(len(set(digests)) == 1)
        print(f"{name:<24}{way!s:<16}{' '.join(digests)}  bar identical: {reached}", flush=True)


def memory(folder: Path, chosen: argparse.Namespace) -> None:
    """Peak of `labeltree train` against 2.5 x (CSR data + label profiles + parameters) + 300 MB."""
    from labeltree.config import Config
    from labeltree.model import load
    from labeltree.parallel import Pool
    from labeltree.training.data import read_training_data
    from labeltree.trees.profiles import label_profiles

    print("\n## memory: peak resident size of `labeltree train`")
    for name, way in itertools.product(MEMORY_SETS, chosen.ways):
        model = folder / "memory.labeltree"
        peak = peak_of(*train_command(name, way, model))
        data = read_training_data(str(data_file(name, "train")), None, Config())
        with Pool(1) as pool:
            profiles = label_profiles(data.X, data.Y, pool)
        csr = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
        profile_bytes = sum(array.nbytes for array in profiles[:3])
        parameters = load(model).inspect()["parameter_bytes"]
        bar = 2.5 * (csr + profile_bytes + parameters) + 300e6
        print(
            f"{name:<24}{way!s:<16}peak {peak / 1e6:.0f} MB; data {csr / 1e6:.0f} + profiles "
            f"{profile_bytes / 1e6:.0f} + parameters {parameters / 1e6:.0f} MB  "
            f"bar {bar / 1e6:.0f} MB: {verdict(peak <= bar)}",
            flush=True,
        )


def best_microseconds(function: Callable[[], object], repeats: int, rounds: int = 15) -> float:
    """CPU time of this thread, so that other programs on the machine disturb less; it never waits."""

    def once() -> float:
        began = time.thread_time()
        for _ in range(repeats):
            function()
        return (time.thread_time() - began) / repeats * 1e6

    return min(once() for _ in range(rounds))


def prediction(folder: Path, chosen: argparse.Namespace) -> None:
    """Batch, single prepared row, raw string; one thread, k=5."""
    print("\n## prediction: wordnet-hypernyms, k=5, CPU time of one thread, best of 15 rounds")
    name, file = "wordnet-hypernyms", folder / "prediction.labeltree"
    test = data_file(name, "test")
    lines = test.read_text().splitlines()[:200]
    texts = [" ".join(w for w in line.split() if not w.startswith("__label__")) for line in lines]
    for way in chosen.ways:
        train(name, way, file)
        for what, bar, microseconds in prediction_times(file, test, texts):
            reached = verdict(microseconds <= bar)
            print(f"{what:<24}{way!s:<16}{microseconds:.1f} µs  bar {bar} µs: {reached}", flush=True)


def prediction_times(file: Path, test: Path, texts: list[str]) -> Iterator[tuple[str, int, float]]:
    """What is predicted, the bar, and microseconds per row."""
    from labeltree.data.rows import SparseRows, first_rows
    from labeltree.model import load

    model = load(file)
    X, _, _ = model.read(test)
    batch = first_rows(X, 10_000)
    rows = []
    for i in range(len(texts)):
        part = slice(X.indptr[i], X.indptr[i + 1])
        indptr = X.indptr[i : i + 2] - X.indptr[i]
        rows.append(SparseRows(indptr, X.indices[part].copy(), X.values[part].copy(), X.n_columns))
    single, raw = itertools.cycle(rows), itertools.cycle(texts)
    calls: list[tuple[str, int, Callable[[], object], int, int]] = [
        ("batch of 10^4, per row", 20, lambda: model.predict_arrays(batch, 5, threads=1), 1, batch.n_rows),
        ("one prepared row", 50, lambda: model.predict_arrays(next(single), 5, threads=1), 500, 1),
        ("one raw string", 100, lambda: model.predict([next(raw)], 5, threads=1), 500, 1),
    ]
    for what, bar, call, repeats, n_rows in calls:
        yield what, bar, best_microseconds(call, repeats) / n_rows


def startup(folder: Path, chosen: argparse.Namespace) -> None:
    """CPU time of `--help` and of predicting one line."""
    print("\n## start-up: CPU seconds, best of five")
    show_startup("labeltree --help", 0.3, "--help")
    for way in chosen.ways:
        model = folder / "startup.labeltree"
        train("wordnet-hypernyms", way, model)
        show_startup(f"predict one line, {way}", 1.5, "predict", str(model), "-")


def show_startup(what: str, bar: float, *arguments: str) -> None:
    runs = [run(*arguments, text="a small dog\n") for _ in range(6)]
    seconds = min(run.cpu_seconds for run in runs[1:])  # the first one warms the kernels
    print(f"{what:<32}{seconds:.2f} s  bar {bar} s: {verdict(seconds <= bar)}", flush=True)


SECTIONS = {
    "accuracy": accuracy,
    "cost": cost,
    "determinism": determinism,
    "forest": forest,
    "memory": memory,
    "prediction": prediction,
    "startup": startup,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--seeds", type=int, default=3, help="of accuracy; default: 3")
    parser.add_argument(
        "--data", type=lambda names: names.split(","), default=ALL_SETS, help="of accuracy, cost, determinism"
    )
    parser.add_argument(
        "--preset", type=lambda names: names.split(","), help=f"of {', '.join(PRESETS)}; default: see above"
    )
    parser.add_argument(
        "--nodes",
        type=lambda names: names.split(","),
        help=f"of sparse, dense, both, with `--preset {ONE_TREE}` unless given; default: the preset's own",
    )
    chosen = parser.parse_args()
    for what, given, known in (("section", chosen.sections, SECTIONS), ("preset", chosen.preset, PRESETS)):
        for name in given or ():
            if name not in known:
                parser.error(f"unknown {what} {name!r}; known are {', '.join(known)}")
    chosen.ways = ways(chosen.preset, chosen.nodes)
    with tempfile.TemporaryDirectory() as folder:
        for section in chosen.sections or SECTIONS:
            try:
                SECTIONS[section](Path(folder), chosen)
            except MissingData as error:
                print(error)


if __name__ == "__main__":
    main()
