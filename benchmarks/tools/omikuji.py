"""Omikuji: Parabel's partitioned label trees with sparse linear classifiers, in Rust."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "omikuji"
READS = ("xmlc", "npz")
PREDICTS = ("vectors",)
VARIANTS: dict[str, dict[str, Any]] = {"omikuji-1": {"n_trees": 1}, "omikuji-3": {"n_trees": 3}}
NOTE = "its defaults (3 trees, or 1), beam 10; one call reads and trains; a batch is a loop over rows"


def install(pip: Callable[..., None]) -> None:
    pip("omikuji==0.5.2", "numpy")


def train(job: Job) -> None:
    job.section("import")
    import omikuji

    settings = omikuji.Model.default_hyper_param()
    for name, value in job.settings.items():
        setattr(settings, name, value)
    job.section("train")  # one call reads the file and trains
    model = omikuji.Model.train_on_data(job.train["xmlc"], settings, n_threads=job.threads)
    job.section("save")
    model.save(job.model)


def _load(job: Job) -> tuple[Any, list[list[tuple[int, float]]]]:
    job.section("import")
    import omikuji

    job.section("load")
    model = omikuji.Model.load(job.model)
    model.init_prediction_thread_pool(1)
    model.densify_weights(0.1)  # its own default, for speed
    job.section("parse")
    return model, job.pairs()


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model, rows = _load(job)
    return lambda: _ids([model.predict(row, top_k=job.k) for row in rows])


def _ids(rows: Any) -> Any:
    return ([label for label, _ in row] for row in rows)


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model, rows = _load(job)
    return len(rows), lambda i: model.predict(rows[i], top_k=job.k)
