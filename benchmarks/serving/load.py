"""Load on a service: as much as it answers, or so many requests a second, whatever it answers."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from benchmarks.serving.process import Service, ask

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_TICK = 0.001


class Load(NamedTuple):
    """What was measured of many requests; seconds."""

    n_requests: int
    seconds: float
    cpu_seconds: float  # of the service
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        return self.n_requests / self.seconds

    def line(self, name: str, rows: int = 1) -> str:
        told = f"{name:24} {self.rate:9,.0f} requests/s "
        if rows > 1:
            told += f"{self.rate * rows:9,.0f} rows/s "
        return told + (
            f" p50 {self.p50 * 1000:6.2f} ms  p99 {self.p99 * 1000:6.2f} ms  "
            f"{self.cpu_seconds / self.n_requests * 1e6:6.0f} µs CPU per request"
        )


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


async def closed_load(
    service: Service, requests: Sequence[bytes], n_connections: int, seconds: float = 60.0
) -> Load:
    """Each connection asks again as soon as it is answered; at most so long."""
    waiting, latencies = iter(requests), list[float]()
    end = time.perf_counter() + seconds

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        for request in waiting:
            began = time.perf_counter()
            status = (await ask(reader, writer, request)).status
            latencies.append(time.perf_counter() - began)
            if status != 200:
                sys.exit(f"a request failed: {status}")
            if began > end:
                break
        writer.close()

    began, cpu = time.perf_counter(), service.cpu_seconds()
    await asyncio.gather(*(connection() for _ in range(n_connections)))
    took = time.perf_counter() - began
    used = service.cpu_seconds() - cpu
    return Load(len(latencies), took, used, percentile(latencies, 0.5), percentile(latencies, 0.99))


class _Connection(asyncio.Protocol):
    """One of an open load: what it is sent and when that was due."""

    def __init__(self, idle: deque[_Connection], latencies: list[float]) -> None:
        self.idle, self.latencies, self.due, self.received = idle, latencies, 0.0, b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.idle.append(self)

    def send(self, request: bytes, due: float) -> None:
        self.due = due
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or length is None or len(body) < int(length[1]):
            return
        if b" 200 " not in head[:16]:
            sys.exit(f"a request failed: {head[:40]!r}")
        self.latencies.append(time.perf_counter() - self.due)
        self.received = b""
        self.idle.append(self)


async def open_load(
    service: Service, requests: Sequence[bytes], rate: float, seconds: float, n_connections: int = 32
) -> Load:
    """So many requests a second. Times count from when a request was due, even if no connection was free."""
    idle, latencies = deque[_Connection](), list[float]()
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Connection(idle, latencies), "127.0.0.1", service.port)
        for _ in range(n_connections)
    ]
    every, n, cpu = cycle(requests), int(rate * seconds), service.cpu_seconds()
    began = time.perf_counter()
    n_due, due = 0, deque[float]()
    while n_due < n or due:
        now = time.perf_counter()
        while n_due < n and began + n_due / rate <= now:
            due.append(began + n_due / rate)  # its time counts, whether a connection is free or not
            n_due += 1
        while due and idle:
            idle.popleft().send(next(every), due.popleft())
        if due and now > due[0] + 30:
            sys.exit("the service does not answer")
        await asyncio.sleep(0)  # timers would be a millisecond late
    while len(latencies) < n and time.perf_counter() < began + seconds + 30:
        await asyncio.sleep(_TICK)
    took, used = time.perf_counter() - began, service.cpu_seconds() - cpu
    for transport, _ in made:
        transport.close()
    return Load(len(latencies), took, used, percentile(latencies, 0.5), percentile(latencies, 0.99))


_SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local n, headers = 0, {["Content-Type"] = "%s"}
request = function()
  n = n %% #bodies + 1
  return wrk.format("POST", nil, headers, bodies[n])
end
"""


def wrk(
    service: Service, path: str, bodies: Sequence[str], n_connections: int, seconds: float,
    core: int | None = None, media_type: str = "application/json",
) -> Load:  # fmt: skip
    """By `wrk`, another process: as much as the service answers."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bodies").write_text("\n".join(bodies), encoding="utf-8")
        (Path(folder) / "load.lua").write_text(_SCRIPT % (Path(folder) / "bodies", media_type))
        command = [
            "wrk",
            "-t1",
            f"-c{n_connections}",
            f"-d{max(1, round(seconds))}s",
            "--timeout",
            "60s",
            "--latency",
        ]
        command += ["-s", f"{folder}/load.lua", f"http://127.0.0.1:{service.port}{path}"]
        if core is not None:
            command = ["taskset", "-c", str(core), *command]
        cpu = service.cpu_seconds()
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in told:
        sys.exit(f"requests failed: {told}")
    total = re.search(r"(\d+) requests in ([\d.]+)(m?s)", told)
    times = dict(re.findall(r"(50|99)%\s+([\d.]+[a-z]+)", told))
    assert total is not None, told
    took = float(total[2]) / (1000 if total[3] == "ms" else 1)
    used = service.cpu_seconds() - cpu
    return Load(int(total[1]), took, used, _seconds(times["50"]), _seconds(times["99"]))


def _seconds(told: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", told).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}[unit]


def has_wrk() -> bool:
    return shutil.which("wrk") is not None


def body_of(texts: Sequence[str], k: int = 5) -> str:
    return json.dumps({"texts": list(texts), "k": k} if len(texts) > 1 else {"text": texts[0], "k": k})
