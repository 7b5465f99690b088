"""The command as a process of its own, asked over the network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from http.client import HTTPConnection
from typing import Any

from support.serving import wait_until


class Process:
    """A running service; what it prints is kept."""

    def __init__(self, *arguments: str, first: str = "") -> None:
        """``first`` is run before the command."""
        code = f"import sys\n{first}\nfrom labeltree.cli import main\nsys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "serve", *arguments, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: self.address is not None or self.process.poll() is not None)
        assert self.address is not None, self.lines

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(line for line in self.process.stderr)

    @property
    def address(self) -> tuple[str, int] | None:
        found = re.search(r"on http://([\d.]+):(\d+)", "".join(self.lines))
        return None if found is None else (found[1], int(found[2]))

    def connect(self) -> HTTPConnection:
        assert self.address is not None
        return HTTPConnection(*self.address, timeout=60)


def ask(connection: HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
