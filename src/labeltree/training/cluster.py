"""The parts of a fit on the workers of a Dask cluster. They share nothing but the work dir.

Nothing of the data goes through the scheduler: a task is the name of a part, and its result is a file. There
is no collective step, so none can hang; a part whose worker is lost is given to another.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labeltree.errors import MissingPackageError, ParameterError, TrainingError, WorkDirError, show

MOST_LOSSES = 20  # of workers while they had the same part: then it is the part
_RETRIES = 2  # of a part that ends with an error of the system
_log = logging.getLogger(__name__)
_CANCELLED = (concurrent.futures.CancelledError, asyncio.CancelledError)


def check_client(client: Any) -> Any:
    """A client of Dask, or an error that says what is wrong."""
    if not all(hasattr(client, name) for name in ("submit", "scheduler", "cluster")):
        raise ParameterError(f"client must be a dask.distributed.Client, but is {show(client)}")
    if client.status != "running":
        raise ParameterError(f"client must be connected, but is {client.status}; make a new one")
    if client.asynchronous:
        raise ParameterError("client must not be asynchronous; make it by Client(..., asynchronous=False)")
    return client


class Opening(NamedTuple):
    """What a worker opens for a training."""

    path: str  # of the work dir
    max_memory: int | None
    training: str  # no other one has this name


def parts_on(
    client: Any, work_dir: Path, max_memory: int = 0
) -> Callable[[str, Sequence[int], Callable[[int], None]], None]:
    """What has parts of a fit done by the workers of a client; ``max_memory`` is that of each of them."""
    # A new name for each training: what a worker has opened, or a scheduler remembers, may be of another one
    # in the same folder.
    opening = Opening(str(work_dir.resolve()), max_memory or None, uuid.uuid4().hex[:12])

    def elsewhere(name: str, numbers: Sequence[int], tell: Callable[[int], None]) -> None:
        try:
            _run_all(client, opening, name, numbers, tell)
        except _CANCELLED as error:
            raise TrainingError(
                "the scheduler was lost, or the client was closed; what is finished stays in the work dir: "
                "run the same again with a new client"
            ) from error

    return elsewhere


def _run_all(
    client: Any, opening: Opening, name: str, numbers: Sequence[int], tell: Callable[[int], None]
) -> None:
    """Tell each part that is done; the first error ends it all."""
    try:
        from distributed import as_completed
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise MissingPackageError("a cluster needs Dask: pip install 'labeltree[dask]'") from error

    losses = dict.fromkeys(numbers, 0)

    def submit(number: int, priority: int) -> Any:
        key = f"labeltree-{opening.training}-{name}-{number}-{losses[number]}"
        how = dict(key=key, pure=False, retries=_RETRIES, priority=priority)
        return client.submit(do_part, *opening, name, number, **how)

    number_of = {submit(number, -place): number for place, number in enumerate(numbers)}
    if not client.scheduler_info()["workers"]:
        _log.warning("the scheduler has no workers; training goes on when there is one")
    waiting = as_completed(list(number_of))
    try:
        for future in waiting:
            number = number_of.pop(future)
            try:
                future.result()
            except KilledWorker as error:
                losses[number] += 1
                if losses[number] >= MOST_LOSSES:
                    raise TrainingError(
                        f"part {number} of {name} has ended its worker {MOST_LOSSES} times: is there "
                        "enough memory for it? Give workers more, or set max_memory"
                    ) from error
                again = submit(number, 1)
                number_of[again] = number
                waiting.add(again)
            else:
                tell(number)
    finally:
        client.cancel(list(number_of))


_lock = threading.Lock()
_opened: dict[Opening, Any] = {}  # the last one of this worker


def do_part(path: str, max_memory: int | None, training: str, name: str, number: int) -> None:
    """On a worker: do a part, unless it is there."""
    from labeltree.training.sharing import OpenedFits

    if not os.path.isdir(path):
        raise WorkDirError(
            f"{path}: is not there on a worker; the work dir must be on storage that all workers see, under "
            "the same path"
        )
    with _lock:
        opening = Opening(path, max_memory, training)
        if opening not in _opened:
            _opened.clear()
            _opened[opening] = OpenedFits(path, max_memory)
        opened = _opened[opening]
    opened.do_part(name, number)
