"""extremeText: the authors' own implementation of the dense label tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "extremetext"
READS = ("text",)
PREDICTS = ("text",)
# The ranges of the paper's Appendix E.4: dim 500, arity 2, max leaves 100; the middle of those it searched.
VARIANTS: dict[str, dict[str, Any]] = {
    "extremetext": {
        "loss": "plt",
        "treeType": "kmeans",
        "arity": 2,
        "maxLeaves": 100,
        "kMeansEps": 0.001,
        "dim": 500,
        "lr": 0.1,
        "l2": 0.002,
        "epoch": 30,
        "tfidfWeights": True,
    }
}
NOTE = "settings of the paper; it reads the file anew in each epoch, so parsing is part of training"


def install(pip: Callable[..., None]) -> None:
    pip("setuptools<70", "wheel", "pybind11", "numpy<2")
    # The flags of its Makefile: its setup.py names them too, but then overwrites them. Without --no-cache-dir
    # pip may take a wheel that it built earlier without them.
    flags = "-O3 -funroll-loops -march=native"
    pip("--no-build-isolation", "--no-cache-dir", "extremetext==0.8.4", CFLAGS=flags)


def train(job: Job) -> None:
    job.section("import")
    import extremeText

    job.section("train")
    model = extremeText.train_supervised(job.train["text"], thread=job.threads, verbose=0, **job.settings)
    job.section("save")
    model.save_model(job.model)


def _load(job: Job) -> tuple[Any, list[str]]:
    job.section("import")
    import extremeText

    job.section("load")
    model = extremeText.load_model(job.model)
    job.section("")
    return model, job.texts()


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model, texts = _load(job)
    return lambda: _ids(model.predict(texts, k=job.k)[0])


def _ids(rows: Any) -> Any:
    return ([label.removeprefix("__label__") for label in row] for row in rows)


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model, texts = _load(job)
    return len(texts), lambda i: model.predict(texts[i], k=job.k)
