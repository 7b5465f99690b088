"""Trainings on a cluster of Dask, of this machine: the same bytes, whoever is lost, or a clear error."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.small_data import make_toy, write_fasttext
from support.work import MANY_TASKS, model_bytes

import labeltree
from labeltree.errors import ParameterError, TrainingError, WorkDirError
from labeltree.experts.job import Progress
from labeltree.training.cluster import check_client, do_part

distributed = pytest.importorskip(
    "distributed", reason="Dask is not installed: pip install 'labeltree[dask]'"
)

from labeltree.distributed import clusters  # noqa: E402

TOY = make_toy(200)
HOW: dict[str, Any] = dict(threads=1, trees=2, **MANY_TASKS)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with clusters.open_client(2) as client:
        yield client


@pytest.fixture(scope="module")
def expected() -> bytes:
    return model_bytes(labeltree.train(TOY.texts, TOY.Y, **HOW))


def test_two_workers(client: Any, expected: bytes, tmp_path: Path) -> None:
    heard: list[Progress] = []
    model = labeltree.train(
        TOY.texts, TOY.Y, client=client, work_dir=tmp_path, callback=heard.append, max_memory="2GB", **HOW
    )
    assert model_bytes(model) == expected
    told = [progress.fraction for progress in heard if progress.stage == "train" and progress.tree == 1]
    assert len(told) > 5
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("parameters", [dict(link="hsm"), dict(loss="log"), dict(solver="sgd")], ids=str)
def test_every_method(client: Any, tmp_path: Path, parameters: dict[str, Any]) -> None:
    expected = labeltree.train(TOY.X, TOY.Y, threads=1, **parameters)
    found = labeltree.train(TOY.X, TOY.Y, threads=2, client=client, work_dir=tmp_path, **parameters)
    assert model_bytes(found) == model_bytes(expected)


def test_files(client: Any, expected: bytes, tmp_path: Path) -> None:
    lines = write_fasttext(TOY).splitlines(keepends=True)
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, part in zip(paths, (lines[:120], lines[120:]), strict=True):
        path.write_text("".join(part))
    found = labeltree.train(paths, client=client, work_dir=tmp_path / "work", **HOW)
    assert model_bytes(found) == model_bytes(labeltree.train(paths, **HOW))


def test_another_training_in_the_same_folder(client: Any, tmp_path: Path) -> None:
    """Workers live on, and must not go on with what they have opened for the one before."""
    for seed in (3, 4):
        toy = make_toy(150, seed=seed)
        found = labeltree.train(toy.texts, toy.Y, client=client, work_dir=tmp_path / "work", **HOW)
        assert model_bytes(found) == model_bytes(labeltree.train(toy.texts, toy.Y, **HOW))
        shutil.rmtree(tmp_path / "work")


def test_a_lost_worker(client: Any, expected: bytes, tmp_path: Path) -> None:
    lost: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.stage == "train" and not lost:
            lost.append(min(client.run(os.getpid).values()))
            os.kill(lost[0], signal.SIGKILL)

    found = labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, callback=kill_one, **HOW)
    assert lost
    assert model_bytes(found) == expected


def test_a_part_that_is_damaged_is_made_again(client: Any, expected: bytes, tmp_path: Path) -> None:
    labeltree.train(TOY.texts, TOY.Y, work_dir=tmp_path, **HOW)
    for path in sorted(tmp_path.glob("tree-0-*-*.part"))[::3]:
        path.write_bytes(b"damaged")
    assert model_bytes(labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, **HOW)) == expected


def test_what_a_callback_raises_ends_it(client: Any, expected: bytes, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.stage == "train":
            raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, callback=stop, **HOW)
    assert model_bytes(labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, **HOW)) == expected


def test_a_part_that_ends_its_workers_is_named(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does for which there is not enough memory; else it would be tried for ever."""
    from labeltree.training import cluster

    def killed(self: Any, *_: Any, **__: Any) -> Any:
        raise distributed.scheduler.KilledWorker("part", None, [])

    monkeypatch.setattr(cluster, "MOST_LOSSES", 3)
    monkeypatch.setattr(distributed.Future, "result", killed)
    with pytest.raises(TrainingError, match=r"part \d+ of .* has ended its worker 3 times: is there enough"):
        labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, **HOW)


