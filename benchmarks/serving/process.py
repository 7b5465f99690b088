"""The service as a process of its own, and connections to it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import labeltree
from labeltree.serve.memory import sizes_of

_START_SECONDS = 300.0  # kernels may have to be compiled
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Service(NamedTuple):
    """A process and its port."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Its own and that of its workers, if they are its children (Linux)."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        total = 0
        for process in [str(self.pid), *children]:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def memory(self) -> dict[str, int]:
        return sizes_of(self.pid)

    def n_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@contextmanager
def serving(
    models: Sequence[str], *options: str, core: int | None = None, command: Sequence[str] = ()
) -> Iterator[Service]:
    """The service of models; it ends with this. ``core`` binds it to one of the machine's."""
    command = command or [sys.executable, "-m", "labeltree"]
    whole = [*command, "serve", *models, "--port", "0", *options]
    bind = None if core is None else lambda: os.sched_setaffinity(0, {core})
    process = subprocess.Popen(whole, stderr=subprocess.PIPE, text=True, preexec_fn=bind)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://[^ ]*:(\d+)", line)
        if found is None:
            sys.exit(f"the service did not start: {line}{process.stderr.read()}")
        # Nobody may wait for its log to be read.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Service(process.pid, int(found[1]))
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def serving_copy(model: Path) -> Iterator[tuple[Service, Path]]:
    """The service of a file's copy, which may be replaced meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.labeltree"
        labeltree.load(model).save(path)
        with serving([f"model={path}"], "--quiet") as service:
            yield service, path


def read_texts(path: Path, n: int) -> list[str]:
    """The first of a file with one on each line."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()][:n]


def go_first() -> None:
    """Before all other processes of the machine (root, Linux)."""
    os.setsid()  # a group of its own, with the service, ...
    Path("/proc/self/autogroup").write_text("-19")  # ... which gets most of the machine's time


def head_of(method: str, path: str, length: int = 0, media_type: str = "application/json") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Content-Length: {length}"]
    return "\r\n".join([*lines, f"Content-Type: {media_type}", "", ""]).encode()


def post(path: str, body: Any) -> bytes:
    """A request with a body, which may be bytes already."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head_of("POST", path, len(data)) + data


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> Answer:
    """One request over a connection that stays open."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length is not None else b""
    return Answer(int(head[9:12]), body)


async def ask_once(port: int, request: bytes) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await ask(reader, writer, request)
    finally:
        writer.close()


async def wait_until_ready(port: int, path: str = "/health/ready") -> float:
    """The seconds that it took from now."""
    began = time.monotonic()
    while time.monotonic() < began + _START_SECONDS:
        try:
            if (await ask_once(port, head_of("GET", path))).status == 200:
                return time.monotonic() - began
        except (OSError, asyncio.IncompleteReadError):  # not yet
            pass
        await asyncio.sleep(0.02)
    sys.exit("the service did not become ready")
