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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labeltree.nodes import KINDS, LINKS
from labeltree.trees import BUILDERS

if TYPE_CHECKING:
    from labeltree.config import Config
    from labeltree.data.rows import TrainingRows
    from labeltree.model import Model
    from labeltree.parallel import Pool
    from labeltree.trees.builder import TreeInput

_N_ROWS, _N_LABELS = 600, 8  # enough rows for probabilities to be calibrated
_TEXTS = [f"word{i} word{i % _N_LABELS} word{i % 7}" for i in range(_N_ROWS)]  # tables of words must grow
_LABELS = [[f"label{i % _N_LABELS}"] for i in range(_N_ROWS)]


def jobs() -> dict[str, Callable[[], None]]:
    """All jobs by name, those that take longest first; also for choices that a program has added."""
    named: dict[str, Callable[[], None]] = {}
    for link in LINKS:
        for kind in KINDS.single():
            if KINDS[kind].takes(LINKS[link]):
                named[f"{kind}-{link}-training"] = partial(_train_nodes, kind, link)
        for kind in KINDS.single():
            named[f"{kind}-{link}-search"] = partial(_ask_blank, kind, link)
            named[f"{kind}-{link}-other-searches"] = partial(_ask_blank_otherwise, kind, link)
            named[f"{kind}-{link}-combined-search"] = partial(_ask_combined, kind, link)
        named |= {f"{tree}-{link}-tree": partial(_build, tree, link) for tree in BUILDERS}
    return named | {
        "large-trees": _build_large,
        "ensembles": _ensembles,
        "neighbours": _neighbours,
        "forest": _forest,
        "decisions": _decide,
        "formats": _formats,
    }


def _train_nodes(kind: str, link: str) -> None:
    from labeltree.config import Config, effective

    for method in KINDS[kind].methods:
        if method.keys() <= effective(Config(nodes=kind, link=link, **method)).keys():
            _train(nodes=kind, link=link, arity=3, max_leaves=3, **method)


def _ask_blank(kind: str, link: str) -> None:
    _ask(_blank_model(kind, link))


def _ask_blank_otherwise(kind: str, link: str) -> None:
    """A link that is normalised as it is has the same kernels for both."""
    model = _blank_model(kind, link)
    _ask_otherwise(model)
    _ask(model, normalize=True)
    _ask_otherwise(model, normalize=True)


def _ask_combined(kind: str, link: str) -> None:
    """Several trees, or one whose probabilities are mapped."""
    model = _blank_model(kind, link, n_trees=2)
    _ask(model)
    _ask(model, normalize=True)
    model.predict_arrays(_vectors(model)[:1], 1)


def _build(tree: str, link: str) -> None:
    from labeltree.parallel import Pool
    from labeltree.trees.builder import build_tree

    with Pool(1) as pool:
        build_tree(_tree_input(tree, link, pool), seed=1)


def _build_large() -> None:
    from labeltree.parallel import Pool

    with Pool(1) as pool:
        for tree, builder in BUILDERS.items():
            builder.warm_large(_tree_input(tree, "plt", pool))


def _ensembles() -> None:
    """Several trees, and features of all kinds."""
    from labeltree.features.strings import StringTable

    _train(word_ngrams=2, char_weight=1.0, pair_weight=1.0, strongest=9)
    words = StringTable.from_strings(_TEXTS)
    words.choose_key()
    words.ids(_TEXTS)
    ensemble = _train(trees=2)
    _ask(ensemble)
    _ask_otherwise(ensemble)
    ensemble.label_trees[0].cost(_rows().Y)


def _neighbours() -> None:
    model = _train(neighbours=5)
    model.neighbours(_TEXTS[:1], 1)
    model.explain(_TEXTS[0], deletions=1).to_dict()
    _index_frequent_columns()
    pickle.loads(pickle.dumps(model)).predict(_TEXTS[:2], 1)


