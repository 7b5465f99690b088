"""The paper's theory: every check passes, and notices when what it checks is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import theory
from experiments import theory_bounds as bounds
from experiments import theory_checks as checks
from experiments import theory_exact as exact
from experiments import theory_trained as trained
from experiments import theory_trees as trees
from labeltree.nodes import LINKS
from labeltree.reference import search as reference_search
from labeltree.reference import training as reference_training
from labeltree.tree import LabelTree

N_CASES = {
    checks.check_counterexample: 40,
    checks.check_independent: 120,
    checks.check_label_trees: 16,
    checks.check_multi_class: 12,
    checks.check_huffman: 10,
    bounds.check_theorem_1: 1800,
    bounds.check_theorem_2: 1800,
}


@pytest.mark.parametrize("check", N_CASES, ids=lambda check: check.__name__)
def test_the_claim_holds(check: Callable[[int], checks.Check]) -> None:
    found = check(N_CASES[check])
    assert found.passed, found.computed


@pytest.mark.parametrize("link", theory.LINKS)
def test_training_finds_what_the_theory_says(link: str) -> None:
    found = trained.check_trained(link, with_calibration=False)
    assert found.passed, found.computed


def pick_by_square(distribution: exact.Distribution) -> exact.Array:
    size = np.maximum(distribution.labels.sum(axis=1), 1)
    return (distribution.probability / size**2) @ distribution.labels


def pick_lowest(distribution: exact.Distribution) -> exact.Array:
    is_first = distribution.labels & (distribution.labels.cumsum(axis=1) == 1)
    return distribution.probability @ is_first


def uncounted(distribution: exact.Distribution) -> exact.Array:
    return distribution.labels.mean(axis=0)


def hits(distribution: exact.Distribution, chosen: Any) -> float:
    return float(distribution.probability @ distribution.labels[:, list(chosen)].sum(axis=1))


def least_first(values: exact.Array, k: int) -> Any:
    return np.argsort(values, axis=-1, kind="stable")[..., :k]


def dependent(eta: exact.Array) -> exact.Distribution:
    random = np.random.default_rng(int(1e9 * eta[0]))
    return exact.Distribution(
        exact.all_label_sets(len(eta)), checks.random_probabilities(random, len(eta), 1)[0]
    )


def without_root(tree: LabelTree, factors: exact.Array) -> exact.Array:
    others = factors.copy()
    others[..., 0] = 1.0
    return PATH_PRODUCTS(tree, others)


def without_leaf(tree: LabelTree, factors: exact.Array) -> exact.Array:
    others = factors.copy()
    others[..., tree.leaf_of_label] = 1.0
    return PATH_PRODUCTS(tree, others)


def whole_copies(distribution: exact.Distribution) -> exact.Distribution:
    row, label = np.nonzero(distribution.labels)
    single = np.arange(distribution.labels.shape[1]) == label[:, None]
    return exact.Distribution(single, distribution.probability[row])


def no_condition(tree: LabelTree, node_probability: exact.Array) -> exact.Array:
    return np.ones_like(node_probability)


def empty_rows_left_out(tree: LabelTree, positive: set[int]) -> set[int]:
    return NEGATIVE_NODES(tree, positive) if positive else set()


def all_others_negative(tree: LabelTree, positive: set[int]) -> set[int]:
    return set(range(tree.n_nodes)) - positive


def log_marginals_without_root(tree: LabelTree, conditionals: exact.Array) -> exact.Array:
    return LOG_MARGINALS(tree, np.where(np.arange(tree.n_nodes) == 0, 0.0, conditionals))


PATH_PRODUCTS, NEGATIVE_NODES = exact.path_products, reference_training.negative_nodes
LOG_MARGINALS, COST, BUILD_HUFFMAN = reference_search.log_marginals, LabelTree.cost, checks.build_huffman
ALL_BINARY_TREES, PRECISION_BOUNDS = trees.all_binary_trees, exact.precision_bounds
REGRET_OF_MARGINALS = exact.regret_of_marginals


def scaled_losses(factor: float) -> tuple[exact.Loss, ...]:
    return tuple(loss._replace(strength=factor * loss.strength) for loss in exact.LOSSES)


def bound_of(
    weight: Callable[[LabelTree, exact.Array], exact.Array],
    power: float = 0.5,
    from_node: int = 0,
) -> Callable[..., exact.Array]:
    """Theorem 1's bound with another weight of the regrets, another power, or not from the root on."""

    def bound(
        loss: exact.Loss, tree: LabelTree, node_probability: exact.Array, estimates: exact.Array
    ) -> exact.Array:
        conditionals = exact.conditionals(tree, node_probability)
        regrets = exact.node_regret(loss, conditionals, estimates) ** power
        terms = np.where(
            exact.of_parent(tree, node_probability) > 0, weight(tree, node_probability) * regrets, 0.0
        )
        terms[..., :from_node] = 0.0
        return np.sqrt(2 / loss.strength) * exact.path_sums(tree, terms)

    return bound


