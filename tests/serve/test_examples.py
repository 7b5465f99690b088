"""The examples for operators: their commands are right, and nginx takes its file."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.serving import TEXTS, text_model, wait_until
from support.serving_process import Process, ask

from labeltree.cli.serve import serve

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_commands_of_the_unit_and_the_container_are_right() -> None:
    unit = (EXAMPLES / "systemd" / "labeltree.service").read_text()
    started = re.search(r"^ExecStart=\S+/labeltree serve (.*)$", unit, re.MULTILINE)
    assert started is not None
    serve.make_context("serve", started[1].split())
    container = (EXAMPLES / "container" / "Containerfile").read_text()
    entry, command = (
        re.search(rf"^{name} (\[.*\])$", container, re.MULTILINE) for name in ("ENTRYPOINT", "CMD")
    )
    assert entry is not None
    assert command is not None
    words = json.loads(entry[1]) + json.loads(command[1])
    assert words[1] == "serve"
    assert serve.make_context("serve", words[2:]).params["models"] == ("/models/model.labeltree",)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_behind_nginx(tmp_path: Path) -> None:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("no nginx: apt install nginx-light")
    text_model().save(tmp_path / "kitchen.labeltree")
    service = Process(str(tmp_path / "kitchen.labeltree"))
    wait_until(lambda: ask(service.connect(), "GET", "/health/ready")[0] == 200)
    assert service.address is not None
    port = free_port()
    example = (EXAMPLES / "nginx" / "labeltree.conf").read_text()
    without_tls = re.sub(r"^ *ssl_certificate.*$", "", example, flags=re.MULTILINE)
    own = without_tls.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    own = own.replace("127.0.0.1:8080", f"127.0.0.1:{service.address[1]}")
    assert own.count(str(service.address[1])) == 1
    folders = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/log;\nevents {{}}\n"
    (tmp_path / "nginx.conf").write_text(f"{head}http {{ access_log off;\n{folders}{own}}}\n")
    nginx = subprocess.Popen([program, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    try:
        wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(5):
            status, told = ask(connection, "POST", "/v1/models/kitchen/predict", {"text": TEXTS[0], "k": 1})
            assert status == 200
            assert told["results"][0]["labels"][0]["label"] == "bread"
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == 403
    finally:
        nginx.terminate()
        nginx.wait(30)
        service.process.terminate()
        service.process.wait(60)
