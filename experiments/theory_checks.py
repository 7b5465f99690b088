"""The paper's claims as checks: each computes both sides of a claim exactly and says whether it holds.

A check also fails where it would prove nothing: if no random distribution has a regret, if a bound is never
reached, if no tree is dearer than Huffman's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from experiments import theory_exact as exact
from experiments import theory_trees as trees
from experiments.theory_exact import Array, Distribution
from labeltree.reference import search as reference_search
from labeltree.reference import training as reference_training
from labeltree.tree import LabelTree
from labeltree.trees.shapes import build_huffman

EXACT = 1e-12  # what rounding may do to sums of probabilities
N_LABELS = (2, 3, 4, 5)

# The proof of Proposition 1: the sets {1}, {1, 2}, {3}.
COUNTEREXAMPLE = Distribution(
    np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], np.bool_), np.array([0.1, 0.5, 0.4])
)
# Six rows on which Huffman joins the two rarest labels, 1 and 2, though 2 never comes without 0.
DEARER = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]], np.bool_), np.array([1, 2, 3])
# One label per row; the printed cost of Appendix C is not least for Huffman's tree.
PRINTED_DEARER = np.array([3, 8, 3, 5])


class Check(NamedTuple):
    """What a check found."""

    name: str
    claim: str
    computed: tuple[str, ...]
    passed: bool


def numbers(values: Array) -> str:
    return " / ".join(f"{value:.4g}" for value in values)


def random_probabilities(random: np.random.Generator, n_labels: int, n_cases: int) -> Array:
    """(n_cases, 2^n_labels) from almost one set only to almost uniform; some sets are impossible."""
    n_sets = 2**n_labels
    concentration = random.choice([0.03, 0.3, 3.0], n_cases)
    drawn = random.gamma(concentration[:, None], size=(n_cases, n_sets)) + 1e-300
    drawn *= random.random((n_cases, n_sets)) < random.choice([0.3, 1.0], (n_cases, 1))
    drawn[np.arange(n_cases), random.integers(0, n_sets, n_cases)] += 1e-3  # at least one is possible
    return drawn / drawn.sum(axis=1, keepdims=True)


def random_distributions(seed: int, n_cases: int) -> Iterator[Distribution]:
    random = np.random.default_rng(seed)
    for n_labels in N_LABELS:
        for probability in random_probabilities(random, n_labels, n_cases // len(N_LABELS)):
            yield Distribution(exact.all_label_sets(n_labels), probability)


def check_counterexample(n_cases: int) -> Check:
    """Proposition 1, and that the regret's formula is what its definition says."""
    eta, picked = exact.marginals(COUNTEREXAMPLE), exact.pick_one(COUNTEREXAMPLE)
    lost = exact.regret(COUNTEREXAMPLE, picked, 1)
    published = (
        np.allclose(eta, [0.6, 0.5, 0.4], rtol=0, atol=EXACT)
        and np.allclose(picked, [0.35, 0.25, 0.4], rtol=0, atol=EXACT)
        and abs(lost - 0.2) <= EXACT
    )
    difference, own_regret = 0.0, 0.0
    random = np.random.default_rng(1)
    for distribution in random_distributions(1, n_cases):
        eta_of_case = exact.marginals(distribution)
        values = random.random(eta_of_case.shape)
        for k in range(1, len(values) + 1):
            by_formula = float(exact.regret_of_marginals(eta_of_case, values, k))
            difference = max(difference, abs(exact.regret(distribution, values, k) - by_formula))
            own_regret = max(own_regret, abs(exact.regret(distribution, eta_of_case, k)))
    return Check(
        "Proposition 1: the counterexample",
        "P({1}) = 0.1, P({1, 2}) = 0.5, P({3}) = 0.4: picking one label loses 0.2 of precision@1; the k "
        "largest marginals are best for precision@k.",
        (
            f"marginals {numbers(eta)}, pick-one {numbers(picked)}",
            f"regret of pick-one at precision@1: {lost:.4g}",
            f"{n_cases} random distributions, every k: regret of the marginals' own order against the best "
            f"of all sets of k labels at most {own_regret:.1e}; formula and definition differ by at most "
            f"{difference:.1e}",
        ),
        bool(published and difference <= EXACT and own_regret <= EXACT),
    )


