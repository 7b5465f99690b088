"""The command as a process of its own, asked over the network."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serving import TEXTS, text_model, wait_until
from support.serving_process import Process, ask

from labeltree import cli
from labeltree.cli.serve import named_models
from labeltree.errors import ParameterError

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")
pytest.importorskip("httptools", reason="no httptools: pip install 'labeltree[serve]'")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Process]:
    path = tmp_path / "kitchen.labeltree"
    text_model().save(path)
    patience = "import labeltree.serve.running as running; running.HEADER_SECONDS = 0.3"
    service = Process(str(path), f"other={path}", first=patience)
    yield service
    if service.process.poll() is None:
        service.process.kill()
    service.process.wait(30)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no signals of this kind on Windows")
def test_it_answers_reloads_and_drains(service: Process, tmp_path: Path) -> None:
    connection = service.connect()
    wait_until(lambda: ask(connection, "GET", "/health/ready")[0] == 200)
    asked = {"texts": TEXTS[:5], "k": 2}
    status, told = ask(connection, "POST", "/v1/models/kitchen/predict", asked)
    assert status == 200
    found = [[(label["label"], label["probability"]) for label in row["labels"]] for row in told["results"]]
    assert found == text_model().predict(TEXTS[:5], 2)

    bad = service.connect()  # a client that is broken does not hold up the others
    bad.sock = socket.create_connection(service.address or ("", 0))
    bad.sock.sendall(b"POST /v1/models/kitchen/predict HTTP/1.1\r\nHost: a\r\n")
    bad.sock.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")

    text_model(seed=2).save(tmp_path / "kitchen.labeltree")
    os.kill(service.process.pid, signal.SIGHUP)
    wait_until(
        lambda: ask(connection, "GET", "/v1/models/other")[1]["model"]["version"] != told["model"]["version"]
    )
    assert any("replaces" in line for line in service.lines)
    bad.close()

    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(60) == 0
    log = [json.loads(line) for line in service.lines if line.startswith("{")]
    assert {"time", "request_id", "client", "method", "path", "status", "ms"} == set(log[0])
    assert "/v1/models/kitchen/predict" in [line["path"] for line in log]
    assert not [line for line in service.lines if "Traceback" in line]


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="what a process has mapped is read from /proc"
)
def test_no_request_fails_while_files_are_replaced(service: Process, tmp_path: Path) -> None:
    stop, seen = threading.Event(), set[tuple[int, str]]()

    def client() -> None:
        connection = service.connect()
        while not stop.is_set():
            status, told = ask(connection, "POST", "/v1/models/kitchen/predict", {"texts": TEXTS[:3]})
            seen.add((status, told["model"]["version"]))

    clients = [threading.Thread(target=client) for _ in range(3)]
    for each in clients:
        each.start()
    try:
        for seed in (2, 1, 2, 1):
            n_lines = len(service.lines)
            text_model(seed).save(tmp_path / "kitchen.labeltree")
            for name in ("kitchen", "other"):
                done = re.compile(f"model {name}: version .* replaces")
                wait_until(lambda n=n_lines, done=done: any(map(done.match, service.lines[n:])))
    finally:
        stop.set()
        for each in clients:
            each.join(60)
    assert {status for status, _ in seen} == {200}
    assert len(seen) == 2  # versions
    maps = Path(f"/proc/{service.process.pid}/maps")
    kept = {line.split()[4] for line in maps.read_text().splitlines() if "kitchen.labeltree" in line}
    assert len(kept) <= 3, "files that were replaced stay mapped"


def test_silent_and_slow_clients_are_sent_away(service: Process) -> None:
    for sent in (b"", b"GET /health/live HT", b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\nGET /health"):
        with socket.create_connection(service.address or ("", 0), timeout=30) as connection:
            connection.sendall(sent)
            received = b""
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(4096):
                    received += part
            assert received.startswith(b"HTTP/1.1 200") == sent.endswith(b"health")
    service.process.terminate()
    assert service.process.wait(60) == 0


def test_what_cannot_be_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.labeltree"
    assert cli.main(["serve", str(path)]) == 1
    text_model().save(path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert cli.main(["serve", str(path), "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be listened on" in capsys.readouterr().err
    assert cli.main(["serve", str(path), "--token-file", str(tmp_path / "none")]) == 2


def test_names_of_models() -> None:
    paths = named_models(("a=x/b.labeltree", "x/c.labeltree", "x/d=e.labeltree"))
    assert paths == {"a": Path("x/b.labeltree"), "c": Path("x/c.labeltree"), "d=e": Path("x/d=e.labeltree")}
    with pytest.raises(ParameterError, match="two models are called c"):
        named_models(("c.labeltree", "x/c.labeltree"))


def test_connections_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "kitchen.labeltree"
    text_model().save(path)
    few = "import labeltree.serve.app as a\nfrom labeltree.serve.limits import Limits\n"
    few += "make = a.create_app\na.create_app = lambda m, **k: make(m, limits=Limits(connections=3), **k)"
    service = Process(str(path), first=few)
    try:
        wait_until(lambda: ask(service.connect(), "GET", "/health/ready")[0] == 200)
        address = service.address or ("", 0)
        held = [socket.create_connection(address) for _ in range(3)]
        connection = service.connect()
        wait_until(lambda: ask(connection, "GET", "/health/live")[0] == 503)
        assert "too many connections" in ask(service.connect(), "GET", "/health/live")[1]["detail"]
        for each in held:
            each.close()
        wait_until(lambda: ask(service.connect(), "GET", "/health/live")[0] == 200)
    finally:
        service.process.terminate()
        assert service.process.wait(60) == 0
