"""Clusters to train on: processes of this machine, or one that is there already."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from labeltree.errors import MissingPackageError, ParameterError, TrainingError

_SECONDS_TO_CONNECT = 20
_STARTS = 3  # tries to start workers, which something may end meanwhile
# Of glibc, in a worker: smaller arrays come from memory that it has. Dask makes it give back all that is
# free, and the arrays of each task were new pages: an eighth of a worker's time.
_ALLOCATION = {"distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25}


@contextlib.contextmanager
def open_client(workers: int = 0, scheduler: str | None = None) -> Iterator[Any]:
    """A client of so many processes of this machine, or of the cluster with this scheduler."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingPackageError("a cluster needs Dask: pip install 'labeltree[dask]'") from error
    if scheduler is not None:
        try:
            _try_to_connect(scheduler)
            client = Client(scheduler, timeout=_SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise ParameterError(
                f"scheduler {scheduler}: cannot be reached ({error}); check the address, which is like "
                "tcp://host:8786, and that a scheduler runs there"
            ) from error
        with client:
            yield client
        return
    with _start_cluster(workers) as cluster, Client(cluster) as client:
        yield client


def _try_to_connect(scheduler: str) -> None:
    """A client that cannot connect is never closed, and may stop another one when the collector finds it."""
    from distributed import Security
    from distributed.comm import connect

    async def try_it() -> None:
        how = Security().get_connection_args("client")
        (await connect(scheduler, timeout=_SECONDS_TO_CONNECT, **how)).abort()

    with ThreadPoolExecutor(1) as thread:  # this one may have an event loop, as in a notebook
        thread.submit(lambda: asyncio.run(try_it())).result()


def _start_cluster(workers: int) -> Any:
    import dask
    from distributed import LocalCluster

    for last in [*[False] * (_STARTS - 1), True]:
        try:
            # A worker that is lost is not worth a page of warnings: its part is done by another.
            with dask.config.set(_ALLOCATION):
                return LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0",
                    memory_limit=None, silence_logs=logging.CRITICAL,
                )  # fmt: skip
        except (OSError, RuntimeError) as error:
            if last:
                raise TrainingError(
                    f"{workers} workers cannot be started ({error}); is there enough memory for them? Fewer "
                    "workers, or none, need less"
                ) from error
    raise AssertionError
