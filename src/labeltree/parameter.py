"""What a parameter is: its type, bounds, help, and what it needs of others to have an effect.

Which parameters there are is in ``config/definition.py``. Importing this module is free.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labeltree.errors import ParameterError, UnknownParameterError, show
from labeltree.wording import did_you_mean, near_names

MOST_IDS = 2**31 - 1  # labels, features, strings and nodes: kernels number them by 32-bit integers

# How configuration files spell a truth value that reaches us as a string.
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True,
           "false": False, "no": False, "off": False, "0": False}  # fmt: skip
_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


class AboveZero(Sequence[float]):
    """All numbers above 0, as the values that are needed; listed, 1 stands for them."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and value > 0

    def __getitem__(self, index: Any) -> Any:
        return (1.0,)[index]  # an end, so that one can go through them

    def __len__(self) -> int:
        return 1


class Need(NamedTuple):
    """One of these values of one of these parameters, without which another one has no effect."""

    any_of: Mapping[
        str, Sequence[Any]
    ]  # the values of each; "input" and "beside" are not set but found in the data

    def __str__(self) -> str:
        return ", or ".join(f"{name}={_one_of(wanted)}" for name, wanted in self.any_of.items())


class Parameter(NamedTuple):
    """One field of :class:`labeltree.config.Config`, as the command line and the docs need it."""

    name: str
    type: type
    default: Any
    help: str
    low: float | None
    high: float | None
    choices: Collection[str]
    open_choice: bool  # other strings are allowed too (a file name)
    by_data: bool  # 0 leaves it to the data
    group: str
    needs: tuple[Need, ...]  # it has no effect without all of these

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def full_help(self) -> str:
        return f"{self.help} Needs {needed(self)}." if self.needs else self.help


def needed(parameter: Parameter) -> str:
    """What it needs, in words; nothing where it always has an effect."""
    return " and ".join(map(str, parameter.needs))


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise an error that names the nearest known name where a name is unknown."""
    for name in names:
        if name not in known:
            hint = did_you_mean(near_names(str(name), known, 1)) or f"; known are {', '.join(sorted(known))}"
            raise UnknownParameterError(f"unknown parameter {show(name)}{hint}")


def parsed(parameter: Parameter, value: Any) -> Any:
    """A value in the parameter's type: NumPy's numbers, and what a configuration file gives as a string."""
    value = plain(value)
    if not isinstance(value, str) or parameter.type is str:
        return value
    try:
        return _TRUTHS[value.strip().lower()] if parameter.type is bool else parameter.type(value)
    except (KeyError, ValueError):
        kind = _KINDS[parameter.type]
        raise ParameterError(f"{parameter.name} must be {kind}, but is {show(value)}") from None


def plain(value: Any) -> Any:
    """A number or string of NumPy as Python's: a grid search takes its values from arrays."""
    is_numpys = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_numpys else value


def check(parameter: Parameter, value: Any) -> None:
    """Raise an error that names the parameter, the bound and the value."""
    name, kind = parameter.name, parameter.type
    accepted = (int, float) if kind is float else (kind,)
    if type(value) not in accepted:
        raise ParameterError(f"{name} must be of type {kind.__name__}, but is {show(value)}")
    if kind is float and not _is_finite(value):
        raise ParameterError(f"{name} must be finite, but is {show(value)}")
    if parameter.low is not None and value < parameter.low:
        raise ParameterError(f"{name} must be at least {parameter.low}, but is {show(value)}")
    if parameter.high is not None and value > parameter.high:
        raise ParameterError(f"{name} must be at most {parameter.high}, but is {show(value)}")
    if parameter.choices and value not in parameter.choices and not parameter.open_choice:
        known = ", ".join(parameter.choices)
        raise ParameterError(f"{name} must be one of {known}, but is {show(value)}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def unmet_need(name: str, values: Mapping[str, Any], needs_of: Mapping[str, Sequence[Need]]) -> Need | None:
    """The first need of a parameter that ``values`` do not meet, or None.

    What it needs must have an effect itself: a solver is of no use to dense nodes, so neither is what the
    solver needs. That is told first, as no value of the solver would help. What is not among the values,
    because no data is read yet, counts as met.
    """
    for need in needs_of.get(name, ()):
        deeper = {other: unmet_need(other, values, needs_of) for other in need.any_of}
        able = [other for other, unmet in deeper.items() if unmet is None]
        if not able:
            return next(iter(deeper.values()))
        if not any(values.get(other, need.any_of[other][0]) in need.any_of[other] for other in able):
            return need
    return None


def without_effect(name: str, need: Need, values: Mapping[str, Any]) -> str:
    """What to tell someone who gave a parameter whose need is not met."""
    found = " and ".join(f"{other} is {said(values[other])}" for other in need.any_of)
    return f"{name}={said(values[name])} has no effect where {found}: it needs {need}; or leave it out"


def _one_of(wanted: Sequence[Any]) -> str:
    if isinstance(wanted, range):
        return f"{wanted[0]} to {wanted[-1]}"
    if isinstance(wanted, AboveZero):
        return "above 0"
    return " or ".join(map(said, wanted))


def said(value: Any) -> str:
    """A value in words."""
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
