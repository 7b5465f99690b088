"""What may be asked of a prediction: how many labels, and how they are searched for.

A :class:`Query` is made and checked once, from what a caller gives, and passed whole from there on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from labeltree.errors import ParameterError, show
from labeltree.parameter import MOST_IDS, plain

if TYPE_CHECKING:
    import numpy as np

    from labeltree.decisions.rule import Rule
    from labeltree.experts.masks import Mask

SEARCHES = ("auto", "exact", "beam")
DEFAULT_SEARCH = "auto"
DEFAULT_BEAM = 10
NO_BEAM = 0  # the search opens the best nodes of all levels
WITH_LABELS = "labels"
IF_UNKNOWN = (WITH_LABELS, "nothing")  # what a row gets that has no word or feature that the model knows
SET_THRESHOLD = 0.5  # labels of at least this probability are more likely right than wrong
OF_MODEL = "model"  # the rule that a model was tuned with, if it was
RULES = (OF_MODEL, "none")
ALL = 0  # as a k: no limit but the threshold
MOST_RANKS = 1_000_000
_WIDEST = 1 << 31  # more than any tree has nodes, and kernels can count so far
# Inner nodes of each tree that a search may open before it ends unproven. Of real data more than 99 % of rows
# need less than half of it; a row that is unsure among very many labels costs no more than this.
_BUDGET = 400
_BUDGET_PER_LABEL = 4


class _Usual(int):
    """A number that was not asked for: a rule may say another one."""


USUAL_K = _Usual(5)
EXPLAINED = 3  # labels, unless another number is asked for


class Query(NamedTuple):
    """What is asked about each row."""

    k: int  # the best so many labels; ALL where a threshold or given labels say which
    threshold: np.float32  # none of a smaller probability
    normalize: bool = False  # siblings whose probabilities sum to less than 1 are rescaled
    beam: int = NO_BEAM  # inner nodes that are opened in each level
    labels_unknown: bool = True  # rows without anything that the model knows get labels too
    is_bounded: bool = False  # the search may end before its labels are proven to be the best ones
    mask: Mask | None = None  # the labels that may be answers; None: all
    rule: Rule | None = None  # which of them are; None: the most probable ones

    @property
    def budget(self) -> int:
        """How many nodes of a tree may be opened before the search ends unproven."""
        return _BUDGET + _BUDGET_PER_LABEL * self.k if self.is_bounded else _WIDEST


def make_query(
    k: Any, threshold: Any = 0.0, normalize: bool = False, search: Any = DEFAULT_SEARCH,
    beam: Any = None, if_unknown: Any = WITH_LABELS,
) -> Query:  # fmt: skip
    """For the best k labels of at least a threshold; for 0 or None all of them."""
    try:
        return _made(k, threshold, normalize, search, beam, if_unknown)
    except TypeError:  # not hashable, and so none of what may be given: the checks say what is wrong
        return _made.__wrapped__(k, threshold, normalize, search, beam, if_unknown)


# Most ask the same again and again, and the checks are a tenth of the time of a single row.
@lru_cache(64, typed=True)
def _made(k: Any, threshold: Any, normalize: bool, search: Any, beam: Any, if_unknown: Any) -> Query:
    k, width, least = check_k(k), check_search(search, beam), check_threshold(threshold)
    if k == ALL:
        _check_all_above(least, search)
    return Query(k, least, normalize, width, labels_unknown(if_unknown), search == "auto" and k != ALL)


def query_all(threshold: Any = 0.0, normalize: bool = False, if_unknown: Any = WITH_LABELS) -> Query:
    """For all labels of at least a threshold, or for the probabilities of given ones."""
    return Query(ALL, check_threshold(threshold), normalize, NO_BEAM, labels_unknown(if_unknown))


def check_k(k: Any) -> int:
    """How many labels are asked for: ALL for 0 and None."""
    if k is USUAL_K:
        return int(k)
    k = k if type(k) is int else plain(k)  # kernels are compiled once per kind of integer
    if k is None:
        return ALL
    if type(k) is not int or k < 0:
        raise ParameterError(
            f"k must be at least 1, but is {show(k)}; give a whole number, or 0 with a threshold "
            "for all labels of at least that probability"
        )
    return k


def check_columns(k: Any) -> int:
    """As :func:`check_k`, where all k get a place in memory even if there are fewer labels."""
    n_columns = check_k(k)
    if n_columns == ALL:
        raise ParameterError(
            f"k must be at least 1, but is {k!r}, and arrays have k columns; predict and predict_rows "
            "give all labels above a threshold"
        )
    if n_columns > MOST_IDS:
        raise ParameterError(f"k must be at most {MOST_IDS}, but is {show(k)}; give the number of labels")
    return n_columns


def check_ranks(k: Any) -> tuple[int, ...]:
    """Each k of the measures, rising: a number or several."""
    given = list(k) if isinstance(k, Iterable) and not isinstance(k, (str, bytes)) else [k]
    ranks = {rank if type(rank) is int else plain(rank) for rank in given}
    if not ranks or not all(type(rank) is int and 1 <= rank <= MOST_RANKS for rank in ranks):
        raise ParameterError(f"k must be numbers from 1 to {MOST_RANKS}, like (1, 3, 5), but is {show(k)}")
    return tuple(sorted(ranks))


def check_threshold(threshold: Any) -> np.float32:
    """The least probability, as kernels take it."""
    import numpy as np  # not with this module, which the command line needs for its help

    threshold = plain(threshold)
    if type(threshold) not in (int, float):
        raise ParameterError(f"threshold must be a number from 0 to 1, but is {show(threshold)}")
    if not 0.0 <= threshold <= 1.0:
        raise ParameterError(f"threshold must be from 0 to 1, but is {show(threshold)}")
    return np.float32(threshold)


def check_set_threshold(threshold: Any) -> np.float32:
    """So where it is what says which labels are a row's set."""
    least = check_threshold(threshold)
    if not least > 0.0:
        raise ParameterError("threshold must be above 0, but is 0: a row's set would have all labels")
    return least