def _index_frequent_columns() -> None:
    """So many rows that a list of those with a column would be too long."""
    import numpy as np

    from labeltree.data.rows import LabelRows, SparseRows
    from labeltree.experts.neighbours_index import MEAN_POSTINGS, build_index

    n = MEAN_POSTINGS + 2
    columns, ones = np.tile(np.array([0, 1, 0, 2], np.int32), n // 2), np.ones(2 * n, np.float32)
    X = SparseRows(2 * np.arange(n + 1), columns, ones, 3)
    build_index(X, LabelRows(np.zeros(n + 1, np.int64), np.empty(0, np.int32), 1), ones[:n])


def _forest() -> None:
    """Alone, and with neighbours, where both list their labels."""
    from labeltree.experts.by_rows import best_of_rows
    from labeltree.experts.combination import equal_weights
    from labeltree.experts.ensemble import Ensemble
    from labeltree.query import make_query

    for split in ("l1", "l2"):
        model = _train(trees=0, neighbours=0, forest=2, forest_split=split, forest_tail=0.2)
    _ask(model)
    pickle.loads(pickle.dumps(model)).predict(_TEXTS[:2], 1)
    rows = model.features.given_rows(_TEXTS[:2])
    forest: Any = model.experts[0]
    forest.leaves(rows[:3])
    listing = [*model.experts, *_train(trees=0, neighbours=5).experts]
    best_of_rows(Ensemble(listing, equal_weights(len(listing))), rows, make_query(1), 1)


def _decide() -> None:
    """For rows together."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from labeltree.decisions.batch import decide

    decide(csr_matrix(np.full((2, 2), 0.5, np.float32)), measure="macro-f1@1")


def _formats() -> None:
    from labeltree.data.formats import FORMATS
    from labeltree.training.driver import train

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        for name, found in FORMATS.items():
            if not found.example:
                continue
            path.write_text(found.example)
            train(path, format=name).read(path, format=name)
        path.write_text("__label__a one:0.5 two:1\n__label__b two:1 three:2\n")
        train(path, format="fasttext", weighted_words=True)


class Warmed(NamedTuple):
    compiled: list[str]  # kernels that were not in a folder yet
    folders: set[Path]  # where all of them are


def run_jobs(names: Iterable[str]) -> Warmed:
    """Call every kernel of these jobs."""
    from labeltree.kernels import cache

    collect_seldom()
    before, known = len(cache.compiled), jobs()
    for name in names:
        known[name]()
    return Warmed(cache.compiled[before:], cache.used)


def compile_all(folder: Path | None = None, processes: int = 0) -> Warmed:
    """All kernels that are not compiled yet, by several processes at once (0: as many as CPUs).

    With a folder all of them are then in this one, else in those where they would be looked for.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from labeltree.kernels import cache
    from labeltree.parallel import available_threads

    processes = min(processes or available_threads(), len(jobs()))
    with ProcessPoolExecutor(processes, get_context("spawn"), cache.warm, (folder,)) as pool:
        parts = list(pool.map(run_jobs, [[job] for job in jobs()]))
    return Warmed(
        [name for part in parts for name in part.compiled], set().union(*(p.folders for p in parts))
    )


def jobs_ahead(config: Config) -> list[str]:
    """What training comes to last: another process can compile that, while this one reads the data."""
    jobs = []
    if config.trees:
        jobs += [f"{config.tree}-{config.link}-tree"] if config.tree in BUILDERS else []
        jobs += [f"{kind}-{config.link}-search" for kind in KINDS.parts_of(config.nodes)]
    return jobs + ["neighbours"] * (config.neighbours > 0) + ["forest"] * (config.forest > 0)


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


def _train(**parameters: Any) -> Model:
    """With parameters that need not have an effect."""
    from labeltree.config import Config
    from labeltree.training.driver import train

    return train(_TEXTS, _LABELS, config=Config(**parameters))


def _rows() -> TrainingRows:
    import numpy as np

    from labeltree.data.rows import LabelRows, SparseRows, TrainingRows

    numbers, indptr = np.arange(_N_ROWS, dtype=np.int32), np.arange(_N_ROWS + 1, dtype=np.int64)
    X = SparseRows(indptr, numbers % 7, np.ones(_N_ROWS, np.float32), 7)
    Y = LabelRows(indptr, numbers % _N_LABELS, _N_LABELS)
    return TrainingRows(X, Y, np.ones(_N_ROWS, np.float32))


def _tree_input(tree: str, link: str, pool: Pool) -> TreeInput:
    from labeltree.config import Config
    from labeltree.trees.builder import TreeInput

    config = Config(tree=tree, link=link, arity=3, max_leaves=3, dim=4, epochs=2, batch_size=64)
    return TreeInput(_rows(), [f"label{i}" for i in range(_N_LABELS)], config, pool)


def _blank_model(kind: str, link: str, n_trees: int = 1) -> Model:
    """Two labels as likely as each other, made without the kernels that train."""
    import numpy as np

    from labeltree.config import Config
    from labeltree.experts.tree_expert import TreeExpert
    from labeltree.features.strings import StringTable
    from labeltree.features.text import TextFeatures
    from labeltree.model import Model
    from labeltree.tree import LabelTree

    config = Config(nodes=kind, link=link, char_weight=0.0, pair_weight=0.0)
    idf = np.ones(2, np.float32)
    features = TextFeatures(config, StringTable.from_strings(["one", "two"]), np.empty(0, np.int32), idf)
    tree = LabelTree.from_parents([-1, 0, 0], [-1, 0, 1])
    bias = LINKS[link].first_bias(np.array([1.0, 0.5, 0.5]), tree, 2.0)
    expert = TreeExpert(tree, kind, KINDS[kind].blank(tree, 2, bias, config), 2, link)
    counts = np.ones(2, np.int64)
    return Model(config, features, StringTable.from_strings(["a", "b"]), counts, 2, [expert] * n_trees)


def _ask(model: Model, **how: Any) -> None:
    """What most ask for: the best labels of rows, of a text, of texts; by a model from a file."""
    model.predict_arrays(_vectors(model), 1, threads=1, **how)
    model.predict(["one"], 1, **how)
    pickle.loads(pickle.dumps(model)).predict(["one", "two one"], 1, **how)


def _ask_otherwise(model: Model, **how: Any) -> None:
    import numpy as np

    from labeltree.decisions.rule import RankingRule

    rows, ones = _vectors(model), np.ones(model.n_labels, np.float32)
    model.predict(rows, 1, rule=RankingRule("p@1", 1, ones, 0 * ones), **how)
    for X in (rows, rows[:1]):
        model.predict(X, 1, **how)
        model.predict(X, 1, search="beam", **how)
        model.predict(X, None, threshold=0.1, **how)
        model.probability(X, model.label_names[:1], **how)


def _vectors(model: Model) -> Any:
    import numpy as np
    from scipy.sparse import csr_matrix

    return csr_matrix(np.eye(2, model.n_features, dtype=np.float32))


if __name__ == "__main__":
    try:
        run_jobs(sys.argv[1:])
    except KeyboardInterrupt:  # of the command that started it
        sys.exit(130)
