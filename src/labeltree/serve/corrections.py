"""What people say the labels of a text are, appended to a file of training data.

A line is on the disk before it is confirmed. Any number of threads and processes may append to a file: each
holds its lock while it writes. What a killed writer left of a line, which nobody was told is stored, is
removed by the next one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from labeltree.errors import ParameterError
from labeltree.serve.problems import Problem, busy
from labeltree.serve.requests import check_most, check_texts, read_json
from labeltree.serve.routes import answer, asked_of
from labeltree.serve.schemas import ModelName
from labeltree.storage.files import sync_folder
from labeltree.wording import timestamp

try:
    import fcntl
except ImportError:  # Windows: one process at a time there
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
MOST_BYTES = 2_000_000_000  # of a file: nobody may fill the disk
_TAIL = 16_000_000  # bytes at the end that are looked through for the beginning of the last line
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)

LabelName = Annotated[str, Meta(min_length=1)]


class CorrectionRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """A text, all labels that it should have, and suggested ones that are wrong."""

    text: Annotated[str, Meta(min_length=1)]
    labels: list[LabelName]
    rejected: list[LabelName] = []


class CorrectionAnswer(Struct):
    """The correction is on the disk."""

    stored: bool
    model: ModelName


class Corrections:
    """A file of JSON lines, as `labeltree train` reads them."""

    def __init__(self, path: str | Path, most_bytes: int = MOST_BYTES) -> None:
        """Whether it can be written, and is such a file, shows here."""
        self.path, self.most_bytes = Path(path), most_bytes
        try:
            with self._locked() as file:
                _check_lines(self.path, file)
        except OSError as error:
            raise ParameterError(f"{path}: corrections cannot be written ({error.strerror})") from error

    def append(self, lines: Sequence[bytes]) -> list[None]:
        """Write lines by one call, and flush them to the disk: all of them, or none and a problem."""
        try:
            self._append(b"".join(lines))
        except OSError as error:
            reason = error.strerror or str(error)
            _log.error("%s: corrections cannot be written: %s", self.path, reason)
            detail = f"corrections cannot be written: {reason}; send it again when that is mended"
            raise busy(503, detail) from error
        return [None] * len(lines)

    def _append(self, content: bytes) -> None:
        with self._locked() as file:
            size = _end_of_lines(file)
            if size + len(content) > self.most_bytes:
                raise busy(503, f"the file of corrections has {size:,} bytes; move it away, then go on")
            try:
                _write_all(file, content)
                os.fsync(file)
            except OSError:
                with contextlib.suppress(OSError):  # else the next writer removes the part of a line
                    os.ftruncate(file, size)
                raise

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Opened each time: who moves the file away gets a new one."""
        is_new = not self.path.exists()
        file = os.open(self.path, _FLAGS, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            if is_new:
                sync_folder(self.path.parent)
            yield file
        finally:
            os.close(file)  # and with it the lock


def _write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def _check_lines(path: Path, file: int) -> None:
    """No model or other file is written to by mistake."""
    begin = os.read(file, 4096)
    if begin.strip() and not begin.lstrip().startswith(b"{"):
        raise ParameterError(f"{path}: is no file of JSON lines, so corrections are not appended to it")


def _end_of_lines(file: int) -> int:
    """Where the next line goes: after the last whole one. The rest is removed, or ended where it is one."""
    size = os.fstat(file).st_size
    start = max(0, size - _TAIL)
    os.lseek(file, max(0, size - 1), os.SEEK_SET)
    if size == 0 or os.read(file, 1) == b"\n":
        return size
    os.lseek(file, start, os.SEEK_SET)
    tail = os.read(file, size - start)
    last = tail[tail.rfind(b"\n") + 1 :]
    try:
        msgspec.json.decode(last, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        os.ftruncate(file, size - len(last))
        return size - len(last)
    _write_all(file, b"\n")
    return size + 1


def _check_decisions(asked: CorrectionRequest) -> None:
    """Nothing can be learned of a label that is both right and wrong."""
    rejected = set(asked.rejected)
    both = next((label for label in asked.labels if label in rejected), None)
    if both is not None:
        raise Problem(422, f"{both[:64]!r} is in labels and in rejected; leave it out of one of them")


async def correct(request: Request) -> Response:
    service, served = asked_of(request)
    if service.corrections is None:
        raise Problem(404, "this service keeps no corrections; start it with --corrections FILE")
    asked = await read_json(request, CorrectionRequest, service.limits)
    if not served.takes_text:
        raise Problem(422, f"{served.name} takes vectors; only models of texts can be corrected here")
    check_texts([asked.text], service.limits)
    _check_decisions(asked)
    check_most("the number of labels", len(asked.labels) + len(asked.rejected), service.limits.labels)
    record = {
        "text": asked.text,
        "labels": list(dict.fromkeys(asked.labels)),
        "rejected": list(dict.fromkeys(asked.rejected)),
        "model": f"{served.name}@{served.version}",
        "time": timestamp(int(time.time())),
    }
    line = msgspec.json.encode(record) + b"\n"
    # All that wait are written together, and flushed once.
    await service.writes.submit("corrections", service.corrections.append, line, 1)
    return answer(CorrectionAnswer(True, served.model_name), served)
