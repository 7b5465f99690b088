"""Ending in order when the system asks for it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # of `kill` and `docker stop`, and of a terminal that is closed


class Terminated(BaseException):
    """The process was asked to end, by the signal of this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Let signals that end a process raise :class:`Terminated` instead, so that nothing half-written stays.

    Only the first: who asks again wants it at once. What others handle or ignore (``nohup``) stays theirs.
    """

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Terminated(number)

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]  # Windows: only one
    is_main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    handled = [number for number in numbers if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
