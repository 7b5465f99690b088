"""A folder in which a training keeps what is finished, so that it goes on there after it was ended.

Every result is a container (:mod:`.container`): whole or not there, with a digest. ``work.json`` says which
training it is. What is under way lives in files without names (:mod:`.space`), which are gone with it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from labeltree.errors import ModelFileError, TrainingError, WorkDirError, show
from labeltree.storage.container import read_model, write_model
from labeltree.storage.files import lock_file, write_whole
from labeltree.storage.space import disk_error

_MANIFEST = "work.json"
_LOCK = "lock"
_SUFFIX = ".part"
_FORMAT = 1
_SHOWN = 5  # differences in a message

Tensors = dict[str, NDArray[Any]]


class WorkDir:
    """Named results of one training. ``work.json`` stands for what they were made from."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """What it holds results of; empty for a folder that holds none."""
        try:
            found = json.loads((self.path / _MANIFEST).read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise WorkDirError(
                f"{self.path / _MANIFEST}: cannot be read ({error}); remove the folder, or choose another"
            ) from error
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise WorkDirError(f"{self.path}: a work dir of another version of labeltree; choose another")
        return found

    def begin(self, key: Mapping[str, Any]) -> None:
        """Make the folder that of a training, or see that it is; ``key`` is made of what JSON can hold."""
        found, wanted = self.manifest, {"format": _FORMAT, **json.loads(json.dumps(key))}
        if found == wanted:
            return
        has_results = any(self.path.glob(f"*{_SUFFIX}"))
        if found and has_results:  # one that ended before it had any, as its data was bad, is nothing to lose
            different = list(_differences(found, wanted))
            told = "; ".join([*different[:_SHOWN], *["..."] * (len(different) > _SHOWN)])
            raise WorkDirError(
                f"{self.path}: holds the work of another training ({told}); run the command that it was "
                "begun with, choose another work dir, or remove it"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if has_results:
                raise WorkDirError(f"{self.path}: has results, but no {_MANIFEST}; choose another work dir")
            write_whole(self.path / _MANIFEST, [json.dumps(wanted, sort_keys=True).encode()])
        except OSError as error:
            raise disk_error(self.path, error) from error

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else trains here meanwhile."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = self._locked()
        except OSError as error:
            raise disk_error(self.path, error) from error
        if file is None:
            raise WorkDirError(
                f"{self.path}: another process trains here; wait for it, or choose another work dir"
            )
        with file:
            yield

    def _locked(self) -> IO[bytes] | None:
        """The file by which others know that someone trains here; None if it is another one's."""
        while True:
            file = (self.path / _LOCK).open("wb")
            if lock_file(file.fileno()) is False:
                file.close()
                return None
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(self.path / _LOCK)):
                    return file
            file.close()  # who had it before has removed it, so that it would keep nobody away

    def has(self, name: str) -> bool:
        return self._file(name).exists()

    def write(self, name: str, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        """Keep a result."""
        try:
            write_model(self._file(name), tensors, metadata)
        except ModelFileError as error:
            if isinstance(error.__cause__, OSError):
                raise disk_error(self.path, error.__cause__) from error
            raise

    def read(self, name: str, *, verify: bool = True) -> tuple[Tensors, dict[str, Any]]:
        """A result, mapped; what is written to its arrays stays with this process."""
        try:
            return read_model(self._file(name), verify=verify, private=True)
        except ModelFileError as error:
            raise WorkDirError(
                f"{self._file(name)}: cannot be used ({error}); remove it, and run the command that made it "
                "again"
            ) from error

    def read_sound(self, name: str) -> tuple[Tensors, dict[str, Any]] | None:
        """A result, or None where there is none that can be used: it is made again."""
        try:
            return self.read(name) if self.has(name) else None
        except WorkDirError:
            return None

    def forget(self) -> None:
        """Remove all results: nobody knows any more what they were made from."""
        try:
            for file in self.path.glob(f"*{_SUFFIX}"):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(self.path, error) from error

    def remove(self) -> None:
        """All that was kept here; the folder too, if nothing else is in it. Not if someone trains here."""
        if not self.path.is_dir():
            return
        with contextlib.suppress(OSError, TrainingError), self.alone():
            self.forget()
            for name in (_MANIFEST, _LOCK):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def _file(self, name: str) -> Path:
        return self.path / f"{name}{_SUFFIX}"


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """What is another one; of mappings their entries."""
    for name in sorted({*found, *wanted}):
        old, new = found.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new)
        elif old != new:
            yield f"{name} is {show(old)} there and {show(new)} now"
