"""The models of a service, and their replacement while it runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from labeltree.errors import ParameterError
from labeltree.model import Model
from labeltree.serve.problems import Problem
from labeltree.serve.served import IN_MEMORY, Served, Signature, load_served, signature_of

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Reload(NamedTuple):
    """What became of a file that was replaced."""

    name: str
    is_done: bool
    told: str = ""  # why it was not


class Registry:
    """Models by name. A reference is all that changes when one is replaced: who has the old one keeps it."""

    def __init__(self, models: Mapping[str, str | Path | Model]) -> None:
        if not models:
            raise ParameterError("there is no model to serve; give at least one")
        self._paths: dict[str, Path] = {}
        self._served: dict[str, Served] = {}
        self._refused: dict[str, Signature] = {}  # files that were no models: they are not tried again
        for name, model in models.items():
            if not _NAME.fullmatch(name):
                raise ParameterError(f"a model's name must be of letters, digits, . _ and -, but is {name!r}")
            if isinstance(model, Model):
                self._served[name] = Served(name, model, IN_MEMORY)
            else:
                self._paths[name] = Path(model)
                self._served[name] = load_served(name, Path(model))

    def __iter__(self) -> Iterator[Served]:
        return iter(list(self._served.values()))

    def __getitem__(self, name: str) -> Served:
        served = self._served.get(name)
        if served is None:
            raise Problem(404, f"there is no model {name[:64]!r}; there are {', '.join(self._served)}")
        return served

    def check(self) -> None:
        """Let every model answer test rows."""
        for served in self:
            served.check()

    def reload(self, *, is_forced: bool = False) -> list[Reload]:
        """Load files that were replaced, check them, and swap; a bad one is refused and the old one stays.

        ``is_forced`` tries files again that were refused before.
        """
        return [self._replace(name) for name in self._paths if self._is_new(name, is_forced=is_forced)]

    def _is_new(self, name: str, *, is_forced: bool) -> bool:
        try:
            signature = signature_of(self._paths[name])
        except OSError:  # it was removed, perhaps for a moment; the mapped one stays usable
            return False
        is_refused = signature == self._refused.get(name) and not is_forced
        return signature != self._served[name].signature and not is_refused

    def _replace(self, name: str) -> Reload:
        path = self._paths[name]
        signature = None
        try:
            signature = signature_of(path)
            served = load_served(name, path).check()
        except Exception as error:  # whatever is wrong with the new one
            if signature is not None:
                self._refused[name] = signature
            _log.error("model %s stays at version %s: %s", name, self._served[name].version, error)
            return Reload(name, is_done=False, told=str(error))
        _log.info("model %s: version %s replaces %s", name, served.version, self._served[name].version)
        self._served[name] = served
        self._refused.pop(name, None)
        return Reload(name, is_done=True)
