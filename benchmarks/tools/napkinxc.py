"""napkinXC: sparse linear node classifiers, as a probabilistic label tree and as hierarchical softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "napkinxc"
READS = ("npz",)
PREDICTS = ("vectors",)
# The defaults: k-means tree, arity 2, max leaves 100, LIBLINEAR with C=10, weights below 0.1 dropped.
# HSM is for one label per row; with several its authors weight each picked label.
VARIANTS: dict[str, dict[str, Any]] = {
    "napkinxc-plt": {"class": "PLT"},
    "napkinxc-hsm": {"class": "HSM", "pick_one_label_weighting": True},
}
VARIANTS["napkinxc-3"] = {"class": "PLT", "ensemble": 3}
NOTE = "the library's defaults; labeltree's TF-IDF vectors"


def install(pip: Callable[..., None]) -> None:
    pip("napkinxc==0.7.2")


def _make(job: Job, threads: int) -> Any:
    import napkinxc.models

    settings = dict(job.settings)
    kind = getattr(napkinxc.models, settings.pop("class"))
    return kind(job.model, seed=job.seed, threads=threads, **settings)


def train(job: Job) -> None:
    job.section("import")
    import napkinxc.models  # noqa: F401

    job.section("parse")
    X, Y = job.matrix("train"), job.matrix("train labels")
    job.section("train")  # writes its model while it trains
    _make(job, job.threads).fit(X, Y)


def _load(job: Job) -> Any:
    job.section("import")
    import napkinxc.models  # noqa: F401

    job.section("load")
    model = _make(job, 1)
    model.load()
    job.section("parse")
    return model


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model = _load(job)
    X = job.matrix("test")
    return lambda: model.predict(X, top_k=job.k)


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model = _load(job)
    X = job.matrix("test")
    rows = [X[i] for i in range(X.shape[0])]
    return len(rows), lambda i: model.predict_proba(rows[i], top_k=job.k)
