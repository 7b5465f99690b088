"""Kernels compiled before they are needed: all of them, or those that a command will call in a while.

A job runs a little of the real thing, so that what it compiles is what will be called. Processes that run
jobs side by side share the work: each kernel is compiled by one of them, and others that need it wait.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labeltree.nodes import KINDS
from labeltree.trees import BUILDERS

if TYPE_CHECKING:
    from labeltree.config import Config
    from labeltree.data.rows import LabelRows, SparseRows
    from labeltree.model import Model

_N_ROWS, _N_LABELS = 600, 8  # enough rows for probabilities to be calibrated
_TEXTS = [f"word{i} word{i % _N_LABELS} word{i % 7}" for i in range(_N_ROWS)]  # tables of words must grow
_LABELS = [[f"label{i % _N_LABELS}"] for i in range(_N_ROWS)]
_SMALL: dict[str, Any] = {"arity": 3, "max_leaves": 3}


def _clusters() -> None:
    from labeltree.parallel import Pool
    from labeltree.trees.kmeans import build_kmeans
    from labeltree.trees.profiles import label_profiles

    with Pool(1) as pool:
        build_kmeans(label_profiles(*_rows(), pool), arity=3, max_leaves=3, pool=pool)


def _large_clusters() -> None:
    import numpy as np

    from labeltree.parallel import Pool
    from labeltree.trees.kmeans import Split, split_large
    from labeltree.trees.profiles import label_profiles

    members, state = np.arange(_N_LABELS, dtype=np.int32), np.ones(1, np.uint64)
    with Pool(1) as pool:
        profiles = label_profiles(*_rows(), pool, max_entries=2)
        split_large(profiles, members, state, Split(3, False, 0.001), pool, np.empty(3, np.int64))


def _search(kind: str) -> Callable[[], None]:
    return lambda: _ask(_blank_model(kind))


def _other_searches() -> None:
    for kind in KINDS.single():
        _ask_otherwise(_blank_model(kind))


def _training(kind: str) -> Callable[[], None]:
    return lambda: _train(*({**_SMALL, "nodes": kind, **method} for method in KINDS[kind].methods))


def _trees_and_features() -> None:
    from labeltree.features.strings import StringTable
    from labeltree.training.driver import train

    _train(*({"tree": name} for name in BUILDERS), {"word_ngrams": 2})
    words = StringTable.from_strings(_TEXTS)
    words.choose_key()
    words.ids(_TEXTS)
    ensemble = train(_TEXTS, _LABELS, trees=2)
    _ask(ensemble)
    _ask_otherwise(ensemble)
    ensemble.label_trees[0].cost(_rows()[1])


def _formats() -> None:
    from labeltree.data.formats import FORMATS
    from labeltree.training.driver import train

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        for name, found in FORMATS.items():
            path.write_text(found.example)
            train(path, format=name).read(path, format=name)
        path.write_text("__label__a one:0.5 two:1\n__label__b two:1 three:2\n")
        train(path, format="fasttext", weighted_words=True)


JOBS: dict[str, Callable[[], None]] = {
    "clusters": _clusters,
    "large-clusters": _large_clusters,
    **{f"{kind}-search": _search(kind) for kind in KINDS.single()},
    "other-searches": _other_searches,
    **{f"{kind}-training": _training(kind) for kind in KINDS.single()},
    "trees-and-features": _trees_and_features,
    "formats": _formats,
}


class Warmed(NamedTuple):
    compiled: list[str]  # kernels that were not in a folder yet
    folders: set[Path]  # where all of them are


def run_jobs(names: Iterable[str]) -> Warmed:
    """Call every kernel of these jobs."""
    from labeltree.kernels import cache

    collect_seldom()
    before = len(cache.compiled)
    for name in names:
        JOBS[name]()
    return Warmed(cache.compiled[before:], cache.used)


def compile_all(folder: Path | None = None, processes: int = 0) -> Warmed:
    """All kernels that are not compiled yet, by several processes at once (0: as many as CPUs).

    With a folder all of them are then in this one, else in those where they would be looked for.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from labeltree.kernels import cache
    from labeltree.parallel import available_threads

    processes = min(processes or available_threads(), len(JOBS))
    with ProcessPoolExecutor(processes, get_context("spawn"), cache.warm, (folder,)) as pool:
        parts = list(pool.map(run_jobs, [[job] for job in JOBS]))
    return Warmed(
        [name for part in parts for name in part.compiled], set().union(*(p.folders for p in parts))
    )


