"""A ledger of finished runs: an experiment that is started again runs only what it lacks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Ledger:
    """Results by key in a file of JSON lines that only grows; of a line half written nothing is used."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._results: dict[str, Record] = {}
        written = self.path.read_bytes() if self.path.is_file() else b""
        *whole, self._torn = written.split(b"\n")
        for number, line in enumerate(whole, 1):
            self._take(line, number)

    def _take(self, line: bytes, number: int) -> None:
        try:
            entry = json.loads(line)
            self._results[_canonical(entry["key"])] = entry["result"]
        except (ValueError, TypeError, KeyError):
            # A run stopped while it wrote; what follows was written by the next one.
            print(f"{self.path}, line {number}: not a record, left out", file=sys.stderr)

    def find(self, key: Mapping[str, Any]) -> Record | None:
        """The result recorded for this key, if any; of several the last."""
        found = self._results.get(_canonical(key))
        return None if found is None else dict(found)

    def add(self, key: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Append one result; it is in the file when this returns."""
        line = json.dumps({"key": dict(key), "result": dict(result)}, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write((b"\n" if self._torn else b"") + line.encode() + b"\n")
            file.flush()
        self._torn = b""
        # As it will be read: a tuple becomes a list, so that a resumed experiment sees the same.
        self._results[_canonical(key)] = json.loads(line)["result"]


def _canonical(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(key), sort_keys=True, allow_nan=False)


def run_missing(
    ledger: Ledger,
    keys: Sequence[Mapping[str, Any]],
    run: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    title: str,
) -> list[Record]:
    """The record {**key, **result} of every key, in order; only keys that the ledger lacks are run."""
    from tqdm import tqdm

    missing = {_canonical(key): key for key in keys if ledger.find(key) is None}
    for key in tqdm(missing.values(), desc=title, unit="run", disable=not missing, file=sys.stderr):
        ledger.add(key, run(key))
    return [{**key, **(ledger.find(key) or {})} for key in keys]
