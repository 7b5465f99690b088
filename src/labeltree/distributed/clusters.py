"""Clusters to train on: processes of this machine, or one that is there already."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from labeltree.errors import MissingPackageError, ParameterError

_SECONDS_TO_CONNECT = 20


@contextlib.contextmanager
def open_client(workers: int = 0, scheduler: str | None = None) -> Iterator[Any]:
    """A client of so many processes of this machine, or of the cluster with this scheduler."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingPackageError("a cluster needs Dask: pip install 'labeltree[dask]'") from error
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=_SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise ParameterError(
                f"scheduler {scheduler}: cannot be reached ({error}); check the address, which is like "
                "tcp://host:8786, and that a scheduler runs there"
            ) from error
        with client:
            yield client
        return
    # A worker that is lost is not worth a page of warnings: its part is done by another.
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
        memory_limit=None, silence_logs=logging.CRITICAL,
    )  # fmt: skip
    with cluster, Client(cluster) as client:
        yield client
