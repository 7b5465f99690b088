"""How many requests a second does `labeltree serve` answer, how soon, and for how much CPU time?

    python -m benchmarks.serving MODEL TEXTS [--seconds 5] [--connections 1,8,32,64] [--rate 2500]
                                 [--batch 32] [--first]

MODEL is a file, TEXTS one text per line. The service is a process of its own on loopback, bound to one core;
the load comes from another one, over connections that stay open: by wrk where there is one, else by this
program. First single texts, as many as it answers; then so many a second (half of what is asked of it), where
times count from when a request was due; then batches, whose rows a CPU second are set beside those of
`predict_arrays` from Python. On a machine with other work, `--first` gives both precedence (as root, Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import labeltree
from benchmarks.serving.load import Load, body_of, closed_load, has_wrk, open_load, wrk
from benchmarks.serving.process import Service, go_first, post, read_texts, serving, wait_until_ready

PATH = "/v1/models/model/predict"


def cores() -> tuple[int | None, int | None]:
    """For the service and for the load, if there are two."""
    mine = sorted(os.sched_getaffinity(0))
    return (mine[0], mine[1]) if len(mine) > 1 else (None, None)


def most(service: Service, bodies: Sequence[str], n_connections: int, seconds: float) -> Load:
    if has_wrk():
        return wrk(service, PATH, bodies, n_connections, seconds, cores()[1])
    requests = list(islice(cycle([post(PATH, body.encode()) for body in bodies]), 1_000_000))
    return asyncio.run(closed_load(service, requests, n_connections, seconds))


def batches(texts: Sequence[str], size: int) -> list[str]:
    return [body_of(texts[start : start + size]) for start in range(0, len(texts) - size + 1, size)]


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
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", default="1,8,32,64")
    parser.add_argument("--rate", type=float, default=2_500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--first", action="store_true", help="before all other processes")
    given = parser.parse_args(arguments)
    texts = read_texts(given.texts, 4_000)
    single = [body_of([text]) for text in texts]
    own, other = cores()
    if other is not None:
        os.sched_setaffinity(0, {other})  # of this program, which is the load
    if given.first:
        go_first()
    with serving([f"model={given.model}"], "--quiet", core=own) as service:
        asyncio.run(wait_until_ready(service.port))
        most(service, single, 8, min(1.0, given.seconds))  # caches are filled
        for n in map(int, given.connections.split(",")):
            name = "1 connection" if n == 1 else f"{n} connections"
            print(most(service, single, n, given.seconds).line(name), flush=True)
        requests = [post(PATH, body.encode()) for body in single]
        paced = asyncio.run(open_load(service, requests, given.rate, given.seconds))
        print(paced.line(f"{given.rate:,.0f} a second"), flush=True)
        many = most(service, batches(texts, given.batch), 2, given.seconds)
    print(many.line(f"batches of {given.batch}", given.batch))
    direct = from_python(given.model, texts, given.batch)
    served = many.n_requests * given.batch / max(many.cpu_seconds, 1e-9)
    told = f"{served:,.0f} served, {direct:,.0f} by predict_arrays: {served / direct:.0%}"
    print(f"rows per CPU second: {told}")


if __name__ == "__main__":
    main()
