"""A text in pieces that do not overlap, to be highlighted by their shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labeltree.explain.row import Word


class Segment(NamedTuple):
    """A piece of the text; share 0 between words."""

    text: str
    share: float


def segments(text: str, words: Sequence[Word]) -> Iterator[Segment]:
    """Words, which come in order, and what is between them.

    In scripts without spaces two neighbouring characters are a word, and the next word begins with the second
    one: there a character has its parts of both.
    """
    end, place = 0, 0
    while place < len(words):
        last = place
        while last + 1 < len(words) and words[last + 1].start < words[last].end:
            last += 1
        group = words[place : last + 1]
        if group[0].start > end:
            yield Segment(text[end : group[0].start], 0.0)
        yield from _of_group(text, group)
        end, place = group[-1].end, last + 1
    if end < len(text):
        yield Segment(text[end:], 0.0)


def _of_group(text: str, group: Sequence[Word]) -> Iterator[Segment]:
    if len(group) == 1:
        yield Segment(group[0].text, group[0].share)
        return
    first, shares = group[0].start, [0.0] * (group[-1].end - group[0].start)
    for word in group:
        for character in range(word.start, word.end):
            shares[character - first] += word.share / (word.end - word.start)
    yield from (Segment(text[first + place], share) for place, share in enumerate(shares))
