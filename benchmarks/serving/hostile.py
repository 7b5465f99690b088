"""Does the service stand whoever means it ill? Never a 500, never a hang, and others are answered meanwhile.

    python -m benchmarks.serving.hostile MODEL TEXTS [--fuzzed 10000] [--schemathesis PROGRAM]

MODEL is a file of texts, TEXTS one text per line. Each line is one attempt, and what came of it; schemathesis
is run if it is installed, or PROGRAM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.serving.load import percentile
from benchmarks.serving.process import (
    Answer,
    Service,
    ask,
    ask_once,
    head_of,
    post,
    read_texts,
    serving_copy,
    wait_until_ready,
)
from benchmarks.serving.soak import bad_requests, good_requests

_PREDICT = "/v1/models/model/predict"
_PATIENCE = 40.0  # seconds: more than any answer may take
_SLOW_CLIENTS = 300
_ODD: list[Any] = [
    None, True, -1, 0, 1, 2.5, 10**30, 1e308, "", "a", "\x00", [], [[]], [None], ["a", 1], {}, {"a": {}},
    "none", "exact", {"indices": [0], "values": [1]},
    {"indices": [-1, 2**40], "values": [1]}, ["x" * 10_000], "é" * 5_000,
]  # fmt: skip
_FUZZING_CLIENTS = 400  # many, as those with half a request wait until they are sent away


def told(name: str, is_well: bool, detail: str) -> bool:
    print(f"{name:28} {'ok' if is_well else 'FAILED':6} {detail}", flush=True)
    return is_well


@asynccontextmanager
async def good_load(service: Service, texts: Sequence[str], rate: float = 50) -> AsyncIterator[list[float]]:
    """Good requests beside whatever else happens: their times; a failed one has an endless one."""
    times, draw, is_over = list[float](), random.Random(1), asyncio.Event()

    async def run() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        while not is_over.is_set():
            began = time.perf_counter()
            request = post(_PREDICT, {"text": draw.choice(texts)})
            status = (await asyncio.wait_for(ask(reader, writer, request), _PATIENCE)).status
            times.append(time.perf_counter() - began if status == 200 else float("inf"))
            await asyncio.sleep(1 / rate)
        writer.close()

    task = asyncio.create_task(run())
    try:
        yield times
    finally:
        is_over.set()
        await task


def of_times(times: Sequence[float]) -> str:
    n_failed = sum(each == float("inf") for each in times)
    slow = percentile(times, 0.99) * 1000
    return f"{len(times):,} good requests meanwhile, {n_failed} failed, p99 {slow:.0f} ms"


def is_fine(times: Sequence[float]) -> bool:
    return bool(times) and max(times) < _PATIENCE


async def answered(port: int, request: bytes) -> Answer | None:
    """None where the connection was closed instead, which is an answer too; a hang is an error."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await asyncio.wait_for(ask(reader, writer, request), _PATIENCE)
    except (OSError, asyncio.IncompleteReadError, ValueError):
        return None
    finally:
        writer.close()


