"""Words that a label hangs on: what the model says of a text without them.

A share says what a word does in the row as it is. Without the word the others are scaled anew, neighbours are
others, and another word may say the same: only asking the model again tells that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from labeltree.errors import DataError, ParameterError, show
from labeltree.explain.row import Word
from labeltree.parameter import plain

MOST_TRIED = 30  # words, those that speak most for the label


class Deletion(NamedTuple):
    """A word that is deleted, after those before it."""

    word: str
    probability: float  # of the label without all of them


def check_deletions(n: Any, X: Any) -> None:
    """Words can be deleted of a text only, and a number of them."""
    if type(plain(n)) is not int or n < 0:
        raise ParameterError(f"deletions must be a number of words, 0 or more, but is {show(n)}")
    if not isinstance(X, str):
        raise DataError(f"X must be a text where words of it are to be deleted, but is {show(X)}")


def find_deletions(
    text: str, words: Sequence[Word], n: int, probabilities: Callable[[list[str]], NDArray]
) -> list[Deletion]:
    """Of the words that speak for a label n, each that whose deletion lowers its probability most.

    ``words`` have their shares, ``probabilities`` (n_texts, 1) are of the label for texts. Ends where no
    deletion lowers it any more.
    """
    places = dict[str, list[tuple[int, int]]]()
    shares = dict[str, float]()
    for word in words:
        name = word.text.lower()
        places.setdefault(name, []).append((word.start, word.end))
        shares[name] = shares.get(name, 0.0) + word.share
    tried = [name for name in sorted(shares, key=lambda name: -shares[name]) if shares[name] > 0.0]
    left, deleted = tried[:MOST_TRIED], list[Deletion]()
    lowest = float(probabilities([text])[0, 0]) if left else 0.0
    while left and len(deleted) < n:
        gone = [place for found in deleted for place in places[found.word]]
        found = probabilities([_without(text, [*gone, *places[name]]) for name in left])[:, 0].tolist()
        if min(found) >= lowest:
            break
        lowest = min(found)
        deleted.append(Deletion(left.pop(found.index(lowest)), lowest))
    return deleted


def deletion_text(deletions: Sequence[Deletion], shown: Callable[[str], str]) -> str:
    """A sentence, with words as they are shown somewhere."""
    return ", ".join(
        f"{found.probability:.3g} without {shown(found.word)}{' too' * bool(place)}"
        for place, found in enumerate(deletions)
    )


def _without(text: str, places: Iterable[tuple[int, int]]) -> str:
    """A text without some parts."""
    kept, last = [], 0
    for start, end in sorted(places):
        kept.append(text[last:start])
        last = end
    return "".join([*kept, text[last:]])
