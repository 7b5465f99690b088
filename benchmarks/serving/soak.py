"""Does the service stand a long time of good and bad requests, with new model files now and then?

    python -m benchmarks.serving.soak MODEL TEXTS [--minutes 20] [--reloads 10] [--rate 60]

MODEL is a file of texts, TEXTS one text per line. Good requests of every kind go over connections that stay
open, so many a second; bad ones beside them: garbage, half bodies, too large ones, clients that leave. The
file is replaced by new versions, and once by garbage. It fails if a good request did, if memory grew by 2 %
after the first minute, or if files stay open.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import labeltree
from benchmarks.serving.process import (
    Service,
    ask,
    ask_once,
    head_of,
    post,
    read_texts,
    serving_copy,
    wait_until_ready,
)

_WARM_SECONDS = 60.0
_GROWTH = 0.02
_NAME = "/v1/models/model"


class Tally:
    """What happened so far."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.bad: Counter[int] = Counter()
        self.failures: list[str] = []
        self.versions: set[str] = set()
        self.samples: list[tuple[float, int, int, int]] = []  # seconds, resident, own, files


def good_requests(texts: Sequence[str], draw: random.Random) -> list[tuple[str, bytes]]:
    """One of each kind, about other texts each time."""
    text, some = draw.choice(texts), draw.sample(list(texts), 12)
    tensor = {"name": "text", "datatype": "BYTES", "shape": [12], "data": some}
    return [
        ("predict", post(f"{_NAME}/predict", {"text": text, "k": 5})),
        ("predict", post(f"{_NAME}/predict", {"texts": some, "threshold": 0.1})),
        ("exact", post(f"{_NAME}/predict", {"text": text, "search": "exact"})),
        ("explain", post(f"{_NAME}/explain", {"text": text, "k": 1})),
        ("labels", head_of("GET", f"{_NAME}/labels?q=a&limit=5")),
        ("suggest-batch", post("/v1/projects/model/suggest-batch", {"documents": [{"text": text}]})),
        ("infer", post("/v2/models/model/infer", {"inputs": [tensor]})),
        ("metrics", head_of("GET", "/metrics")),
    ]


async def good(
    service: Service, texts: Sequence[str], tally: Tally, seed: int, rate: float, end: float
) -> None:
    draw = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    while time.monotonic() < end:
        for kind, request in good_requests(texts, draw):
            try:
                answer = await asyncio.wait_for(ask(reader, writer, request), 30)
            except Exception as error:
                tally.failures.append(f"{kind}: {error!r}")
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
                continue
            tally.good[kind] += 1
            if answer.status != 200:
                tally.failures.append(f"{kind}: {answer.status} {answer.body[:200]!r}")
            elif kind == "predict":
                tally.versions.add(json.loads(answer.body)["model"]["version"])
            await asyncio.sleep(draw.expovariate(rate))
    writer.close()


def bad_requests(draw: random.Random) -> list[bytes]:
    garbage = draw.randbytes(draw.randrange(1, 200))
    return [
        garbage,
        post(f"{_NAME}/predict", garbage),
        post(f"{_NAME}/predict", b"[" * 100_000),
        post(f"{_NAME}/predict", b'{"text": "a", "threshold": NaN}'),
        post(f"{_NAME}/predict", {"texts": []}),
        post("/v1/models/none/predict", {"text": "a"}),
        post("/v2/models/model/infer", {"inputs": [{"name": "x"}]}),
        head_of("POST", f"{_NAME}/predict", 10**9),
        head_of("POST", f"{_NAME}/predict", 100) + b"{",  # and no more
        head_of("DELETE", _NAME),
    ]


async def bad(service: Service, tally: Tally, rate: float, end: float) -> None:
    draw = random.Random(0)
    while time.monotonic() < end:
        for request in bad_requests(draw):
            try:
                answer = await asyncio.wait_for(ask_once(service.port, request), 2)
                tally.bad[answer.status] += 1
            except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError):
                tally.bad[0] += 1  # it was sent away, or left
            await asyncio.sleep(draw.expovariate(rate))


async def replace(path: Path, n: int, seconds: float) -> None:
    """New versions, at equal times, and garbage between two of them."""
    model = labeltree.load(path)
    for number in range(n):
        await asyncio.sleep(seconds / (n + 1))
        beside = path.with_name("beside")
        if number == n // 2:
            beside.write_bytes(b"garbage")
            os.replace(beside, path)
            await asyncio.sleep(2.5)  # it has been looked at
        model.card["version"] = str(number)
        model.save(beside)
        os.replace(beside, path)


async def watch(service: Service, tally: Tally, end: float) -> None:
    began = time.monotonic()
    while time.monotonic() < end:
        memory = service.memory()
        tally.samples.append(
            (time.monotonic() - began, memory["Rss"], memory["Anonymous"], service.n_files())
        )
        await asyncio.sleep(5)


async def soak(service: Service, path: Path, texts: Sequence[str], given: argparse.Namespace) -> Tally:
    await wait_until_ready(service.port)
    tally, seconds = Tally(), given.minutes * 60
    end = time.monotonic() + seconds
    await asyncio.gather(
        *(good(service, texts, tally, seed, given.rate / 4, end) for seed in range(4)),
        bad(service, tally, given.rate / 4, end),
        replace(path, given.reloads, seconds),
        watch(service, tally, end),
    )
    with contextlib.suppress(TimeoutError):  # connections that were left half open are closed by now
        await asyncio.sleep(15)
    memory = service.memory()
    tally.samples.append((seconds, memory["Rss"], memory["Anonymous"], service.n_files()))
    return tally


def report(tally: Tally, n_reloads: int) -> bool:
    """Print it; whether all is well."""
    print(f"good requests: {sum(tally.good.values()):,} ({dict(tally.good)}), failed: {len(tally.failures)}")
    for failure in tally.failures[:5]:
        print(f"  {failure}")
    by_status = dict(sorted(tally.bad.items()))
    print(f"bad requests: {sum(tally.bad.values()):,}, by status (0: sent away): {by_status}")
    print(f"versions that answered: {len(tally.versions)} of {n_reloads + 1}")
    early = [sample for sample in tally.samples if sample[0] >= _WARM_SECONDS][:1] or tally.samples[:1]
    first, last = early[0], tally.samples[-1]
    peak = max(sample[1] for sample in tally.samples)
    print(
        f"resident memory: {first[1] / 1e6:.1f} MB after a minute, {last[1] / 1e6:.1f} MB at the end "
        f"({last[1] / first[1] - 1:+.1%}), at most {peak / 1e6:.1f} MB; of its own "
        f"{first[2] / 1e6:.1f} and {last[2] / 1e6:.1f} MB ({last[2] / first[2] - 1:+.1%})"
    )
    print(f"open files: {first[3]} after a minute, {last[3]} at the end")
    is_small = last[1] < first[1] * (1 + _GROWTH)
    return (
        not tally.failures and is_small and last[3] <= first[3] and len(tally.versions) == n_reloads + 1
        and 500 not in tally.bad
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--rate", type=float, default=60, help="good requests a second")
    given = parser.parse_args(arguments)
    texts = read_texts(given.texts, 2_000)
    with serving_copy(given.model) as (service, path):
        tally = asyncio.run(soak(service, path, texts, given))
    sys.exit(0 if report(tally, given.reloads) else 1)


if __name__ == "__main__":
    main()
