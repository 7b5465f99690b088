"""scikit-learn: one linear SVM per label, the first choice of many where labels are few."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "scikit-learn"
READS = ("npz",)
PREDICTS = ("vectors",)
VARIANTS: dict[str, dict[str, Any]] = {"sklearn-svc": {"C": 0.5}}
MOST_LABELS = 2000  # each label is trained on all rows
NOTE = "`OneVsRestClassifier(LinearSVC(C=0.5))` on up to 2,000 labels, ranked by their margins"


def install(pip: Callable[..., None]) -> None:
    pip("scikit-learn==1.7.2", "scipy", "numpy")


def train(job: Job) -> None:
    job.section("import")
    import joblib
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    job.section("parse")
    X, Y = job.matrix("train"), job.matrix("train labels")
    job.section("train")
    model = OneVsRestClassifier(LinearSVC(random_state=job.seed, **job.settings), n_jobs=job.threads)
    model.fit(X, Y)
    job.section("save")
    joblib.dump(model, job.model)


def _load(job: Job) -> tuple[Any, Any]:
    job.section("import")
    import joblib

    job.section("load")
    model = joblib.load(job.model)
    job.section("parse")
    return model, job.matrix("test")


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model, X = _load(job)
    return lambda: _best(model.decision_function(X), job.k).tolist()


def _best(margins: Any, k: int) -> Any:
    """(n_rows, k) the columns of the largest margins, best first."""
    import numpy as np

    best = np.argpartition(-margins, k - 1, axis=1)[:, :k]
    order = np.take_along_axis(margins, best, 1).argsort(axis=1)[:, ::-1]
    return np.take_along_axis(best, order, 1)


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model, X = _load(job)
    rows = [X[i] for i in range(X.shape[0])]
    return len(rows), lambda i: _best(model.decision_function(rows[i]), job.k)
