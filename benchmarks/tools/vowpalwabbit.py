"""Vowpal Wabbit: online learning of a probabilistic label tree over hashed sparse features."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.worker import Job

PACKAGE = "vowpalwabbit"
READS = ("vw", "npz")
PREDICTS = ("vectors",)
THREADS = (1,)  # it learns on one
# Its PLT demo: 16-ary tree, step 0.5, 5 passes, no hold-out, a larger table of weights for many labels.
VARIANTS: dict[str, dict[str, Any]] = {"vowpalwabbit-plt": {"kary_tree": 16, "l": 0.5, "passes": 5}}
MANY_LABELS, FEW_BITS, MANY_BITS = 10_000, 28, 30
NOTE = "settings of its PLT demo; labeltree's vectors; it parses beside learning; predicts ready examples"


def install(pip: Callable[..., None]) -> None:
    pip("vowpalwabbit==9.11.9", "numpy")


def train(job: Job) -> None:
    job.section("import")
    import vowpalwabbit

    settings = {**job.settings, "b": FEW_BITS if job.n_labels < MANY_LABELS else MANY_BITS}
    options = " ".join(f"{'-' if len(name) == 1 else '--'}{name} {v}" for name, v in settings.items())
    job.section("train")  # parsing runs beside learning
    model = vowpalwabbit.Workspace(
        f"--plt {job.n_labels} {options} --loss_function logistic --holdout_off --quiet -k "
        f"-d {job.train['vw']} --cache_file {job.model}.cache -f {job.model}"
    )
    model.finish()


def _load(job: Job) -> tuple[Any, list[Any]]:
    job.section("import")
    import vowpalwabbit

    job.section("load")
    model = vowpalwabbit.Workspace(f"-i {job.model} -t --loss_function logistic --top_k {job.k} --quiet")
    job.section("parse")
    return model, [_example(vowpalwabbit, model, features) for features in job.pairs()]


def _example(library: Any, model: Any, features: list[tuple[int, float]]) -> Any:
    """A row that is ready to predict: neither parsing nor hashing is left to do."""
    example = library.Example(model, {" ": features})
    example.setup_example()
    return example


def predict_batch(job: Job, kind: str) -> Callable[[], Any]:
    model, examples = _load(job)
    return lambda: [model.predict(example) for example in examples]


def predict_online(job: Job, kind: str) -> tuple[int, Callable[[int], Any]]:
    model, examples = _load(job)
    return len(examples), lambda i: model.predict(examples[i])
