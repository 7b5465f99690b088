"""The five sets of the paper's main table: under which name they are asked for, and what the paper reports.

The columns are those of XT (extremeText) and of Parabel with one tree, as the authors measured them, on their
data and hardware: they say what was thought feasible, and are compared with nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.generate import PUBLISHED, Shape


class Reported(NamedTuple):
    """One column of the paper's table."""

    precisions: tuple[float, float, float]  # P@1, 3, 5 in percent
    train_minutes: int  # of CPU time
    row_milliseconds: float  # of prediction; Parabel's in batches
    model_gigabytes: float


class PaperSet(NamedTuple):
    name: str  # of the Extreme Classification Repository
    xt: Reported
    parabel: Reported

    @property
    def shape(self) -> Shape:
        return PUBLISHED[self.name]


PAPER_SETS = {
    "wiki10": PaperSet(
        "Wiki10-31K",
        Reported((85.23, 73.18, 63.39), 18, 0.83, 0.259),
        Reported((83.77, 71.96, 62.44), 5, 1.63, 0.109),
    ),
    "delicious200k": PaperSet(
        "Delicious-200K",
        Reported((47.85, 42.08, 39.13), 502, 1.41, 1.9),
        Reported((43.32, 38.49, 35.83), 105, 1.31, 1.8),
    ),
    "wikilshtc": PaperSet(
        "WikiLSHTC-325K",
        Reported((58.73, 39.24, 29.26), 550, 0.81, 3.3),
        Reported((61.53, 40.07, 29.25), 34, 0.92, 1.1),
    ),
    "wiki500k": PaperSet(
        "Wikipedia-500K",
        Reported((64.48, 45.84, 35.46), 1253, 1.07, 5.5),
        Reported((66.12, 47.02, 36.45), 168, 4.68, 2.0),
    ),
    "amazon670k": PaperSet(
        "Amazon-670K",
        Reported((39.90, 35.36, 32.04), 241, 1.72, 1.5),
        Reported((41.59, 37.18, 33.85), 8, 0.68, 0.7),
    ),
}
