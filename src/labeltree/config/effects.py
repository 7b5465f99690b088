"""Which parameters have an effect, and an error where one is given that has none."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from labeltree.config.definition import BY_DATA, Config, parameters
from labeltree.errors import ParameterError
from labeltree.parameter import Need, unmet_need, without_effect

Given = Mapping[str, str]  # names of parameters that someone asked for, and how messages say where
NO_PARAMETERS: Given = {}
_NO_BLOCKS: dict[str, Any] = dict(char_weight=0.0, pair_weight=0.0, embed="none")


def check_effects(config: Config, given: Given, **facts: str) -> None:
    """Raise an error where a given parameter has no effect, as far as that is known.

    ``facts`` are those of the data: its ``input``, text or vectors.
    """
    values, needs_of = {**config.to_dict(), **facts}, _needs()
    for name, place in given.items():
        need = unmet_need(name, values, needs_of)
        if need is not None:
            raise ParameterError(f"{place}{without_effect(name, need, values)}")


def effective(config: Config, **facts: str) -> dict[str, Any]:
    """The parameters that have an effect, with their values."""
    values, needs_of = {**config.to_dict(), **facts}, _needs()
    return {name: values[name] for name in config.to_dict() if unmet_need(name, values, needs_of) is None}


def without_unused_blocks(config: Config) -> Config:
    """Blocks of features beside the words are for trees of labels: without any they need not be made."""
    return config if config.trees else dataclasses.replace(config, **_NO_BLOCKS)


def chosen_by_data(config: Config, resolved: Config) -> dict[str, Any]:
    """What the data chose for a resolved config, of that which has an effect."""
    values = effective(resolved)
    return {name: values[name] for name in BY_DATA if name in values and not getattr(config, name)}


def _needs() -> dict[str, tuple[Need, ...]]:
    return {parameter.name: parameter.needs for parameter in parameters()}
