"""Is the model the same file, wherever and however it is trained?

    python -m benchmarks.same_bytes --data cooking-stackexchange,debian-debtags,wordnet-hypernyms,generated

For each data set: in memory with one thread and with two, from the disk with little memory, on two Dask
workers (its lines in four files, which workers read), and by plan, work and merge. All by the command line,
each in a process of its own. ``generated`` are 50,000 rows of vectors with 10,000 labels.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.datasets import data_file
from benchmarks.generate import Shape, generate

GENERATED = "generated"
SETS = "cooking-stackexchange,debian-debtags,wordnet-hypernyms,generated"
SHAPE = Shape(50_000, 10_000, 50_000, 3.19, 42)
LITTLE = "400MB"
_FILES = 4


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--data", default=SETS, help="comma-separated")
    is_good = True
    for name in parser.parse_args().data.split(","):
        with tempfile.TemporaryDirectory() as folder:
            digests = set()
            for way, digest, seconds in _digests(name, Path(folder)):
                print(f"{name:24} {way:24} {digest[:16]}  {seconds:6.1f} s", flush=True)
                digests.add(digest)
        print(f"{name}: {'the same bytes' if len(digests) == 1 else 'OTHER BYTES'}", flush=True)
        is_good &= len(digests) == 1
    return 0 if is_good else 1


def _digests(name: str, folder: Path) -> Iterator[tuple[str, str, float]]:
    """Each way, the digest of its model, and how long it took."""
    whole = _write_generated(folder) if name == GENERATED else data_file(name, "train")
    data = [str(file) for file in ([whole] if name == GENERATED else _cut(whole, folder))]
    plan, model = str(folder / "plan"), folder / "model"
    ways: dict[str, list[list[str]]] = {
        "1 thread": [["train", *data, "-o", str(model), "--threads", "1"]],
        "2 threads": [["train", *data, "-o", str(model), "--threads", "2"]],
        f"disk, {LITTLE}": [["train", *data, "-o", str(model), "--max-memory", LITTLE]],
        "2 Dask workers": [["train", *data, "-o", str(model), "--workers", "2"]],
        "plan, work, merge": [
            ["plan", *data, "-o", plan],
            ["work", plan, "--threads", "2"],
            ["merge", plan, "-o", str(model)],
        ],
    }
    if len(data) > 1:
        ways["one file"] = [["train", str(whole), "-o", str(model)]]
    for way, commands in ways.items():
        began = time.perf_counter()
        for command in commands:
            subprocess.run(
                [sys.executable, "-m", "labeltree", *command], check=True, capture_output=True, timeout=3600
            )
        yield way, hashlib.sha256(model.read_bytes()).hexdigest(), time.perf_counter() - began
        model.unlink()


def _cut(file: Path, folder: Path) -> list[Path]:
    """Its lines in files; vectors, whose first line is a header, stay in one."""
    lines = file.read_bytes().splitlines(keepends=True)
    if lines[0].split()[0].isdigit():
        return [file]
    edges = [len(lines) * part // _FILES for part in range(_FILES + 1)]
    found = []
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        found.append(folder / f"part-{number}.txt")
        found[-1].write_bytes(b"".join(lines[start:end]))
    return found


def _write_generated(folder: Path) -> Path:
    """As an XMLC file."""
    X, Y, _, _ = generate(SHAPE)
    path = folder / "generated.xmlc"
    with path.open("w") as out:
        out.write(f"{X.n_rows} {X.n_columns} {Y.n_labels}\n")
        for row in range(X.n_rows):
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[entries].tolist(), X.values[entries].tolist(), strict=True)
            out.write(",".join(map(str, labels)) + " " + " ".join(f"{i}:{v:.4f}" for i, v in pairs) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
