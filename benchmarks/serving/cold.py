"""How long until `labeltree serve` is ready, on a machine with compiled kernels?

    python -m benchmarks.serving.cold MODEL [--starts 5] [--python PYTHON] [--read-only] [--first]

From the start of the process to the first 200 of /health/ready. PYTHON is another one that has labeltree.
With `--read-only` (root, Linux) it runs as in a container of an image whose kernels were compiled when it was
built: as nobody, without a home, and with every file system read-only.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

_NOBODY = 65534


def read_only(command: Sequence[str]) -> list[str]:
    """In a name space of its own, whose files nobody can write."""
    nobody = f"setpriv --reuid={_NOBODY} --regid={_NOBODY} --clear-groups --no-new-privs"
    script = f'mount -o remount,bind,ro / && cd / && exec {nobody} env -i PATH=/usr/bin:/bin "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *command]


def is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def start(command: Sequence[str]) -> tuple[float, float]:
    """Seconds until it is ready, and CPU seconds of its whole life."""
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r":(\d+)$", line.strip())
    if found is None:
        sys.exit(f"the service did not start: {line}{process.stderr.read()}")
    while not is_ready(int(found[1])):
        time.sleep(0.005)
    took = time.monotonic() - began
    process.terminate()
    process.wait(60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--first", action="store_true", help="before all other processes (root, Linux)")
    given = parser.parse_args(arguments)
    if given.first:
        os.setsid()
        Path("/proc/self/autogroup").write_text("-19")
    model = given.model.resolve()
    command = [given.python, "-m", "labeltree", "serve", f"model={model}", "--port", "0", "--quiet"]
    if given.read_only:
        command = read_only(command)
    taken = sorted(start(command) for _ in range(given.starts))
    times = ", ".join(f"{seconds:.2f}" for seconds, _ in taken)
    print(f"ready after {times} s; CPU time of the fastest {taken[0][1]:.2f} s")


if __name__ == "__main__":
    main()