def labels_unknown(if_unknown: Any) -> bool:
    """Whether rows without anything that the model knows get labels too."""
    if isinstance(if_unknown, str) and if_unknown in IF_UNKNOWN:
        return if_unknown == WITH_LABELS
    raise ParameterError(f"if_unknown must be one of {', '.join(IF_UNKNOWN)}, but is {show(if_unknown)}")


def check_search(search: Any, beam: Any) -> int:
    """The width of the beam, or NO_BEAM. A ``beam`` of None is not given: DEFAULT_BEAM if one is needed."""
    if not (isinstance(search, str) and search in SEARCHES):
        raise ParameterError(f"search must be one of {', '.join(SEARCHES)}, but is {show(search)}")
    if beam is None:
        return DEFAULT_BEAM if search == "beam" else NO_BEAM
    beam = beam if type(beam) is int else plain(beam)
    if type(beam) is not int or beam < 1:
        raise ParameterError(f"beam must be at least 1, but is {show(beam)}; give a whole number, such as 10")
    if search != "beam":
        raise ParameterError(
            f"beam={show(beam)} has no effect where search is {search}: it needs search=beam; or leave it out"
        )
    return min(beam, _WIDEST)


def _check_all_above(threshold: np.float32, search: str) -> None:
    """Whether all labels above a threshold can be found, which is what a k of ALL asks for."""
    asked = "k 0 (or None) lists all labels above a threshold"
    if not threshold > 0.0:
        raise ParameterError(f"{asked}: give a threshold (--threshold) above 0 too, like 0.01")
    if search == "beam":
        raise ParameterError(f"{asked}: search {search} cannot find them; give a k, or search exact")
