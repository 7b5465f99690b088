"""What suits the data where a parameter is 0.

The numbers come from held-out training rows of five data sets (``python -m benchmarks.validate``), unless
they are of more labels than those have.
"""

from __future__ import annotations

import math

from labeltree.config import Config
from labeltree.nodes.kind import MAX_LEAVES, Facts
from labeltree.nodes.sparse.solvers import solver_of

FEW_EXAMPLES = 10  # of a label
FEW_CHILDREN, MANY_CHILDREN = 16, 64  # of a node
# Rather than a third level of groups: with 10^6 generated labels, 2.7 examples each, 125 children instead of
# 25 halve the time of a search, and P@1 is 82 instead of 73; training takes 1.5 times as long.
MOST_CHILDREN = 128
# One level is the most accurate tree, but each label is then trained on all rows: as many labels and as many
# products (of a row's features and all labels) as that is worth.
FLAT_LABELS, FLAT_PRODUCTS = 1000, 2e9
FLAT_COST = 0.6


def has_rare_labels(examples_per_label: float) -> bool:
    """Whether labels have few examples, on average: then more of them should compete below one parent, and
    what the examples say should count for more against regularisation."""
    return examples_per_label < FEW_EXAMPLES


def choose_max_leaves(config: Config, facts: Facts) -> int:
    """All labels below the root where that is worth its cost; an arity asks for more levels."""
    is_small = facts.n_labels <= FLAT_LABELS and facts.n_labels * facts.n_entries <= FLAT_PRODUCTS
    return max(MAX_LEAVES, facts.n_labels) if is_small and not config.arity else MAX_LEAVES


def choose_arity(config: Config, n_labels: int, examples_per_label: float) -> int:
    """Each level costs accuracy: as many children as it takes for one level of groups of ``max_leaves``
    labels, or for groups of a good size below few levels."""
    if n_labels <= MANY_CHILDREN * config.max_leaves:
        return max(FEW_CHILDREN, math.ceil(n_labels / config.max_leaves))
    group = config.max_leaves if has_rare_labels(examples_per_label) else config.max_leaves / 3
    n_levels = max(2, math.ceil(math.log(n_labels / group, MOST_CHILDREN)))
    return math.ceil((n_labels / group) ** (1 / n_levels))


def choose_cost(config: Config, facts: Facts) -> float:
    """The weight ``C`` of the loss: less where each label has all rows, and so many negative examples."""
    cost = solver_of(config).default_cost
    if has_rare_labels(facts.examples_per_label):
        cost *= 2.0
    is_flat = facts.n_labels <= (config.max_leaves or choose_max_leaves(config, facts))
    return FLAT_COST * cost if is_flat else cost