def changed(content: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, left out or doubled."""
    data = bytearray(content[:5_000])
    for _ in range(draw.randrange(1, 8)):
        place = draw.randrange(len(data) + 1)
        how = draw.randrange(4)
        if how == 0:
            data[place : place + 1] = bytes([draw.randrange(256)])
        elif how == 1:
            del data[place : place + draw.randrange(1, 20)]
        elif how == 2:
            data[place:place] = data[place : place + draw.randrange(1, 50)]
        else:
            data[place:place] = draw.choice([b"\x00", b"\xff", b"\r\n", b"{", b'"', b"1e999", b"-1", b"NaN"])
    return bytes(data)


def fuzzed(texts: Sequence[str], draw: random.Random) -> bytes:
    """A request that is changed anywhere, a good one with a changed body, or with an odd value in it."""
    good = [request for _, request in good_requests(texts, draw)]
    how = draw.randrange(3)
    if how == 0:
        return changed(draw.choice(good + bad_requests(draw)), draw)
    head, _, body = draw.choice([request for request in good if request.startswith(b"POST")]).partition(
        b"\r\n\r\n"
    )
    path = head.split()[1].decode()
    if how == 1:
        return post(path, changed(body, draw))
    asked = json.loads(body)
    asked[draw.choice([*asked, "k", "text", "vector", "allowed", "rule"])] = draw.choice(_ODD)
    return post(path, asked)


async def fuzz(service: Service, texts: Sequence[str], n: int) -> bool:
    statuses: Counter[int] = Counter()
    numbers = iter(range(n))

    async def client() -> None:
        for number in numbers:
            answer = await answered(service.port, fuzzed(texts, random.Random(number)))
            statuses[0 if answer is None else answer.status] += 1

    async with good_load(service, texts) as times:
        await asyncio.gather(*(client() for _ in range(_FUZZING_CLIENTS)))
    is_well = not any(status >= 500 for status in statuses) and is_fine(times)
    by = dict(sorted(statuses.items()))
    return told(f"{n:,} fuzzed requests", is_well, f"by status (0: sent away) {by}; {of_times(times)}")


async def drip(port: int, at_once: bytes, rest: bytes) -> float:
    """A part of a request, then a byte every half second: after how long one is sent away."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(at_once)
    for byte in rest:
        try:
            writer.write(bytes([byte]))
            await asyncio.wait_for(reader.read(1), 0.5)
            break
        except TimeoutError:
            continue
        except OSError:
            break
    writer.close()
    return time.monotonic() - began


async def slow_clients(service: Service, texts: Sequence[str]) -> bool:
    """Heads and bodies that come byte by byte: they are sent away, and nobody waits for them."""
    head, n = head_of("POST", _PREDICT, 1000), _SLOW_CLIENTS // 2
    async with good_load(service, texts) as times:
        took = await asyncio.gather(
            *(drip(service.port, b"", head) for _ in range(n)),
            *(drip(service.port, head, b" " * 999) for _ in range(n)),
        )
    of_heads, of_bodies = max(took[:n]), max(took[n:])
    detail = f"with heads sent away after {of_heads:.0f} s, with bodies after {of_bodies:.0f} s"
    is_well = is_fine(times) and max(took) < _PATIENCE
    return told(f"{_SLOW_CLIENTS} slow clients", is_well, f"{detail}; {of_times(times)}")


async def large_body(service: Service, texts: Sequence[str]) -> bool:
    """A gigabyte, said at first or not (chunks)."""
    before = service.memory()["Anonymous"]
    async with good_load(service, texts) as times:
        announced = await answered(service.port, head_of("POST", _PREDICT, 10**9))
        head = f"POST {_PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent, chunk = 0, b"100000\r\n" + b"a" * (1 << 20) + b"\r\n"
        try:
            while sent < 10**9:
                writer.write(chunk)
                await asyncio.wait_for(writer.drain(), _PATIENCE)
                sent += 1 << 20
        except OSError:
            pass
        writer.close()
    grown = service.memory()["Anonymous"] - before
    is_well = announced is not None and announced.status == 413 and sent < 10**9 and grown < 60e6
    detail = f"413; of chunks {sent / 1e6:.0f} MB were taken; memory {grown / 1e6:+.0f} MB; {of_times(times)}"
    return told("a body of 1 GB", is_well and is_fine(times), detail)


async def odd_json(service: Service) -> bool:
    bodies = {
        "deep": b"[" * 4_000_000,
        "deep objects": b'{"a":' * 1_000_000,
        "NaN": b'{"text": "a", "threshold": NaN}',
        "Infinity": b'{"text": "a", "threshold": 1e999}',
        "large number": b'{"text": "a", "k": 1' + b"0" * 5_000 + b"}",
        "lone surrogate": b'{"text": "\\ud800"}',
        "zero byte": b'{"text": "\\u0000"}',
        "empty": b"",
    }
    found = {}
    for name, body in bodies.items():
        answer = await answered(service.port, post(_PREDICT, body))
        found[name] = None if answer is None else answer.status
    is_well = all(status in (200, 400, 413, 422) for status in found.values())
    return told("odd JSON", is_well, str(found))


async def garbage_model(service: Service, texts: Sequence[str], path: Path) -> bool:
    """The file is replaced by what is none, and by half of one, while requests are answered."""
    good = path.read_bytes()
    async with good_load(service, texts, 200) as times:
        for content in (b"", b"garbage" * 1000, good[: len(good) // 2], good[:-1] + bytes([good[-1] ^ 1])):
            beside = path.with_name("beside")
            beside.write_bytes(content)
            os.replace(beside, path)
            await asyncio.sleep(1.5)
        path.unlink()
        await asyncio.sleep(1.5)
    path.write_bytes(good)
    metrics = (await ask_once(service.port, head_of("GET", "/metrics"))).body.decode()
    refused = [line for line in metrics.splitlines() if "reloads_total" in line and "refused" in line]
    n = refused[0].rpartition(" ")[2] if refused else "0"
    is_well = is_fine(times) and bool(refused)
    return told("a model that is garbage", is_well, f"{n} files refused; {of_times(times)}")


def schemathesis(service: Service, program: str) -> bool:
    """What it finds, but for requests that the schema allows and we refuse: "exactly one of" is not in it."""
    command = [program, "run", f"http://127.0.0.1:{service.port}/openapi.json", "--seed", "1"]
    command += ["--max-examples", "50", "--exclude-checks", "positive_data_acceptance"]
    with tempfile.TemporaryDirectory() as folder:  # where it keeps what it found
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    lines = [line.strip(" =") for line in done.stdout.splitlines() if line.strip()]
    counts = [line for line in lines if "generated" in line]
    if done.returncode:
        print(done.stdout[-3000:])
    return told("schemathesis", done.returncode == 0, "; ".join([*counts, lines[-1]]))


async def attack(service: Service, texts: Sequence[str], path: Path, n_fuzzed: int) -> bool:
    await wait_until_ready(service.port)
    files = service.n_files()
    found = [
        await odd_json(service),
        await large_body(service, texts),
        await garbage_model(service, texts, path),
        await slow_clients(service, texts),
        await fuzz(service, texts, n_fuzzed),
    ]
    await asyncio.sleep(12)
    live = await ask_once(service.port, head_of("GET", "/health/ready"))
    after = service.n_files()
    found.append(told("at the end", live.status == 200, f"ready; {files} files open before, {after} after"))
    return all(found)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--fuzzed", type=int, default=10_000)
    parser.add_argument("--schemathesis", default=shutil.which("schemathesis"), metavar="PROGRAM")
    given = parser.parse_args(arguments)
    texts = read_texts(given.texts, 2_000)
    with serving_copy(given.model) as (service, path):
        is_well = asyncio.run(attack(service, texts, path, given.fuzzed))
        if given.schemathesis:
            is_well &= schemathesis(service, given.schemathesis)
        else:
            print("schemathesis is not installed: pip install schemathesis")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
