"""The description and what the service does agree, says a program that tries them against each other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.serving import text_model, vector_model, wait_until
from support.serving_process import Process, ask

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """Except that we refuse what its schema allows: that one of two fields must be given is not in it."""
    program = shutil.which("schemathesis")
    if program is None:
        pytest.skip("no schemathesis: pip install schemathesis, in any environment that is on the PATH")
    for name, model in (("text", text_model()), ("vector", vector_model())):
        model.save(tmp_path / f"{name}.labeltree")
    service = Process(str(tmp_path / "text.labeltree"), str(tmp_path / "vector.labeltree"))
    try:
        wait_until(lambda: ask(service.connect(), "GET", "/health/ready")[0] == 200)
        assert service.address is not None
        address = "http://{}:{}/openapi.json".format(*service.address)
        command = [program, "run", address, "--seed", "1", "--max-examples", "20"]
        command += ["--exclude-checks", "positive_data_acceptance"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-5000:]
    finally:
        service.process.terminate()
        assert service.process.wait(60) == 0
    assert not [line for line in service.lines if "Traceback" in line]