def test_an_error_on_a_worker_is_told(client: Any, tmp_path: Path) -> None:
    with pytest.raises(
        WorkDirError, match="is not there on a worker; the work dir must be on storage that all"
    ):
        client.submit(do_part, str(tmp_path / "elsewhere"), None, "x", "tree-0-sparse", 0).result(30)
    with pytest.raises(WorkDirError, match=r"no work of a training is in it; .* must see the same folder"):
        client.submit(do_part, str(tmp_path), None, "y", "tree-0-sparse", 0).result(30)


def test_what_needs_something_else(client: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="client needs work_dir"):
        labeltree.train(TOY.texts, TOY.Y, client=client)
    for nodes in ("dense", "direct", "both"):
        with pytest.raises(ParameterError, match="trained on one machine only"):
            labeltree.train(TOY.texts, TOY.Y, client=client, nodes=nodes, work_dir=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("other", [3, "tcp://127.0.0.1:8786", object(), {}])
def test_no_client(other: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"client must be a dask.distributed.Client, but is"):
        labeltree.train(TOY.texts, TOY.Y, client=other, work_dir=tmp_path)


@pytest.mark.parametrize(
    ("status", "asynchronous", "told"),
    [("closed", False, "must be connected, but is closed"), ("running", True, "must not be asynchronous")],
)
def test_a_client_of_no_use(status: str, asynchronous: bool, told: str) -> None:
    client = SimpleNamespace(
        submit=None, scheduler=None, cluster=None, status=status, asynchronous=asynchronous
    )
    with pytest.raises(ParameterError, match=told):
        check_client(client)


@pytest.mark.parametrize(
    "address", ["", "nowhere", "tcp://127.0.0.1", "ftp://127.0.0.1:1", "tcp://127.0.0.1:x"]
)
def test_no_address(address: str) -> None:
    with (
        pytest.raises(ParameterError, match=r"cannot be reached .* check the address"),
        clusters.open_client(scheduler=address),
    ):
        pass


def check_unreachable() -> None:
    import socket

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with (
            pytest.raises(ParameterError, match=rf"scheduler {address}: cannot be reached"),
            clusters.open_client(scheduler=address),
        ):
            pass


def test_an_unreachable_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_SECONDS_TO_CONNECT", 1)
    check_unreachable()


@pytest.mark.slow
def test_an_unreachable_scheduler_within_30_seconds() -> None:
    began = time.perf_counter()
    check_unreachable()
    assert time.perf_counter() - began < 30


def test_workers_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tried again: something may have ended one meanwhile."""
    starts: list[int] = []

    def fail(**_: Any) -> None:
        starts.append(1)
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", fail)
    with (
        pytest.raises(TrainingError, match=r"2 workers cannot be started \(Nanny failed"),
        clusters.open_client(2),
    ):
        pass
    assert len(starts) == 3


def test_a_lost_scheduler(tmp_path: Path) -> None:
    """It has no workers, so that parts wait until it is killed."""
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    options = ["--no-dashboard", "--scheduler-file", str(file)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with distributed.Client(scheduler_file=str(file), timeout=30) as client:
            timers: list[threading.Timer] = []

            def kill(progress: Progress) -> None:
                if progress.stage == "tree" and not timers:
                    timers.append(threading.Timer(1.0, process.kill))
                    timers[0].start()

            with pytest.raises(TrainingError, match="the scheduler was lost, or the client was closed"):
                labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, callback=kill, **HOW)
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "rows.part").exists()


def test_a_scheduler_without_workers_waits_and_says_so(
    expected: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        timer = threading.Timer(1.0, cluster.scale, [1])
        timer.start()
        model = labeltree.train(TOY.texts, TOY.Y, client=client, work_dir=tmp_path, **HOW)
        timer.join()
    assert model_bytes(model) == expected
    assert "the scheduler has no workers" in caplog.text
