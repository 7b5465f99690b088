"""The table of the ways to train siblings: losses in the dual, on all or few of the examples, and online."""

from __future__ import annotations

from labeltree.config import Config
from labeltree.kernels.sparse.arrays import (
    Hinge,
    LogLoss,
    OnlineLogLoss,
    OnlineSoftmax,
    SoftmaxLoss,
    SquaredHinge,
)
from labeltree.nodes import LINKS
from labeltree.nodes.sparse.active import ActiveSet
from labeltree.nodes.sparse.passes import Dual, Online, SoftmaxDual
from labeltree.nodes.sparse.solver import Solver

# Log-odds of a hinge's score. They rank labels as exp(-max(0, 1 - s)³) does, the map of Parabel's successors,
# but are those of a probability.
_OF_MARGINS = (3.0, 1.0)

SQUARED_HINGE = Dual(method=SquaredHinge, default_cost=0.5, log_odds=_OF_MARGINS, first_tolerance=4.0)
LOG = Dual(method=LogLoss, no_dual=-30.0)  # a logit that is as good as 0
SOFTMAX = SoftmaxDual(method=SoftmaxLoss, padding=0.0)
ONLINE_LOG = Online(method=OnlineLogLoss)
ONLINE_SOFTMAX = Online(method=OnlineSoftmax, padding=0.0)
ACTIVE_SQUARED_HINGE = ActiveSet(method=SquaredHinge, default_cost=0.5, log_odds=_OF_MARGINS)
ACTIVE_HINGE = ActiveSet(method=Hinge, default_cost=0.5, log_odds=_OF_MARGINS)

# By the parameters ``solver`` and ``loss``; "softmax" is the log loss of more than two alternatives. Which
# losses a solver has, the config checks: of a logarithm every example has a part in the weights, an active
# set would be all of them; and passes over all examples come near the minimum of a hinge too slowly.
SOLVERS: dict[tuple[str, str], Solver] = {
    ("dual", "squared-hinge"): SQUARED_HINGE,
    ("dual", "log"): LOG,
    ("dual", "softmax"): SOFTMAX,
    ("active", "squared-hinge"): ACTIVE_SQUARED_HINGE,
    ("active", "hinge"): ACTIVE_HINGE,
    ("sgd", "squared-hinge"): ONLINE_LOG,  # online there is only one loss
    ("sgd", "hinge"): ONLINE_LOG,
    ("sgd", "log"): ONLINE_LOG,
    ("sgd", "softmax"): ONLINE_SOFTMAX,
}


def solver_of(config: Config, n_children: int = 1) -> Solver:
    """The way to train so many siblings."""
    of_siblings = LINKS[config.link].sparse_loss
    assert of_siblings is not None, "what the nodes do not take is refused before"
    return SOLVERS[config.solver, of_siblings(config.loss, n_children)]
