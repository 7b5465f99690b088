"""A virtual environment for each peer, made once from the package registry and kept in a cache folder."""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType

INSTALL_SECONDS = 1800


class InstallError(Exception):
    """A tool cannot be installed on this machine."""


def cache_folder() -> Path:
    """LABELTREE_BENCH_CACHE, or a folder in the user's cache. It may be deleted at any time."""
    chosen = os.environ.get("LABELTREE_BENCH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "labeltree-benchmarks"


def environment(tool: ModuleType, cache: Path) -> Path:
    """The Python in which the tool runs; the first time this installs it."""
    if not getattr(tool, "OWN_ENVIRONMENT", True):
        return Path(sys.executable)
    # A changed recipe makes a new environment; a failed one is not kept.
    recipe = hashlib.sha256((sys.version + inspect.getsource(tool.install)).encode()).hexdigest()[:12]
    folder = cache / "environments" / f"{tool.PACKAGE}-{recipe}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "installed"
    if done.is_file():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)

    def pip(*arguments: str, **variables: str) -> None:
        command = [str(python), "-m", "pip", "install", "--quiet", *arguments]
        try:
            finished = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
                env={**os.environ, **variables},
            )
        except subprocess.TimeoutExpired as error:
            raise InstallError(f"pip install {' '.join(arguments)}: over {INSTALL_SECONDS} s") from error
        if finished.returncode:
            raise InstallError(
                f"pip install {' '.join(arguments)} failed: {last_line(finished.stderr) or finished.stdout}"
            )

    tool.install(pip)
    done.touch()
    return python


def last_line(text: str) -> str:
    """What an error output says in the end: the last line that reads like a message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "exception" in line.lower()]
    return (errors or lines or [""])[-1][:300]