def scaled_bounds(factor: float) -> Callable[..., tuple[exact.Array, exact.Array]]:
    def scaled(eta: exact.Array, estimates: exact.Array, k: int) -> tuple[exact.Array, exact.Array]:
        largest, mean = PRECISION_BOUNDS(eta, estimates, k)
        return factor * largest, mean

    return scaled


def bound_of_chosen_only(eta: exact.Array, estimates: exact.Array, k: int) -> tuple[exact.Array, exact.Array]:
    error = np.abs(eta - estimates)
    largest, _ = PRECISION_BOUNDS(eta, estimates, k)
    return largest, np.take_along_axis(error, exact.top(estimates, k), axis=-1).mean(axis=-1)


def node_counts(tree: LabelTree, Y: Any) -> float:
    return 1.0 + float(tree.n_children.sum())


def cost_of_leaves(tree: LabelTree, Y: Any) -> float:
    return COST(tree, Y) - 1.0


MUTATIONS: list[tuple[Callable[[int], checks.Check], str, Any, str, Any]] = [
    (checks.check_counterexample, "1 / s²", exact, "pick_one", pick_by_square),
    (checks.check_counterexample, "unweighted", exact, "marginals", uncounted),
    (checks.check_counterexample, "not / k", exact, "expected_precision", hits),
    (checks.check_counterexample, "reversed", exact, "top", least_first),
    (checks.check_independent, "picks the lowest", exact, "pick_one", pick_lowest),
    (checks.check_independent, "1 / s²", exact, "pick_one", pick_by_square),
    (checks.check_independent, "reversed", exact, "top", least_first),
    (checks.check_independent, "dependent", exact, "independent", dependent),
    (checks.check_independent, "empty claim", exact, "regret", lambda *_: 0.0),
    (checks.check_label_trees, "no root", exact, "path_products", without_root),
    (checks.check_label_trees, "unconditional", exact, "of_parent", no_condition),
    (checks.check_label_trees, "copies of weight 1", exact, "copies", whole_copies),
    (checks.check_label_trees, "1 / s²", exact, "pick_one", pick_by_square),
    (checks.check_label_trees, "no empty rows", reference_training, "negative_nodes", empty_rows_left_out),
    (checks.check_label_trees, "all negative", reference_training, "negative_nodes", all_others_negative),
    (checks.check_label_trees, "no root read", reference_search, "log_marginals", log_marginals_without_root),
    (checks.check_multi_class, "no leaf", exact, "path_products", without_leaf),
    (checks.check_multi_class, "unconditional", exact, "of_parent", no_condition),
    (checks.check_multi_class, "all negative", reference_training, "negative_nodes", all_others_negative),
    (checks.check_multi_class, "empty claim", exact, "hsm_probabilities", exact.plt_marginals),
    (checks.check_huffman, "reversed counts", checks, "build_huffman",
     lambda counts, arity: BUILD_HUFFMAN(np.max(counts) - counts, arity)),
    (checks.check_huffman, "equal counts", checks, "build_huffman",
     lambda counts, arity: BUILD_HUFFMAN(np.ones_like(counts), arity)),
    (checks.check_huffman, "no p_v", LabelTree, "cost", node_counts),
    (checks.check_huffman, "no root", LabelTree, "cost", cost_of_leaves),
    (checks.check_huffman, "not all trees", trees, "all_binary_trees", lambda m: ALL_BINARY_TREES(m)[: m**2]),
    (bounds.check_theorem_1, "lambda x 2", exact, "LOSSES", scaled_losses(2)),
    (bounds.check_theorem_1, "lambda x 1.01", exact, "LOSSES", scaled_losses(1.01)),
    (bounds.check_theorem_1, "lambda / 2", exact, "LOSSES", scaled_losses(0.5)),
    (bounds.check_theorem_1, "no P(parent)", exact, "marginal_bound", bound_of(no_condition)),
    (bounds.check_theorem_1, "P(node)", exact, "marginal_bound", bound_of(lambda tree, p: p)),
    (bounds.check_theorem_1, "no square root", exact, "marginal_bound", bound_of(exact.of_parent, power=1.0)),
    (bounds.check_theorem_1, "no root", exact, "marginal_bound", bound_of(exact.of_parent, from_node=1)),
    (bounds.check_theorem_1, "no root estimated", exact, "path_products", without_root),
    (bounds.check_theorem_2, "factor 1", exact, "precision_bounds", scaled_bounds(0.5)),
    (bounds.check_theorem_2, "factor 4", exact, "precision_bounds", scaled_bounds(2.0)),
    (bounds.check_theorem_2, "chosen only", exact, "precision_bounds", bound_of_chosen_only),
    (bounds.check_theorem_2, "not / k", exact, "regret_of_marginals",
     lambda eta, values, k: k * REGRET_OF_MARGINALS(eta, values, k)),
    (bounds.check_theorem_2, "empty claim", exact, "regret_of_marginals",
     lambda eta, values, k: 0 * REGRET_OF_MARGINALS(eta, values, k)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "owner", "name", "wrong"),
    [(check, owner, name, wrong) for check, _, owner, name, wrong in MUTATIONS],
    ids=[f"{check.__name__}: {what}" for check, what, *_ in MUTATIONS],
)
def test_the_check_notices(
    check: Callable[[int], checks.Check], owner: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    assert check(N_CASES[check]).passed is False


def test_the_unmutated_bound_is_the_theorems(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutated bounds above fail for their mutation, not for how they are written."""
    monkeypatch.setattr(exact, "marginal_bound", bound_of(exact.of_parent))
    assert bounds.check_theorem_1(3000).passed


def certain_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's training takes the root for constant, as if no row were without labels."""
    first_bias = LINKS["plt"].first_bias

    def certain(weight, tree, _):
        return first_bias(weight, tree, weight[0])

    monkeypatch.setitem(LINKS._loaded, "plt", LINKS["plt"]._replace(first_bias=certain))


def picked_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of several labels trains as a row of its first one only."""
    X, Y = trained.training_rows()
    monkeypatch.setattr(trained, "training_rows", lambda _: (X, [labels[:1] for labels in Y]))


def no_empty_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = trained.training_rows()
    kept = [i for i, labels in enumerate(Y) if labels]
    monkeypatch.setattr(trained, "training_rows", lambda _: (X[kept], [Y[i] for i in kept]))


def strong_regularisation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trained.SPARSE, "C", 0.05)
    monkeypatch.setitem(trained.DENSE, "l2", 0.05)


@pytest.mark.parametrize("settings", trained.SETTINGS, ids=lambda settings: settings["nodes"])
@pytest.mark.parametrize("mutate", [certain_root, picked_labels, no_empty_rows, strong_regularisation])
def test_the_check_of_training_notices(
    mutate: Callable[[pytest.MonkeyPatch], None],
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trained, "TREES", ("huffman",))
    monkeypatch.setattr(trained, "SETTINGS", (settings,))
    mutate(monkeypatch)
    assert trained.check_trained("plt", with_calibration=False).passed is False


@pytest.mark.parametrize("settings", trained.SETTINGS, ids=lambda settings: settings["nodes"])
@pytest.mark.parametrize("wrong", ["the first label only", "link plt"])
def test_the_check_of_hsm_notices(
    wrong: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained, "TREES", ("huffman",))
    monkeypatch.setattr(trained, "SETTINGS", (settings,))
    train = trained.trained_probabilities
    if wrong == "link plt":
        monkeypatch.setattr(trained, "trained_probabilities", lambda tree, link, s: train(tree, "plt", s))
    else:
        picked_labels(monkeypatch)
    assert trained.check_trained("hsm", with_calibration=False).passed is False


def test_bounds_that_are_not_numbers_fail() -> None:
    assert bounds.largest_ratio(np.array([0.1]), np.array([np.nan])) == np.inf
    assert bounds.largest_ratio(np.array([0.1]), np.array([0.2])) == pytest.approx(0.5)


def test_page_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(theory, "RANDOM_CHECKS", ((checks.check_counterexample, 40, 20),))
    monkeypatch.setattr(theory, "LINKS", ())
    assert theory.main(["--quick", "--output", str(tmp_path)]) == 0
    page = (tmp_path / "theory.md").read_text()
    assert "marginals 0.6 / 0.5 / 0.4, pick-one 0.35 / 0.25 / 0.4" in page
    assert "1 of 1 checks pass." in page
    assert "20 random distributions" in page
    assert "PASS    Proposition 1" in capsys.readouterr().out
    monkeypatch.setattr(exact, "pick_one", pick_by_square)
    assert theory.main(["--output", str(tmp_path)]) == 1
    page = (tmp_path / "theory.md").read_text()
    assert "0 of 1 checks pass, 1 fail." in page
    assert "## Proposition 1: the counterexample: FAIL" in page
    assert (tmp_path / "theory.csv").read_text().count("FAIL") == 1
