"""labeltree itself: defaults, presets, changes to the quick one, and the work of extremeText and fastText."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "labeltree"
READS = ("source", "text")
PREDICTS = ("text", "vectors")
OWN_ENVIRONMENT = False  # runs in the Python that runs the comparison
VARIANTS: dict[str, dict[str, Any]] = {
    "labeltree": {},
    "labeltree-best": {"preset": "best"},
    "labeltree-fast": {"preset": "fast"},
    # One tree on words, as the preset is, but for what the name says.
    "labeltree-3": {"preset": "fast", "trees": 3},
    "labeltree-log": {"preset": "fast", "loss": "log"},
    "labeltree-both": {"preset": "fast", "nodes": "both"},
    "labeltree-dense": {"preset": "fast", "nodes": "dense"},
    # Tree shape, length of vectors and number of passes of extremetext.py; step and L2 for so many passes
    # were chosen on held-out training rows of debian-debtags and cooking-stackexchange.
    "labeltree-xt": {
        "preset": "fast",
        "nodes": "dense",
        "arity": 2,
        "max_leaves": 100,
        "dim": 500,
        "epochs": 30,
        "lr": 0.05,
        "l2": 3e-4,
        "batch_size": 256,
    },
    # What fasttext.py does with hs.
    "labeltree-hs": {
        "preset": "fasttext-hs",
        "lr": 1.0,
        "epochs": 25,
        "word_ngrams": 2,
        "ngram_buckets": 200_000,
        "dim": 50,
    },
}
TEXT_ONLY = ("labeltree-hs",)  # it stands beside fastText, which takes texts
NOTE = (
    "defaults of `labeltree train`; -best, -fast: `--preset`; all others are -fast with a change: "
    "-3: `--trees 3`, -log: `--loss log`, -both and -dense: `--nodes`, "
    "-xt: dense nodes with tree shape, dim, epochs of extremetext; "
    "-hs: preset fasttext-hs, settings of fasttext-hs; vectors are in the model's own features"
)


def install(pip: Callable[..., None]) -> None:
    """Nothing to do: it is what is being developed."""


def train(job: Job) -> None:
    job.section("import")
    from labeltree.experts.job import Progress
    from labeltree.training.driver import train as train_model

    def watch(progress: Progress) -> None:
        if job.section_name == "parse" and (progress.stage != "read" or progress.fraction == 1.0):
            job.section("train")

    job.section("parse")
    model = train_model(
        job.train["source"], threads=job.threads, seed=job.seed, callback=watch, **job.settings
    )
    job.section("save")
    model.save(job.model)


def _load(job: Job) -> Any:
    job.section("import")
    from labeltree.model import load

    job.section("load")
    model = load(job.model)
    job.section("parse")
    return model


def _vectors(model: Any, job: Job) -> Any:
    """The test rows in the model's own features, which peers do not get, as SciPy's CSR matrix."""
    import scipy.sparse

    X, _, _ = model.read(job.test["source"])
    return scipy.sparse.csr_matrix((X.values, X.indices, X.indptr), (X.n_rows, X.n_columns))


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model = _load(job)
    rows = job.texts() if kind == "text" else _vectors(model, job)
    model.predict_arrays(rows[:2], job.k, threads=1)  # one row would go another way
    return lambda: _found(*model.predict_arrays(rows, job.k, threads=1))


def _found(ids: Any, probabilities: Any) -> Any:
    for row in zip(ids.tolist(), probabilities.tolist(), strict=True):
        yield [(label, probability) for label, probability in zip(*row, strict=True) if label >= 0]


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model = _load(job)
    rows: list[Any]
    if kind == "text":
        rows = [[text] for text in job.texts()]
        return len(rows), lambda i: model.predict(rows[i], job.k, threads=1)
    matrix = _vectors(model, job)  # CSR rows, as napkinXC and PECOS get them
    rows = [matrix[i] for i in range(matrix.shape[0])]
    return len(rows), lambda i: model.predict_arrays(rows[i], job.k, threads=1)
