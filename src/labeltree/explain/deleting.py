"""Words that a label hangs on: what the model says of a text without them.

A share says what a word does in the row as it is. Without the word the others are scaled anew, neighbours are
others, and another word may say the same. What would be left is estimated from what the explanation has read
already (:mod:`.estimating`), or told by the model, which is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from labeltree.errors import DataError, ParameterError, show
from labeltree.explain.row import Word
from labeltree.parameter import plain

if TYPE_CHECKING:
    from labeltree.explain.estimating import Estimate

MOST_TRIED = 30  # words, those that speak most for the label
_ASKED = 3  # of them the model is asked for, those without which it falls most by the estimate

Ask = Callable[[list[str]], Sequence[float]]  # the probabilities of a label for texts


class Deletion(NamedTuple):
    """A word that is deleted, after those before it."""

    word: str
    probability: float  # of the label without all of them


def check_deletions(n: Any, X: Any) -> None:
    """Words can be deleted of a text only, and a number of them."""
    check_number(n)
    if not isinstance(X, str):
        raise DataError(f"X must be a text where words of it are to be deleted, but is {show(X)}")


def check_number(n: Any) -> None:
    if type(plain(n)) is not int or n < 0:
        raise ParameterError(f"deletions must be a number of words, 0 or more, but is {show(n)}")


class Names:
    """The words of a text by name, and where each is."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.places = dict[str, list[tuple[int, int]]]()
        self._shares = dict[str, float]()
        for word in words:
            name = word.text.lower()
            self.places.setdefault(name, []).append((word.start, word.end))
            self._shares[name] = self._shares.get(name, 0.0) + word.share

    def tried(self) -> list[str]:
        """Those that speak for the label, the largest share first."""
        by_share = sorted(self._shares, key=lambda name: -self._shares[name])
        return [name for name in by_share if self._shares[name] > 0.0][:MOST_TRIED]


def find_deletions(
    text: str, words: Sequence[Word], n: int, ask: Ask, estimate: Estimate | None = None
) -> list[Deletion]:
    """Of the words that speak for a label n, each that whose deletion lowers its probability most.

    ``words`` have their shares. Ends where no deletion lowers it any more. With an estimate the model is
    asked only for the few words that are the best by it.
    """
    names = Names(words)
    left, deleted = names.tried(), list[Deletion]()
    lowest = ask([text])[0] if left else 0.0
    while left and len(deleted) < n:
        before = [found.word for found in deleted]
        asked = left if estimate is None else estimate.best(before, left)[:_ASKED]
        gone = [place for name in before for place in names.places[name]]
        found = ask([_without(text, [*gone, *names.places[name]]) for name in asked])
        best = min(range(len(asked)), key=found.__getitem__)
        if found[best] >= lowest:
            break
        lowest = found[best]
        deleted.append(Deletion(asked[best], lowest))
        left.remove(asked[best])
    return deleted


def deletion_text(deletions: Sequence[Deletion], shown: Callable[[str], str]) -> str:
    """A sentence, with words as they are shown somewhere."""
    if not deletions:
        return "it hangs on no word: none speaks for it, or it is no lower without any of them"
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
