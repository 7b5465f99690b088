"""What happens to lines that cannot be used: an error that names the line, or skipped and counted."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from labeltree.errors import DataError
from labeltree.wording import counted

_log = logging.getLogger(__name__)

# What `repr` makes of a byte that is not UTF-8; after a backslash it is text of the file itself.
_STRAY_BYTE = re.compile(r"(?<!\\)\\udc([89a-f][0-9a-f])")
_SHOWN = 40  # characters of a value shown in a message


class BadLines:
    """Strict by default: the first bad line raises :class:`DataError`. With ``skip`` they are counted in
    ``skipped``, and the first few messages are kept in ``messages``. ``skip=False`` says that the caller
    could have chosen to skip, so the error mentions it; by default it does not."""

    def __init__(self, *, skip: bool | None = None, keep: int = 5) -> None:
        self.skip = skip
        self.keep = keep
        self.skipped = 0
        self.messages: list[str] = []

    @property
    def wants_message(self) -> bool:
        """Whether the next bad line's message will be used: formatting millions of them would take long."""
        return not self.skip or len(self.messages) < self.keep

    def report(self, message: str = "") -> None:
        """One more bad line; the message may be left out unless it is wanted."""
        if not self.skip:
            may_skip = self.skip is not None
            hint = ", or leave such rows out with skip_bad_lines (--skip-bad-lines)" * may_skip
            raise DataError(message + hint)
        if self.wants_message:
            self.messages.append(message)
        self.skipped += 1

    def log(self) -> None:
        """A warning where lines were skipped."""
        if self.skipped:
            _log.warning("%s", "\n".join(skipped_lines(self.skipped, self.messages)))


def skipped_lines(n_lines: int, messages: Sequence[str]) -> list[str]:
    """How many rows were skipped, and what was wrong with the first few."""
    first = " The first of them:" if n_lines > len(messages) else ""
    return [f"Skipped {counted(n_lines, 'bad row')}.{first}", *messages]


def no_rows(name: str, purpose: str, bad_lines: BadLines) -> DataError:
    """What to raise for data without rows, with which nothing can be done for the purpose: ``test on``."""
    hint = "give a file with a row per line, or lists of rows"
    if bad_lines.skipped:
        first = bad_lines.messages[0].removeprefix(f"{name}, ")
        hint = f"{counted(bad_lines.skipped, 'row')} could not be read, the first: {first}"
    return DataError(f"{name}: no rows to {purpose}; {hint}")


def shorten(value: bytes) -> str:
    """A value for a message: quoted, without line ends, at most 40 characters."""
    text = value[: 4 * _SHOWN].decode("utf-8", "surrogateescape")
    quoted = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
    return _STRAY_BYTE.sub(r"\\x\1", quoted)


def line_message(
    source: str, line: int, reason: str, column: int, value: bytes, fix: str, unit: str = "line"
) -> str:
    """The one form of all messages about lines: place, reason, value, fix. A file without lines has rows."""
    return f"{source}, {unit} {line}: {reason} at byte {column}: {shorten(value)}; {fix}"
