"""Several processes behind one port: they count together, die alone and reload together."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serving import TEXTS, text_model, wait_until
from support.serving_process import Process, ask

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")
pytest.importorskip("httptools", reason="no httptools: pip install 'labeltree[serve]'")

from labeltree.errors import ParameterError
from labeltree.serve import workers
from labeltree.serve.memory import give_back, keep_little, memory_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork processes")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Process]:
    path = tmp_path / "kitchen.labeltree"
    text_model().save(path)
    service = Process(str(path), "--workers", "2")
    yield service
    if service.process.poll() is None:
        service.process.terminate()
    service.process.wait(60)


def processes(service: Process) -> list[int]:
    """The workers, as the parent tells."""
    return [int(found) for found in re.findall(r"worker \d: process (\d+)", "".join(service.lines))]


def metric(service: Process, name: str) -> float:
    connection = service.connect()
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def predict(service: Process) -> str:
    """Over a connection of its own: whichever worker takes it. The version that answers."""
    connection = service.connect()
    status, told = ask(connection, "POST", "/v1/models/kitchen/predict", {"text": TEXTS[0]})
    connection.close()
    assert status == 200
    return str(told["model"]["version"])


def test_they_count_together_die_alone_and_reload_together(service: Process, tmp_path: Path) -> None:
    wait_until(lambda: len(processes(service)) == 2)
    (version,) = {predict(service) for _ in range(20)}
    wait_until(lambda: metric(service, "labeltree_documents_total") == 20)
    assert metric(service, "labeltree_workers") == 2

    os.kill(processes(service)[0], signal.SIGKILL)
    wait_until(lambda: "another comes" in "".join(service.lines))
    assert {predict(service) for _ in range(20)} == {version}
    # What was counted since its last word is lost with a process that was killed, and nothing else.
    wait_until(lambda: metric(service, "labeltree_documents_total") == 40)

    text_model(seed=2).save(tmp_path / "kitchen.labeltree")
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: version not in {predict(service) for _ in range(12)})
    assert sum("replaces" in line for line in service.lines) == 1

    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(60) == 0
    assert not [line for line in service.lines if "Traceback" in line]


def test_workers_end_with_their_parent(service: Process) -> None:
    wait_until(lambda: len(processes(service)) == 2)
    service.process.kill()
    service.process.wait(30)

    def is_gone(process: int) -> bool:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{process}/stat")  # one that nobody waits for is a zombie
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"

    wait_until(lambda: all(is_gone(process) for process in processes(service)))


def test_systems_without_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    workers.check_workers(2)
    monkeypatch.delattr(os, "fork")
    workers.check_workers(1)
    with pytest.raises(ParameterError, match="workers is 2"):
        workers.check_workers(2)


def test_memory() -> None:
    if sys.platform.startswith("linux"):
        assert re.fullmatch(r"[\d.]+ [MG]B of its own, [\d.]+ [kMG]?B shared", memory_of(os.getpid()))
    assert memory_of(-1) == "of unknown memory"
    give_back()
    keep_little()
