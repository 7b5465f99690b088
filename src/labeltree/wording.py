"""Numbers, names and tables as people read them."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

_NEAR = 0.75  # of the letters of both names are the same, in the same order
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"\\(?:([\\tnr])|x([0-9a-f]{2})|u([0-9a-f]{4}))")
_ORIGINAL = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}
FIND_NAMES = "; find_labels, or labeltree labels MODEL --search TEXT, finds names"  # behind a message
# Of characters that turn the direction of writing, so that a line shows something else than it says.
_TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def duration(seconds: float) -> str:
    """``4.2 s``, ``3 min 10 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@lru_cache(1)  # the many requests of a second have the same
def timestamp(second: int) -> str:
    """``2026-01-31T12:00:00Z``, of seconds since 1970."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def size(n_bytes: float) -> str:
    """``812 B``, ``3.4 MB``: powers of 1000, as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def escape_name(name: str) -> str:
    """A name in a line of text: names are anyone's free text, of which some would break the line, and a
    terminal would obey some. :func:`unescape_name` undoes it."""
    if name.isprintable() and "\\" not in name:
        return name
    return "".join(map(_escape_character, name))


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    is_harmless = (
        unicodedata.category(character) not in ("Cc", "Zl", "Zp", "Cs")
        and unicodedata.bidirectional(character) not in _TURNING
    )
    if is_harmless:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def unescape_name(text: str) -> str:
    """The name that :func:`escape_name` wrote."""
    return _ESCAPED.sub(_unescape_match, text)


def _unescape_match(match: re.Match[str]) -> str:
    letter, *codes = match.groups()
    return _ORIGINAL[letter] if letter else chr(int(codes[0] or codes[1], 16))


def near_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Those that a wrong name may have been meant for, the nearest first; upper case does not matter."""
    import difflib

    folded = {each.casefold(): each for each in known}
    return [folded[each] for each in difflib.get_close_matches(name.casefold(), folded, most, cutoff=_NEAR)]


def did_you_mean(names: Sequence[str]) -> str:
    """``; did you mean 'bread' or 'broth'?``, behind a message; nothing without names."""
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def align(table: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
