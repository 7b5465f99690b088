"""fastText: hierarchical softmax over a Huffman tree, and one logistic classifier per label."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "fasttext"
READS = ("text",)
PREDICTS = ("text",)
# The last steps of its tutorial: for hierarchical softmax, and for several labels per row one-vs-all.
VARIANTS: dict[str, dict[str, Any]] = {
    "fasttext-hs": {"loss": "hs", "lr": 1.0, "epoch": 25, "wordNgrams": 2, "bucket": 200_000, "dim": 50},
    "fasttext-ova": {"loss": "ova", "lr": 0.5, "epoch": 25, "wordNgrams": 2, "bucket": 200_000, "dim": 50},
}
# On many thousands of labels training with that step ends with "Encountered NaN"; this is its default step.
VARIANTS["fasttext-ova-0.1"] = VARIANTS["fasttext-ova"] | {"lr": 0.1}
VARIANTS["fasttext-ova-0.1-5"] = VARIANTS["fasttext-ova-0.1"] | {"epoch": 5}  # its default number, too
STANDS_IN = {"fasttext-ova-0.1": "fasttext-ova"}  # so it counts on those data sets only
STANDS_IN["fasttext-ova-0.1-5"] = "fasttext-ova"
NOTE = (
    "settings of its tutorial, -0.1: with its default step; "
    "it reads the file anew in each epoch, so parsing is part of training"
)
NOTE += "; -5: its default number of epochs, too"


def install(pip: Callable[..., None]) -> None:
    pip("setuptools<70", "wheel", "pybind11", "numpy<2")
    # The flags of its Makefile: its setup.py names them too, but then overwrites them. Without --no-cache-dir
    # pip may take a wheel that it built earlier without them.
    flags = "-O3 -funroll-loops -march=native"
    pip("--no-build-isolation", "--no-cache-dir", "fasttext==0.9.3", CFLAGS=flags)


def train(job: Job) -> None:
    job.section("import")
    import fasttext

    job.section("train")
    model = fasttext.train_supervised(
        job.train["text"], thread=job.threads, seed=job.seed, verbose=0, **job.settings
    )
    job.section("save")
    model.save_model(job.model)


def _load(job: Job) -> tuple[Any, list[str]]:
    job.section("import")
    import fasttext

    job.section("load")
    model = fasttext.load_model(job.model)
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
