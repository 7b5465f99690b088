"""Two revisions of labeltree side by side: whether models are still the same, and whether anything is slower.

    python -m benchmarks.revisions same --base REVISION [--sets NAME ...] [--variants NAME ...] [--keep FILE]
    python -m benchmarks.revisions speed --base REVISION [--sets NAME ...] [--repeats 5]

`same`: each data set is trained with each variant (the defaults and the presets) by both revisions; P@k and
all tensors of the model files must be equal, metadata may differ. With --keep, results are kept in a file and
a model is only trained for sources that it was not trained with before.

`speed`: CPU seconds of training, of a batch and of single rows, in turns, the best of the repeats of each;
nothing may be more than 3 % slower. Single rows and batches are measured as `benchmarks.compare` does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.commands import verdict
from benchmarks.datasets import ALL_SETS, MissingData, both_files

ROOT = Path(__file__).parents[1]
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"preset": "paper"},
    "fasttext-hs": {"preset": "fasttext-hs"},
}
TIMED_SETS = ("debian-debtags", "wordnet-hypernyms")
MOST_SLOWER = 1.03

# Both programs run with the source of either revision, so they use the public interface only.
_TRAIN = """
import json, sys
import labeltree
train, test, model, how = sys.argv[1:]
labeltree.train(train, **json.loads(how)).save(model)
measures = labeltree.load(model).test(test)
print(json.dumps({name: measures[name] for name in ("p@1", "p@3", "p@5")}))
"""
_TIME = """
import json, sys, time
import labeltree
train, test, model = sys.argv[1:]
began = time.process_time()
labeltree.train(train, threads=1).save(model)
found = {"train": time.process_time() - began}
loaded = labeltree.load(model)
rows = loaded.read(test)[0]
texts = [" ".join(w for w in line.split() if not w.startswith("__label__")) for line in open(test)]

def best(call, repeats=5):
    seconds = []
    call()
    for _ in range(repeats):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)

found["batch of rows"] = best(lambda: loaded.predict_arrays(rows, 5, threads=1))
found["batch of texts"] = best(lambda: loaded.predict_arrays(texts, 5, threads=1), 2)
single = [[text] for text in texts[:2000]]
found["single texts"] = best(lambda: [loaded.predict(text, 5, threads=1) for text in single], 7)
print(json.dumps(found))
"""


def source_of(revision: str | None, folder: Path) -> Path:
    """The ``src`` folder of a revision (None: as it is now), as a copy below ``folder``."""
    target = folder / (revision or "present")
    target.mkdir(parents=True)
    if revision is None:
        shutil.copytree(ROOT / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__"))
    else:
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x"], cwd=target, input=archive.stdout, check=True)
    return target / "src"


def digest_of(source: Path) -> str:
    """Of all Python files."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(f"{path.relative_to(source)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def tensor_digests(model: Path) -> dict[str, str]:
    """Name, type, shape and bytes of each tensor of a model file, but for padding and the file's digest."""
    content = model.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, entry in json.loads(content[8:start]).items():
        if name in ("__metadata__", "digest") or name.startswith("pad."):
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        what = f"{entry['dtype']} {entry['shape']}\n".encode() + content[begin:end]
        found[name] = hashlib.sha256(what).hexdigest()[:16]
    return found


def run(source: Path, program: str, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, check=True, capture_output=True
    )
    return dict(json.loads(done.stdout))


def train(source: Path, name: str, variant: str, folder: Path) -> dict[str, Any]:
    """P@k and the tensors of a model."""
    model = folder / "model"
    data = map(str, both_files(name))
    measures = run(source, _TRAIN, *data, str(model), json.dumps(VARIANTS[variant]))
    return {"measures": measures, "tensors": tensor_digests(model)}


class Kept:
    """Results by source, data set and variant, in a file that grows by a line each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.is_file() else []
        self.found = {tuple(entry["key"]): entry["result"] for entry in map(json.loads, lines)}

    def get(self, key: tuple[str, ...], source: Path, folder: Path) -> dict[str, Any]:
        if key not in self.found:
            self.found[key] = train(source, *key[1:], folder)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps({"key": key, "result": self.found[key]}) + "\n")
        return self.found[key]


def compare_models(base: str, sets: Sequence[str], variants: Sequence[str], keep: Path | None) -> bool:
    kept, are_same = Kept(keep), True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [source_of(base, folder), source_of(None, folder)]
        digests = [digest_of(source) for source in sources]
        for data in _present(sets):
            for variant in variants:
                before, now = (
                    kept.get((digest, data, variant), source, folder)
                    for digest, source in zip(digests, sources, strict=True)
                )
                differ = _differences(before["tensors"], now["tensors"])
                is_same = not differ and before["measures"] == now["measures"]
                are_same &= is_same
                shown = "/".join(f"{100 * value:.2f}" for value in now["measures"].values())
                told = "the same tensors" if is_same else f"differ: {', '.join(differ) or 'P@k'}"
                print(f"{data:22} {variant:12} P@1/3/5 {shown:18} {told}: {verdict(is_same)}", flush=True)
    return are_same


def _differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def compare_speed(base: str, sets: Sequence[str], repeats: int) -> bool:
    is_good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {"base": source_of(base, folder), "present": source_of(None, folder)}
        for data in _present(sets):
            files = list(map(str, both_files(data)))
            best: dict[str, dict[str, float]] = {}
            for number in range(repeats + 1):
                for who, source in sources.items():
                    found = run(source, _TIME, *files, str(folder / "model"))
                    if number:  # the first compiles
                        known = best.setdefault(who, found)
                        best[who] = {what: min(known[what], seconds) for what, seconds in found.items()}
            for what, seconds in best["present"].items():
                share = seconds / best["base"][what]
                is_good &= share <= MOST_SLOWER
                print(
                    f"{data:22} {what:15} {best['base'][what]:7.3f} -> {seconds:7.3f} s, times {share:.3f}"
                    f"  bar {MOST_SLOWER}: {verdict(share <= MOST_SLOWER)}",
                    flush=True,
                )
    return is_good


def _present(sets: Sequence[str]) -> Iterator[str]:
    for name in sets:
        try:
            both_files(name)
        except MissingData as error:
            print(error)
        else:
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("section", choices=("same", "speed"))
    parser.add_argument("--base", required=True, help="the revision to compare with")
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, help="default: all; of speed: two")
    parser.add_argument("--variants", nargs="+", choices=tuple(VARIANTS), default=tuple(VARIANTS))
    parser.add_argument("--keep", type=Path, metavar="FILE", help="of same: where results are kept")
    parser.add_argument("--repeats", type=int, default=5, help="of speed; default: 5")
    chosen = parser.parse_args()
    if chosen.section == "same":
        is_good = compare_models(chosen.base, chosen.sets or ALL_SETS, chosen.variants, chosen.keep)
    else:
        is_good = compare_speed(chosen.base, chosen.sets or TIMED_SETS, chosen.repeats)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
