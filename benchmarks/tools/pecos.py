"""PECOS XR-Linear: a sparse linear model per level of a hierarchical clustering of the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "libpecos"
READS = ("npz",)
PREDICTS = ("vectors",)
VARIANTS: dict[str, dict[str, Any]] = {"pecos-xrlinear": {}}
NOTE = "its quick start: PIFA label features, hierarchical k-means, default training; predict-only loading"


def install(pip: Callable[..., None]) -> None:
    pip("torch==2.13.0")
    pip("libpecos==1.2.8")


def train(job: Job) -> None:
    job.section("import")
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    job.section("parse")
    X, Y = job.matrix("train"), job.matrix("train labels")
    X.indptr, Y.indptr = X.indptr.astype("uint64"), Y.indptr.astype("uint64")
    job.section("train")
    label_features = LabelEmbeddingFactory.create(Y, X, method="pifa")
    chain = Indexer.gen(label_features, indexer_type="hierarchicalkmeans", seed=job.seed, threads=job.threads)
    model = XLinearModel.train(X, Y.tocsc(), C=chain, threads=job.threads)
    job.section("save")
    model.save(job.model)


def _load(job: Job) -> tuple[Any, Any]:
    job.section("import")
    from pecos.xmc.xlinear.model import XLinearModel

    job.section("load")
    model = XLinearModel.load(job.model, is_predict_only=True)
    job.section("parse")
    return model, job.matrix("test")


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model, X = _load(job)
    return lambda: _ids(model.predict(X, only_topk=job.k, threads=1))


def _ids(scores: Any) -> Any:
    """The columns of each row, best first."""
    for i in range(scores.shape[0]):
        start, stop = scores.indptr[i], scores.indptr[i + 1]
        order = (-scores.data[start:stop]).argsort(kind="stable")
        yield scores.indices[start:stop][order].tolist()


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model, X = _load(job)
    rows = [X[i] for i in range(X.shape[0])]
    return len(rows), lambda i: model.predict(rows[i], only_topk=job.k, threads=1)
