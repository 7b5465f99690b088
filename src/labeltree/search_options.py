"""What may be asked of a prediction: how many labels, and how they are searched for."""

from __future__ import annotations

from typing import Any

from labeltree.config import plain
from labeltree.errors import ParameterError

SEARCHES = ("exact", "beam")
DEFAULT_BEAM = 10
NO_BEAM = 0  # the search is exact
_WIDEST = 1 << 31  # more than any tree has nodes, and kernels can count so far


def check_k(k: Any) -> int:
    k = k if type(k) is int else plain(k)  # kernels are compiled once per kind of integer
    if type(k) is not int or k < 1:
        raise ParameterError(
            f"k must be at least 1, but is {k!r}; give a whole number, or for "
            "all labels of some probability predict(X, k=None, threshold=0.1)"
        )
    return k


def check_search(search: Any, beam: Any) -> int:
    """The width of the beam, or NO_BEAM."""
    beam = beam if type(beam) is int else plain(beam)
    if type(beam) is not int or beam < 1:
        raise ParameterError(f"beam must be at least 1, but is {beam!r}; give a whole number, such as 10")
    if isinstance(search, str) and search in SEARCHES:
        return NO_BEAM if search == "exact" else min(beam, _WIDEST)
    raise ParameterError(f"search must be one of {', '.join(SEARCHES)}, but is {search!r}")


def check_all_above(threshold: Any, search: Any) -> None:
    """Whether all labels above a threshold can be found, which is what ``k=None`` asks for."""
    if not threshold > 0.0:
        raise ParameterError(f"with k=None threshold must be above 0, but is {threshold!r}")
    if search != "exact":
        raise ParameterError(f"with k=None search must be exact, but is {search!r}; give a k")