def jobs_ahead(config: Config) -> list[str]:
    """What training comes to last: another process can compile that, while this one reads the data."""
    from labeltree.trees.builder import builder_of

    jobs = list(builder_of(config.tree).jobs)
    return jobs + [f"{kind}-search" for kind in KINDS.parts_of(config.nodes)]


def collect_seldom() -> None:
    """In a process of ours that is about to compile: looking for garbage would take a tenth of the time."""
    gc.set_threshold(100_000, 20, 100)


def start_ahead(names: Iterable[str]) -> None:
    """Have another process compile for these jobs; it ends by itself. What it leaves undone is done here."""
    # -P: nothing from the current folder.
    command = [sys.executable, "-P", "-m", "labeltree.training.warming", *names]
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)


def _train(*methods: dict[str, Any]) -> None:
    from labeltree.training.driver import train

    for method in methods:
        train(_TEXTS, _LABELS, **method)


def _rows() -> tuple[SparseRows, LabelRows]:
    import numpy as np

    from labeltree.data.rows import LabelRows, SparseRows

    numbers, indptr = np.arange(_N_ROWS, dtype=np.int32), np.arange(_N_ROWS + 1, dtype=np.int64)
    rows = SparseRows(indptr, numbers % 7, np.ones(_N_ROWS, np.float32), 7)
    return rows, LabelRows(indptr, numbers % _N_LABELS, _N_LABELS)


def _blank_model(kind: str) -> Model:
    """Two labels of equal probability, made without the kernels that train."""
    import numpy as np

    from labeltree.config import make_config
    from labeltree.experts.tree_expert import TreeExpert
    from labeltree.features.strings import StringTable
    from labeltree.features.text import TextFeatures
    from labeltree.model import Model
    from labeltree.tree import LabelTree

    config = make_config({"nodes": kind})
    idf = np.ones(2, np.float32)
    features = TextFeatures(config, StringTable.from_strings(["one", "two"]), np.empty(0, np.int32), idf)
    tree = LabelTree.from_parents([-1, 0, 0], [-1, 0, 1])
    expert = TreeExpert(tree, kind, KINDS[kind].blank(tree, 2, config), 2)
    counts = np.ones(2, np.int64)
    return Model(config, features, StringTable.from_strings(["a", "b"]), counts, 2, [expert])


def _ask(model: Model) -> None:
    """What most ask for: the best labels of rows, of a text, of texts; by a model from a file."""
    model.predict_arrays(_vectors(model), 1, threads=1)
    model.predict(["one"], 1)
    pickle.loads(pickle.dumps(model)).predict(["one", "two one"], 1)


def _ask_otherwise(model: Model) -> None:
    rows = _vectors(model)
    for X in (rows, rows[:1]):
        model.predict(X, 1)
        model.predict(X, 1, search="beam")
        model.predict(X, None, threshold=0.1)
        model.probability(X, model.label_names[:1])


def _vectors(model: Model) -> Any:
    import numpy as np
    from scipy.sparse import csr_matrix

    return csr_matrix(np.eye(2, model.n_features, dtype=np.float32))


if __name__ == "__main__":
    try:
        run_jobs(sys.argv[1:])
    except KeyboardInterrupt:  # of the command that started it
        sys.exit(130)
