"""A model's card: a few facts that travel in its file, such as its licence, its language and its data."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from labeltree.errors import ParameterError, show

MOST_ENTRIES = 64
LONGEST_VALUE = 4096  # characters
_KEY = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_BREAKING = ("Cc", "Cs", "Zl", "Zp")  # Unicode's control characters, lone surrogates, ends of lines


def check_card(card: Any) -> dict[str, str]:
    """The card as it is stored: lower-case keys, and values of one line each."""
    if not isinstance(card, Mapping):
        raise ParameterError(f"card must be a dict like {{'licence': 'CC0-1.0'}}, but is {show(card)}")
    if len(card) > MOST_ENTRIES:
        raise ParameterError(f"card must have at most {MOST_ENTRIES} entries, but has {len(card)}")
    for key, value in card.items():
        _check_entry(key, value)
    return dict(card)


def _check_entry(key: Any, value: Any) -> None:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ParameterError(
            f"card: a key must be a lower-case letter and at most 63 more, digits, '.', '_' or '-', "
            f"but one is {show(key, 80)}"
        )
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"card: {key} must be a text that is not empty, but is {show(value)}")
    if len(value) > LONGEST_VALUE:
        raise ParameterError(
            f"card: {key} must have at most {LONGEST_VALUE} characters, but has {len(value)}; give a link"
        )
    wrong = next((c for c in value if unicodedata.category(c) in _BREAKING), None)
    if wrong is not None:
        raise ParameterError(f"card: {key} must be one line of valid Unicode, but has {wrong!r}; remove it")


def card_of_options(given: Sequence[str]) -> dict[str, str]:
    """The card that ``--card KEY=VALUE``, given several times, stands for."""
    card: dict[str, str] = {}
    for option in given:
        key, sign, value = option.partition("=")
        if not sign:
            raise ParameterError(f"--card {option!r:.60} has no '='; give KEY=VALUE, like licence=CC0-1.0")
        if key in card:
            raise ParameterError(
                f"--card gives {key} twice, {card[key]!r:.60} and {value!r:.60}; give it once"
            )
        card[key] = value
    return check_card(card)
