"""The real data sets: found in LABELTREE_DATA (or beside the checkout), unpacked once into a cache folder."""

from __future__ import annotations

import lzma
import os
import shutil
import tempfile
from pathlib import Path

TEXT_SETS = (
    "cooking-stackexchange",
    "debian-debtags",
    "wordnet-hypernyms",
    "llms4subjects-all",
    "acl-authors",
)
ALL_SETS = (*TEXT_SETS, "bibtex", "delicious")


class MissingData(Exception):
    """A data set is not on this machine."""


def folder() -> Path:
    return Path(os.environ.get("LABELTREE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def both_files(name: str) -> tuple[Path, Path]:
    """The unpacked training and test files of a data set."""
    return data_file(name, "train"), data_file(name, "test")


def data_file(name: str, part: str) -> Path:
    """The unpacked ``train`` or ``test`` file of a data set."""
    packed = folder() / name / f"{part}.txt.xz"
    if not packed.is_file():
        raise MissingData(
            f"{name}: skipped, {packed} not found; set LABELTREE_DATA to the folder of the data sets"
        )
    target = Path(tempfile.gettempdir()) / "labeltree-benchmarks" / f"{name}.{part}.txt"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        with lzma.open(packed) as source, partial.open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 22)
        partial.replace(target)
    return target
