"""The table of the ways to train siblings."""

from __future__ import annotations

import pytest

from labeltree.config import Config, make_config, parameters
from labeltree.errors import ParameterError
from labeltree.kernels.lanes import LANES
from labeltree.nodes.sparse.passes import Passes
from labeltree.nodes.sparse.solver import Solver
from labeltree.nodes.sparse.solvers import (
    ACTIVE_HINGE,
    ACTIVE_SQUARED_HINGE,
    LOG,
    ONLINE_LOG,
    ONLINE_SOFTMAX,
    SOFTMAX,
    SOLVERS,
    SQUARED_HINGE,
    solver_of,
)

CHOICES = {parameter.name: parameter.choices for parameter in parameters()}


def test_the_table_has_every_choice_of_the_config() -> None:
    losses = {*CHOICES["loss"], "softmax"}
    without = {("active", "log"), ("active", "softmax"), ("dual", "hinge")}
    assert SOLVERS.keys() == {(solver, loss) for solver in CHOICES["solver"] for loss in losses} - without


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            dict(solver="active", loss="log"),
            "solver active needs loss=squared-hinge or hinge, but loss is log",
        ),
        (dict(solver="active", link="hsm"), "solver active needs link=plt, but link is hsm"),
        (dict(loss="hinge"), "solver dual needs loss=squared-hinge or log, but loss is hinge"),
    ],
)
def test_a_solver_has_its_losses(given: dict[str, str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_config(given)


@pytest.mark.parametrize(
    ("given", "n_children", "expected"),
    [
        (dict(), 1, SQUARED_HINGE),
        (dict(), 64, SQUARED_HINGE),
        (dict(loss="log"), 64, LOG),
        (dict(solver="active"), 64, ACTIVE_SQUARED_HINGE),
        (dict(solver="active", loss="hinge"), 1, ACTIVE_HINGE),
        (dict(solver="sgd"), 64, ONLINE_LOG),
        (dict(solver="sgd", loss="log"), 64, ONLINE_LOG),
        (dict(link="hsm"), 1, LOG),
        (dict(link="hsm"), 2, LOG),
        (dict(link="hsm", loss="log"), 3, SOFTMAX),
        (dict(link="hsm"), 64, SOFTMAX),
        (dict(link="hsm", solver="sgd"), 2, ONLINE_LOG),
        (dict(link="hsm", solver="sgd"), 3, ONLINE_SOFTMAX),
    ],
)
def test_two_alternatives_share_a_logistic_and_more_have_a_softmax(
    given: dict[str, str], n_children: int, expected: Solver
) -> None:
    assert solver_of(Config(**given), n_children) is expected


@pytest.mark.parametrize(("way", "times"), [(SQUARED_HINGE, 4.0), (LOG, 1.0), (SOFTMAX, 1.0)])
def test_before_the_held_out_rows_join_weights_need_not_be_exact(way: Passes, times: float) -> None:
    """Those of the log loss must: a map fitted to smaller ones would not suit the last ones."""
    config = Config(tolerance=0.02)
    assert way.tolerance(config, LANES, True) == pytest.approx(0.02)
    assert way.tolerance(config, LANES, False) == pytest.approx(times * 0.02)
    assert way.tolerance(config, LANES // 4, True) == pytest.approx(0.005)  # few columns that only pad


@pytest.mark.parametrize("way", [ONLINE_LOG, ONLINE_SOFTMAX])
def test_online_every_epoch_is_a_pass(way: Passes) -> None:
    config = Config(epochs=7, tolerance=0.5)
    assert way.most_passes(config) == way.usual_passes(config) == 7
    assert way.tolerance(config, LANES, True) == way.tolerance(config, LANES, False) == 0.0
    assert way.n_duals(1000) == 0
