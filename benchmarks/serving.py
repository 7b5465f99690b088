"""How many requests a second does `labeltree serve` answer, how soon, and for how much CPU time?

    python -m benchmarks.serving MODEL TEXTS [--requests 4000] [--connections 8] [--batch 32]

MODEL is a file, TEXTS one text per line. The service is a process of its own on loopback, asked by this one
over connections that stay open, first with single texts, then with batches; rows a second are set beside
those of `predict_arrays` from Python. CPU time is what the service itself took (Linux), which other load on
the machine changes little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import labeltree

_START_SECONDS = 300.0  # kernels may have to be compiled


class Load(NamedTuple):
    """What was measured of many requests."""

    n_requests: int
    n_rows: int
    seconds: float
    cpu_seconds: float  # of the service
    latencies: list[float]  # sorted

    def percentile(self, part: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(part * len(self.latencies)))]

    def line(self, name: str) -> str:
        requests, rows = self.n_requests / self.seconds, self.n_rows / self.seconds
        return (
            f"{name:16} {requests:9,.0f} requests/s {rows:9,.0f} rows/s  "
            f"p50 {self.percentile(0.5) * 1000:7.2f} ms  p99 {self.percentile(0.99) * 1000:7.2f} ms  "
            f"{self.cpu_seconds / self.n_requests * 1e6:7.0f} µs CPU per request"
        )


class Service(NamedTuple):
    """A process and its port."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(model: Path) -> Iterator[Service]:
    """The service of a model; it ends with this."""
    command = [sys.executable, "-m", "labeltree", "serve", f"model={model}", "--port", "0", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r":(\d+)$", line.strip())
        if found is None:
            sys.exit(f"the service did not start: {line}")
        yield Service(process.pid, int(found[1]))
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def request_of(texts: Sequence[str]) -> bytes:
    body = json.dumps({"texts": list(texts), "k": 5}).encode()
    head = f"POST /v1/models/model/predict HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """One request, and the first line of its answer."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    assert length is not None
    await reader.readexactly(int(length[1]))
    return head.partition(b"\r\n")[0]


async def wait_until_ready(service: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    end = time.monotonic() + _START_SECONDS
    while b"200" not in await ask(reader, writer, b"GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n"):
        if time.monotonic() > end:
            sys.exit("the service did not become ready")
        await asyncio.sleep(0.1)
    writer.close()


async def load(service: Service, requests: Sequence[bytes], n_connections: int, n_rows: int) -> Load:
    """All requests, over so many connections at once."""
    waiting, latencies = iter(requests), list[float]()

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        for request in waiting:
            began = time.perf_counter()
            status = await ask(reader, writer, request)
            latencies.append(time.perf_counter() - began)
            if b"200" not in status:
                sys.exit(f"a request failed: {status.decode()}")
        writer.close()

    began, cpu = time.perf_counter(), service.cpu_seconds()
    await asyncio.gather(*(connection() for _ in range(n_connections)))
    seconds = time.perf_counter() - began
    return Load(len(requests), n_rows, seconds, service.cpu_seconds() - cpu, sorted(latencies))


def batches(texts: Sequence[str], n: int, size: int) -> list[bytes]:
    every = cycle(texts)
    return [request_of(list(islice(every, size))) for _ in range(n)]


async def measure(model: Path, texts: Sequence[str], n: int, n_connections: int, size: int) -> list[Load]:
    """One after another, single texts over one connection, over many, and batches."""
    with serving(model) as service:
        await wait_until_ready(service)
        single, many = batches(texts, n, 1), batches(texts, max(1, n // size), size)
        await load(service, single[: n // 10 + 1], n_connections, 0)  # caches are filled
        return [
            await load(service, single, 1, len(single)),
            await load(service, single, n_connections, len(single)),
            await load(service, many, 2, len(many) * size),
        ]


def from_python(path: Path, texts: Sequence[str], size: int) -> float:
    """Rows a CPU second of `predict_arrays`, in batches of the same size."""
    model = labeltree.load(path)
    model.predict_arrays(texts[:size], 5, threads=1)
    began = time.process_time()
    for start in range(0, len(texts), size):
        model.predict_arrays(texts[start : start + size], 5, threads=1)
    return len(texts) / (time.process_time() - began)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    given = parser.parse_args(arguments)
    texts = [line for line in given.texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    texts = texts[: given.requests]
    found = asyncio.run(measure(given.model, texts, given.requests, given.connections, given.batch))
    names = ("1 connection", f"{given.connections} connections", f"batches of {given.batch}")
    for name, each in zip(names, found, strict=True):
        print(each.line(name))
    direct, rows = from_python(given.model, texts, given.batch), found[-1]
    served = rows.n_rows / rows.cpu_seconds if rows.cpu_seconds else 0.0
    print(
        f"rows per CPU second: {served:,.0f} served, {direct:,.0f} by predict_arrays: {served / direct:.0%}"
    )


if __name__ == "__main__":
    main()
