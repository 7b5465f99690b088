"""What is chosen by the data where a parameter is 0.

The numbers come from held-out training rows of five data sets (``python -m benchmarks.validate``).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from labeltree.config import Config, effective

CHOSEN = ("arity", "C")  # what may be left to the data
FEW_EXAMPLES = 10  # of a label
FEW_CHILDREN, MANY_CHILDREN = 16, 64  # of a node


def has_rare_labels(examples_per_label: float) -> bool:
    """Whether labels have few examples, on average: then more of them should compete below one parent, and
    what the examples say should count for more against regularisation."""
    return examples_per_label < FEW_EXAMPLES


def resolve(config: Config, kind: str, n_labels: int, examples_per_label: float) -> Config:
    """The config of one kind of nodes, with what the data chooses instead of each 0 that leaves it to it."""
    from labeltree.nodes.sparse.solvers import solver_of

    arity = config.arity or _arity(config, kind, n_labels, examples_per_label)
    cost = config.C or default_cost(solver_of(config).loss, examples_per_label)
    return dataclasses.replace(config, nodes=kind, arity=arity, C=cost)


def chosen_by_data(config: Config, resolved: Config) -> dict[str, Any]:
    """What :func:`resolve` has chosen, of that which has an effect."""
    values = effective(resolved)
    return {name: values[name] for name in CHOSEN if name in values and not getattr(config, name)}


def _arity(config: Config, kind: str, n_labels: int, examples_per_label: float) -> int:
    """Each level costs sparse nodes accuracy: they get as many children as it takes for one level of groups
    of ``max_leaves`` labels, or for groups of a good size below few levels."""
    if kind == "dense":
        return FEW_CHILDREN
    if n_labels <= MANY_CHILDREN * config.max_leaves:
        return max(FEW_CHILDREN, math.ceil(n_labels / config.max_leaves))
    group = config.max_leaves if has_rare_labels(examples_per_label) else config.max_leaves / 3
    n_levels = math.ceil(math.log(n_labels / group, MANY_CHILDREN))
    return math.ceil((n_labels / group) ** (1 / n_levels))


def default_cost(loss: str, examples_per_label: float) -> float:
    """The weight ``C`` of a loss."""
    cost = {"squared-hinge": 0.5, "log": 5.0}[loss]
    return 2.0 * cost if has_rare_labels(examples_per_label) else cost
