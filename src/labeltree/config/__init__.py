"""Parameters: ``definition`` has every one of them, once, ``checks`` what values they may have, ``effects``
when they have one, ``presets`` those that belong together; ``asking`` makes a config of what is asked for.
"""

from labeltree.config.asking import AskedConfig, ask_config, make_config, read_parameters
from labeltree.config.definition import BY_DATA, PARAMETER_NAMES, Config, parameters
from labeltree.config.effects import (
    NO_PARAMETERS,
    Given,
    check_effects,
    chosen_by_data,
    effective,
    without_unused_blocks,
)
from labeltree.config.presets import PRESETS

__all__ = [
    "BY_DATA",
    "NO_PARAMETERS",
    "PARAMETER_NAMES",
    "PRESETS",
    "AskedConfig",
    "Config",
    "Given",
    "ask_config",
    "check_effects",
    "chosen_by_data",
    "effective",
    "make_config",
    "parameters",
    "read_parameters",
    "without_unused_blocks",
]