def check_independent(n_cases: int) -> Check:
    """Proposition 2; what its proof shows is sharper than the order: see ``gaps``."""
    random = np.random.default_rng(2)
    worst, wrong_gaps = 0.0, 0
    for case in range(n_cases):
        n_labels = N_LABELS[case % len(N_LABELS)]
        a, b = random.choice([0.1, 0.5, 1.0, 3.0], 2).tolist()
        eta = random.beta(a, b, n_labels)
        distribution = exact.independent(eta)
        eta, picked = exact.marginals(distribution), exact.pick_one(distribution)
        worst = max(worst, *(exact.regret(distribution, picked, k) for k in range(1, n_labels + 1)))
        # eta'_i - eta'_j = (eta_i - eta_j) E[1 / (1 + number of other labels)], between 1/(m - 1) and 1.
        order = exact.top(eta, n_labels)
        gaps, picked_gaps = -np.diff(eta[order]), -np.diff(picked[order])
        kept = (picked_gaps >= gaps / (n_labels - 1) - EXACT) & (picked_gaps <= gaps + EXACT)
        wrong_gaps += int((~kept).sum())
    regrets = [
        max(exact.regret(distribution, exact.pick_one(distribution), k) for k in (1, 2))
        for distribution in random_distributions(3, n_cases)
    ]
    n_inconsistent = sum(lost > 1e-6 for lost in regrets)
    return Check(
        "Proposition 2: independent labels",
        "Where labels are independent, picking one keeps the order of the marginals: no regret for any k. "
        "(Dependent labels drawn at random do have regret, so the claim is not empty.)",
        (
            f"{n_cases} products of random marginals, every k: largest regret {worst:.1e}; gaps between "
            f"neighbours outside of the proof's range: {wrong_gaps}",
            f"{len(regrets)} random dependent distributions, k = 1, 2: {n_inconsistent} with regret, the "
            f"largest {max(regrets):.4g}",
        ),
        bool(worst <= EXACT and wrong_gaps == 0 and n_inconsistent >= len(regrets) // 100),
    )


def specified_marginals(tree: LabelTree, distribution: Distribution) -> Array:
    """A PLT as the package's reference trains and reads it: Algorithm 1's examples, without any feature.

    The best constant classifier of a node is the log-odds of its examples, which is its first bias.
    """
    examples = [
        reference_training.Example({}, set(np.flatnonzero(labels).tolist()), float(probability))
        for labels, probability in zip(*distribution, strict=True)
        if probability > 0
    ]
    scores = reference_training.initial_bias(tree, examples)
    logs = np.array([reference_search.log_sigmoid(float(score)) for score in scores])
    return np.exp(reference_search.log_marginals(tree, logs))


def check_label_trees(n_cases: int) -> Check:
    """PLT gives the marginals, HSM the pick-one values, on any tree."""
    random = np.random.default_rng(4)
    plt_error = reference_error = hsm_error = sum_error = 0.0
    n_empty = 0
    shapes: set[str] = set()
    for distribution in random_distributions(5, n_cases):
        eta, picked = exact.marginals(distribution), exact.pick_one(distribution)
        any_label = float(distribution.probability[distribution.labels.any(axis=1)].sum())
        n_empty += any_label < 1 - 1e-6
        for shape, tree in trees.some_trees(random, eta).items():
            shapes.add(shape)
            plt_error = max(plt_error, np.abs(exact.plt_marginals(tree, distribution) - eta).max())
            specified = specified_marginals(tree, distribution)
            reference_error = max(reference_error, np.abs(specified - eta).max())
            if any_label > 0:
                hsm = exact.hsm_probabilities(tree, distribution)
                hsm_error = max(hsm_error, np.abs(hsm - picked / any_label).max())
                sum_error = max(sum_error, abs(float(hsm.sum()) - 1))
    return Check(
        "PLT gives marginals, HSM the pick-one values",
        "With exact conditionals the product along the path, the root's included, is eta_j for any tree and "
        "distribution; a softmax over siblings trained on picked labels gives eta'_j.",
        (
            f"{n_cases} random distributions ({n_empty} with rows without labels) x {len(shapes)} trees "
            f"({'; '.join(sorted(shapes))})",
            f"PLT from the nodes' probabilities: largest error {plt_error:.1e}; from the examples of "
            f"Algorithm 1 (the package's reference): {reference_error:.1e}",
            f"HSM against eta' / P(any label): largest error {hsm_error:.1e}; its sum differs from 1 by at "
            f"most {sum_error:.1e}",
        ),
        bool(max(plt_error, reference_error, hsm_error, sum_error) <= EXACT and n_empty > n_cases // 4),
    )


def check_multi_class(n_cases: int) -> Check:
    """On multi-class data PLT and HSM are the same; on multi-label data they are not."""
    random = np.random.default_rng(6)
    same = 0.0
    for case in range(n_cases):
        n_labels = N_LABELS[case % len(N_LABELS)]
        eta = random.dirichlet(np.full(n_labels, random.choice([0.1, 1.0])))
        distribution = Distribution(np.eye(n_labels, dtype=np.bool_), eta)
        for tree in trees.some_trees(random, eta).values():
            plt, hsm = exact.plt_marginals(tree, distribution), exact.hsm_probabilities(tree, distribution)
            same = max(
                same, np.abs(plt - hsm).max(), np.abs(specified_marginals(tree, distribution) - hsm).max()
            )
    other = [
        np.abs(exact.plt_marginals(tree, distribution) - exact.hsm_probabilities(tree, distribution)).max()
        for distribution in random_distributions(7, n_cases)
        for tree in (trees.random_tree(random, distribution.labels.shape[1]),)
        if exact.pick_one(distribution).sum() > 0
    ]
    return Check(
        "PLT = HSM on multi-class data",
        "Where every row has exactly one label, PLT and HSM with exact conditionals give the same "
        "probabilities on the same tree.",
        (
            f"{n_cases} random multi-class distributions x 6 trees: largest difference {same:.1e}",
            f"{len(other)} random multi-label distributions: median difference {np.median(other):.4g}",
        ),
        bool(same <= EXACT and np.median(other) > 0.01),
    )


class HuffmanCosts(NamedTuple):
    excess: float  # of Huffman's tree over the cheapest, at most
    formula: float  # by how much tree.cost differs from what it is defined as, at most
    n_dearer: int  # trees that cost more than the cheapest ...
    n_compared: int  # ... of so many


def multi_class_costs(n_cases: int) -> HuffmanCosts:
    """Huffman's tree against every binary tree, on rows of one label each."""
    random = np.random.default_rng(8)
    excess, formula, n_dearer, n_compared = 0.0, 0.0, 0, 0
    for case in range(n_cases):
        n_labels = 2 + case % 5
        counts = random.integers(0, random.choice([4, 30]), n_labels)
        counts[0] += 1
        labels = np.eye(n_labels, dtype=np.bool_)
        rows, tree = trees.rows_of(labels, counts), build_huffman(counts, 2)
        costs = np.array([other.cost(rows) for other in trees.all_binary_trees(n_labels)])
        excess = max(excess, tree.cost(rows) - costs.min())
        n_dearer += int((costs > costs.min() + 1e-9).sum())
        n_compared += len(costs)
        distribution = Distribution(labels, counts / counts.sum())
        by_depth = 1 + 2 * float(distribution.probability @ tree.depth_of_leaves)
        for known in (by_depth, trees.defined_cost(tree, distribution)):
            formula = max(formula, abs(tree.cost(rows) - known))
    return HuffmanCosts(excess, formula, n_dearer, n_compared)


def multi_label_costs() -> HuffmanCosts:
    """The same on the rows of ``DEARER``, where another tree is cheaper."""
    labels, counts = DEARER
    rows, huffman = trees.rows_of(labels, counts), build_huffman(counts @ labels, 2)
    others = trees.all_binary_trees(labels.shape[1])
    costs = np.array([tree.cost(rows) for tree in others])
    known = np.array(
        [trees.defined_cost(tree, Distribution(labels, counts / counts.sum())) for tree in others]
    )
    n_dearer = int((costs > costs.min() + 1e-9).sum())
    return HuffmanCosts(
        huffman.cost(rows) - costs.min(), float(np.abs(costs - known).max()), n_dearer, len(costs)
    )


def check_huffman(n_cases: int) -> Check:
    """Appendix C: Huffman's tree is the cheapest for one label per row, and need not be for more."""
    is_complete = all(len(set(trees.all_binary_trees(m))) == trees.n_binary_trees(m) for m in range(1, 7))
    single, several = multi_class_costs(n_cases), multi_label_costs()
    formula = max(single.formula, several.formula)
    one_each = Distribution(np.eye(4, dtype=np.bool_), PRINTED_DEARER / PRINTED_DEARER.sum())
    printed = trees.printed_cost(build_huffman(PRINTED_DEARER, 2), one_each)
    printed_least = min(trees.printed_cost(tree, one_each) for tree in trees.all_binary_trees(4))
    return Check(
        "Appendix C: Huffman's tree",
        "On multi-class data no binary tree is cheaper to train than Huffman's (`tree.cost`: 1 + the sum "
        "over inner nodes of P(a label below) x children); on multi-label data one may be.",
        (
            f"{n_cases} random label counts, 2..6 labels, against every binary tree (945 of 6 labels): "
            f"Huffman's dearer than the cheapest by at most {single.excess:.1e}; {single.n_dearer} of "
            f"{single.n_compared} trees are dearer",
            f"tree.cost, its definition and 1 + 2 x mean depth (multi-class) differ by at most {formula:.1e}",
            "rows {1} x 1, {2} x 2, {1, 3} x 3: Huffman's tree, which joins 2 and 3, costs "
            f"{several.excess:.4f} more than the cheapest, which joins 1 and 3",
            "the cost as the appendix prints it (each inner node once per leaf below) is not least for "
            f"Huffman's tree even on multi-class data: label counts {numbers(PRINTED_DEARER)}: {printed:.4f} "
            f"against {printed_least:.4f}",
        ),
        bool(
            is_complete
            and max(single.excess, formula) <= EXACT
            and 0 < single.n_dearer < single.n_compared
            and abs(several.excess - 1 / 3) <= EXACT
            and printed > printed_least + 0.1
        ),
    )
