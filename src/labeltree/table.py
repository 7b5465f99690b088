"""Tables: the choices of an axis by name, each imported when it is first used.

Reading the names is free, so the same table serves the options of the command line, their checks, and the
work itself. A new choice is a file and a line in its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar, overload

T = TypeVar("T")


class Entry(NamedTuple):
    """Where a choice is, and what it takes."""

    home: str = ""  # "trees.kmeans:KMEANS", below this package
    uses: tuple[str, ...] = ()  # parameters that have an effect where it is chosen
    parts: tuple[str, ...] = ()  # other choices that are all meant by this one, which has no home then


class Table(Mapping[str, T], Generic[T]):
    """The choices of one axis."""

    def __init__(self, **entries: Entry) -> None:
        self._entries = entries
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            if self._entries[name].parts:
                raise KeyError(f"{name} stands for {' and '.join(self._entries[name].parts)}")
            module, _, attribute = self._entries[name].home.partition(":")
            self._loaded[name] = getattr(import_module(f"labeltree.{module}"), attribute)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def parts_of(self, name: str) -> tuple[str, ...]:
        """The choices that a name stands for, most often itself alone."""
        return self._entries[name].parts or (name,)

    def single(self) -> list[str]:
        """The choices that stand for themselves."""
        return [name for name, entry in self._entries.items() if not entry.parts]

    def users_of(self, parameter: str) -> Sequence[str]:
        """The choices with which a parameter has an effect."""
        return _Users(self._entries, parameter)

    def add(self, name: str, choice: T, uses: tuple[str, ...] = ()) -> None:
        """One more choice, by a program that brings its own."""
        self._entries[name] = Entry("", uses)
        self._loaded[name] = choice

    def remove(self, name: str) -> None:
        """Take back what was added."""
        del self._entries[name], self._loaded[name]


class _Users(Sequence[str]):
    """Names of the entries that use a parameter; those that are added later are among them."""

    def __init__(self, entries: Mapping[str, Entry], parameter: str) -> None:
        self._entries, self._parameter = entries, parameter

    def _names(self) -> list[str]:
        return [name for name in self._entries if self._uses(name)]

    def _uses(self, name: str) -> bool:
        entry = self._entries[name]
        return self._parameter in entry.uses or any(map(self._uses, entry.parts))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._names()[index]

    def __len__(self) -> int:
        return len(self._names())
