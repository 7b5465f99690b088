"""Numbers and names as people read them."""

from __future__ import annotations

import pytest

from labeltree.wording import did_you_mean, escape_name, near_names, timestamp, unescape_name

KNOWN = ("Bread", "bread rolls", "calibrate", "epochs", "tree", "trees", "word_ngrams")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("bred", ["Bread"]),
        ("BREAD", ["Bread"]),
        ("epoch", ["epochs"]),
        ("epcohs", ["epochs"]),
        ("wordngrams", ["word_ngrams"]),
        ("treee", ["tree", "trees"]),
        ("thread", []),
        ("lrate", []),
        ("lambda", []),
        ("", []),
    ],
)
def test_names_are_told_only_where_they_are_near(name: str, near: list[str]) -> None:
    assert near_names(name, KNOWN) == near
    assert near_names(name, KNOWN, 1) == near[:1]


def test_what_was_meant() -> None:
    assert did_you_mean([]) == ""
    assert did_you_mean(["bread", "broth"]) == "; did you mean 'bread' or 'broth'?"


def test_times_are_those_of_greenwich() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00Z"
    assert timestamp(1_769_860_805) == "2026-01-31T12:00:05Z"


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("brød", "brød"),
        ("back\\slash\ttab", "back\\\\slash\\ttab"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202eback\u2028", "\\u202eback\\u2028"),
        ("\\x1b and \\t", "\\\\x1b and \\\\t"),  # names that look escaped
        ("a\u200cb\xa0c", "a\u200cb\xa0c"),  # what joins letters or not is no control character
        ("\x85\x9b\x7f", "\\x85\\x9b\\x7f"),
    ],
)
def test_names_are_escaped_and_read_back(name: str, escaped: str) -> None:
    assert escape_name(name) == escaped
    assert unescape_name(escaped) == name


def test_what_is_no_escape_is_left() -> None:
    assert unescape_name("\\q \\xZZ \\u12 end\\") == "\\q \\xZZ \\u12 end\\"
