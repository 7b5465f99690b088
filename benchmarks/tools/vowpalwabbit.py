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
# Its PLT demo: 16-ary tree, step 0.5, no hold-out. The demo makes 5 passes.
VARIANTS: dict[str, dict[str, Any]] = {"vowpalwabbit-plt": {"kary_tree": 16, "l": 0.5, "passes": 5, "b": 28}}
NOTE = "settings of its PLT demo; labeltree's TF-IDF vectors; learns on one thread and parses on another"


def install(pip: Callable[..., None]) -> None:
    pip("vowpalwabbit==9.11.9", "numpy")


def train(job: Job) -> None:
    job.section("import")
    import vowpalwabbit

    options = " ".join(f"{'-' if len(name) == 1 else '--'}{name} {v}" for name, v in job.settings.items())
    job.section("train")  # parsing runs beside learning
    model = vowpalwabbit.Workspace(
        f"--plt {job.n_labels} {options} --loss_function logistic --holdout_off --quiet -k "
        f"-d {job.train['vw']} --cache_file {job.model}.cache -f {job.model}"
    )
    model.finish()
