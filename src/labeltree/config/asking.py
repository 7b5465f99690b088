"""From what someone asks for, by name, by preset or in a file, to a config that is valid."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labeltree.config.checks import check_values
from labeltree.config.definition import PARAMETER_NAMES, Config, parameters
from labeltree.config.effects import Given, check_effects
from labeltree.config.presets import PRESETS
from labeltree.errors import ParameterError, show
from labeltree.parameter import check_names, parsed


class AskedConfig(NamedTuple):
    """A config, and what was asked for by name: that must have an effect, on the data too."""

    config: Config
    given: Given


def make_config(
    values: Mapping[str, Any] | None = None,
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    config: Config | None = None,
) -> Config:
    """A validated config: defaults (or ``config``), overridden by the preset, the TOML file, then ``values``.

    What the file and ``values`` give must have an effect; what the others give need not.
    """
    return ask_config(values, preset=preset, file=file, config=config).config


def ask_config(
    values: Mapping[str, Any] | None = None,
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    config: Config | None = None,
) -> AskedConfig:
    """As :func:`make_config`, for training: what is asked for may have no effect on the data."""
    if preset is not None and preset not in PRESETS:
        raise ParameterError(f"preset must be one of {', '.join(sorted(PRESETS))}, but is {show(preset)}")
    in_file = {} if file is None else read_parameters(file)
    own = _parsed(values or {})
    base = config or Config()
    made = dataclasses.replace(base, **{**PRESETS.get(preset or "", {}), **in_file, **own}).validate()
    in_file_only = dict.fromkeys((name for name in in_file if name not in own), f"config file {file}: ")
    asked = AskedConfig(made, {**dict.fromkeys(own, ""), **in_file_only})
    check_effects(*asked)
    return asked


def _parsed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by known names, in their types."""
    check_names(values, PARAMETER_NAMES)
    return {p.name: parsed(p, values[p.name]) for p in parameters() if p.name in values}


def read_parameters(file: str | Path) -> dict[str, Any]:
    """The parameters in a TOML file; whatever is wrong with them is told with the file's name."""
    path = Path(file)
    try:
        with path.open("rb") as stream:
            values = tomllib.load(stream)
    except OSError as error:
        raise ParameterError(f"config file {path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:  # also not UTF-8, or a NUL in the file's name
        raise ParameterError(f"config file {path}: not valid TOML ({error})") from error
    given: dict[str, Any] = {}
    for written, value in values.items():
        name = written.replace("-", "_")
        if name in given:
            raise ParameterError(f"config file {path}: {name} is given twice, with - and with _; remove one")
        given[name] = value
    try:
        given = _parsed(given)
        check_values(given, parameters())
    except ParameterError as error:
        raise ParameterError(f"config file {path}: {error}") from error
    return given
