"""A rule at the end of a training: tuned on the rows that were held out at first, so no others are needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.decisions.fitting import n_candidates
from labeltree.decisions.goals import Goal
from labeltree.decisions.judged import Judged
from labeltree.decisions.thresholds import UnreachableGoal
from labeltree.decisions.tuning import Tuned, judge_tuning, tune_judged
from labeltree.errors import ParameterError
from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.combining import Combined
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.held_out import LEAST_ROWS
from labeltree.experts.job import TrainingJob
from labeltree.metrics.matching import Matched
from labeltree.query import make_query


class NothingHeldOut(ParameterError):
    """There are no rows to tune on."""


def check_calibrates(config: Config) -> None:
    """Before anything is read."""
    if not config.calibrate:
        raise NothingHeldOut(
            "tune_for needs rows that are held out at first, but with calibrate=False (--no-calibrate) there "
            "are none; leave that out, or tune on rows of your own (labeltree tune)"
        )


def check_held_out(job: TrainingJob) -> None:
    """Before anything is trained."""
    if not len(job.held_out.numbers):
        n_rows = np.count_nonzero(job.rows.weight > 0)
        raise NothingHeldOut(
            f"tune_for needs rows that are held out at first, of at least {LEAST_ROWS} rows of a weight "
            f"above 0, but there are {n_rows}; tune on rows of your own (labeltree tune)"
        )


def tune_on_held_out(
    goal: Goal, combined: Combined, job: TrainingJob, label_counts: NDArray[np.int64]
) -> Tuned:
    """By what those say of the held-out rows who were trained without them.

    A goal that cannot be reached is told of: what was trained is not lost by it.
    """
    rows = judge_held_out(goal, combined, job, label_counts)
    try:
        return tune_judged(goal, rows)
    except UnreachableGoal as error:
        return judge_tuning(goal, rows)._replace(failure=str(error))


def judge_held_out(
    goal: Goal, combined: Combined, job: TrainingJob, label_counts: NDArray[np.int64]
) -> Judged:
    """``label_counts`` are the training rows of each label, the held-out ones among them."""
    held_out, n_most = job.held_out, n_candidates(goal, len(label_counts))
    ensemble = Ensemble(combined.judges, combined.combination)
    ids, probabilities, _ = best_of_rows(ensemble, held_out.X, make_query(n_most), job.pool.threads)
    hits = Matched(ids, held_out.Y, (n_most,)).hits
    of_others = label_counts - np.bincount(held_out.Y.indices, minlength=len(label_counts))
    return Judged(ids, probabilities, hits, held_out.Y, of_others, label_counts, job.rows.X.n_rows)
