"""The Learned Tree: its kernels and its moves against the reference, and models whose labels moved."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from support.small_data import LABELS, N_LABELS, make_toy, with_effect, write_fasttext
from support.strategies import label_rows, random_parameters, sparse_rows

import labeltree
from labeltree import LabelTree, cli
from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.errors import TrainingError
from labeltree.experts.tree_training import tree_seed
from labeltree.kernels.dense.arrays import Examples
from labeltree.kernels.trees.learned import fill_children, measure_children
from labeltree.model import Model
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.dense import fitting as dense
from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.parallel import Pool
from labeltree.reference import learned as reference
from labeltree.reference.learned import Votes
from labeltree.reference.training import Example, Parameters, Rows
from labeltree.training.driver import estimate
from labeltree.trees.builder import TreeInput
from labeltree.trees.file import write_tree
from labeltree.trees.learned import _leaves_below, assign_labels, learn_tree
from labeltree.trees.shapes import build_shuffled

N_FEATURES = 9
LEARNED: dict[str, Any] = dict(
    tree="learned", nodes="dense", arity=3, dim=16, epochs=15, batch_size=16, lr=0.3,
    char_weight=0.0, pair_weight=0.0, neighbours=0,
)  # fmt: skip
TRAIN, TEST = make_toy(200, seed=0), make_toy(100, seed=1)


class Problem(NamedTuple):
    """A tree, parameters of its nodes, and rows."""

    tree: LabelTree
    parameters: DenseParameters
    examples: list[Example]

    def reference_parameters(self) -> Parameters:
        embedding, weights, bias = (array.astype(np.float64) for array in self.parameters)
        nothing = np.zeros(0)
        return Parameters(Rows(embedding, nothing), Rows(weights, nothing), Rows(bias[:, None], nothing))

    def arrays(self) -> Examples:
        X = sparse_rows([dict(example.features) for example in self.examples], N_FEATURES)
        Y = label_rows([example.labels for example in self.examples], self.tree.n_labels)
        weight = np.array([example.weight for example in self.examples], np.float32)
        return Examples(X.indptr, X.indices, X.values, Y.indptr, Y.indices, weight)


def random_rows(n_labels: int, n_rows: int, seed: int, least_labels: int = 0) -> list[Example]:
    """Some of weight 0; a third of the labels has no row."""
    random = np.random.default_rng(seed)
    used = random.permutation(n_labels)[: max(1, n_labels * 2 // 3)]
    rows = []
    for _ in range(n_rows):
        features = random.choice(N_FEATURES, random.integers(1, 7), replace=False)
        labels = random.choice(used, random.integers(least_labels, min(4, len(used) + 1)), replace=False)
        values = {int(feature): float(np.float32(random.normal())) for feature in features}
        rows.append(Example(values, set(labels.tolist()), float(random.choice([1.0, 0.0, 0.5, 3.0]))))
    return rows


def random_problem(seed: int, scale: float = 1.0) -> Problem:
    """A complete tree of any arity, mostly ragged."""
    random = np.random.default_rng(seed)
    n_labels, arity = int(random.integers(1, 24)), int(random.integers(2, 7))
    tree = build_shuffled(n_labels, arity, seed)
    parameters = random_parameters(tree, N_FEATURES, 5, seed, scale=scale)
    return Problem(tree, parameters, random_rows(n_labels, int(random.integers(1, 30)), seed))


def measured(problem: Problem, node_of_label: NDArray[np.int32], link: str) -> tuple[NDArray, NDArray]:
    tree, n_labels = problem.tree, problem.tree.n_labels
    probabilities, count = np.zeros((n_labels, int(tree.n_children.max()))), np.zeros(n_labels)
    hidden = np.zeros((1, problem.parameters.weights.shape[1]), np.float32)
    measure_children(
        problem.arrays(), np.arange(len(problem.examples)), tree.first_child, tree.n_children, node_of_label,
        problem.parameters, LINKS[link].kernel, hidden, probabilities, count,
    )  # fmt: skip
    return probabilities, count


def kernel_tree(problem: Problem, link: str) -> LabelTree:
    """The assignment of a training run that stands at these parameters."""
    trainer = SimpleNamespace(
        tree=problem.tree,
        examples=problem.arrays(),
        parameters=problem.parameters,
        config=Config(dim=problem.parameters.weights.shape[1]),
        chunks=SimpleNamespace(link=LINKS[link].kernel),
    )
    rows = np.arange(len(problem.examples), dtype=np.int64)
    return LabelTree(problem.tree.parent, assign_labels(trainer, rows))  # type: ignore[arg-type]


def random_votes(seed: int, n_labels: int = 5, n_children: int = 3) -> Votes:
    random = np.random.default_rng(seed)
    share = random.dirichlet(np.ones(n_labels))
    probabilities = random.dirichlet(np.ones(n_children), n_labels)
    return Votes(
        dict(enumerate(share.tolist())),
        {label: dict(enumerate(row)) for label, row in enumerate(probabilities.tolist())},
    )


# --- the reference: objective and derivative ---


def test_the_objective_of_a_known_case() -> None:
    """Two labels as frequent as each other: sent apart J is 1, sent alike it is 0."""
    half = {0: 0.5, 1: 0.5}
    apart = Votes(half, {0: {1: 1.0, 2: 0.0}, 1: {1: 0.0, 2: 1.0}})
    alike = Votes(half, {0: {1: 0.7, 2: 0.3}, 1: {1: 0.7, 2: 0.3}})
    between = Votes(half, {0: {1: 0.75, 2: 0.25}, 1: {1: 0.25, 2: 0.75}})
    unbalanced = Votes({0: 0.9, 1: 0.1}, apart.probabilities)
    assert reference.objective(apart) == pytest.approx(1.0)
    assert reference.objective(alike) == 0.0
    assert reference.objective(between) == pytest.approx(0.5)
    assert reference.objective(unbalanced) == pytest.approx(0.36)  # 2/2 * 2 * (0.9 * 0.1 + 0.1 * 0.9)
    assert reference.objective(Votes({}, {})) == 0.0


Objective = Callable[[Votes], float]
Derivatives = Callable[[Votes], dict[tuple[int, int], float]]


def check_derivatives(objective: Objective, derivatives: Derivatives) -> None:
    """By differences: p_ij times e^step moves J by step times the derivative, while no sign changes."""
    step = 1e-7
    for seed in range(20):
        votes = random_votes(seed)
        for (label, child), derivative in derivatives(votes).items():
            ends = []
            for factor in (math.exp(-step), math.exp(step)):
                moved = {**votes.probabilities[label], child: votes.probabilities[label][child] * factor}
                ends.append(objective(votes._replace(probabilities={**votes.probabilities, label: moved})))
            assert derivative == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=1e-6)


def test_the_derivative_is_that_of_the_objective() -> None:
    check_derivatives(reference.objective, reference.derivatives)


def without_the_mean(votes: Votes) -> dict[tuple[int, int], float]:
    """As if p_j did not move with p_ij."""
    means = reference.mean_probabilities(votes)
    return {
        (i, j): 2 / len(means) * votes.share[i] * p * reference.sign(p - means[j])
        for i, probabilities in votes.probabilities.items()
        for j, p in probabilities.items()
    }


WRONG: dict[str, tuple[Objective, Derivatives]] = {
    "objective of the other sign": (lambda votes: -reference.objective(votes), reference.derivatives),
    "objective without its factor": (lambda votes: reference.objective(votes) * 1.5, reference.derivatives),
    "derivative of the other sign": (
        reference.objective,
        lambda votes: {pair: -value for pair, value in reference.derivatives(votes).items()},
    ),
    "derivative that forgets the mean": (reference.objective, without_the_mean),
    "derivative by p, not by log p": (
        reference.objective,
        lambda votes: {
            (i, j): d / votes.probabilities[i][j] for (i, j), d in reference.derivatives(votes).items()
        },
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_check_of_the_derivative_notices(wrong: str) -> None:
    with pytest.raises(AssertionError):
        check_derivatives(*WRONG[wrong])


# --- the kernels against the reference ---


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scale", [0.3, 3.0, 100.0])
def test_probabilities_of_children_are_the_references(link: str, scale: float) -> None:
    """Of labels at any nodes, leaves too; scores of hundreds are no problem."""
    for seed in range(15):
        problem = random_problem(seed, scale)
        tree = problem.tree
        node_of_label = np.random.default_rng(seed).integers(0, tree.n_nodes, tree.n_labels).astype(np.int32)
        probabilities, count = measured(problem, node_of_label, link)
        for label, node in enumerate(node_of_label.tolist()):
            expected = np.zeros(probabilities.shape[1])
            children, weight = list(reference.children_of(tree, node)), 0.0
            if children:
                votes = reference.measure(
                    tree, node, [label], problem.reference_parameters(), problem.examples, link
                )
                weight = sum(example.weight for example in problem.examples if label in example.labels)
                if weight > 0.0:
                    expected[: len(children)] = [weight * votes.probabilities[label][c] for c in children]
            assert count[label] == pytest.approx(weight)
            np.testing.assert_allclose(probabilities[label], expected, rtol=2e-4, atol=1e-6)


def check_filling(
    fill: Callable[[Votes, dict[int, int]], dict[int, int]], derivatives: Derivatives, n_cases: int = 40
) -> None:
    """One node and random votes; some labels have none."""
    for seed in range(n_cases):
        random = np.random.default_rng(seed)
        n_labels, n_children = int(random.integers(2, 13)), int(random.integers(2, 5))
        voting = {int(i) for i in random.permutation(n_labels)[: random.integers(0, n_labels + 1)]}
        sizes = random.multinomial(n_labels, np.ones(n_children) / n_children)
        room = {1 + c: int(size) for c, size in enumerate(sizes)}
        votes = random_votes(seed, n_labels, n_children)
        total = sum(votes.share[i] for i in voting)
        share = {i: votes.share[i] / total for i in sorted(voting)}
        votes = Votes(share, {i: {1 + c: p for c, p in votes.probabilities[i].items()} for i in share})
        found = fill(votes, room)
        assert found == reference.fill(range(n_labels), room, derivatives(votes))
        assert sorted(found) == list(range(n_labels))
        assert {c: list(found.values()).count(c) for c in room} == room


def kernel_fill(votes: Votes, room: dict[int, int]) -> dict[int, int]:
    """The kernel at the root of a tree whose children have this room."""
    n_labels, n_children = sum(room.values()), len(room)
    probabilities, count = np.zeros((n_labels, n_children)), np.zeros(n_labels)
    for i, share in votes.share.items():
        count[i] = 7.0 * share  # only their relation counts
        probabilities[i] = [count[i] * votes.probabilities[i][child] for child in room]
    first_child = np.array([1] + [-1] * n_children, np.int32)
    n_children_of = np.array([n_children] + [0] * n_children, np.int32)
    capacity = np.array([n_labels, *room.values()], np.int64)
    at_root = np.zeros(n_labels, np.int32)
    found = fill_children(probabilities, count, first_child, n_children_of, at_root, capacity)
    return dict(enumerate(found.tolist()))


def test_children_are_filled_as_in_the_reference() -> None:
    check_filling(kernel_fill, reference.derivatives)


@pytest.mark.parametrize(
    "wrong",
    ["derivative of the other sign", "derivative that forgets the mean", "derivative by p, not by log p"],
)
def test_the_check_of_the_filling_notices(wrong: str) -> None:
    with pytest.raises(AssertionError):
        check_filling(kernel_fill, WRONG[wrong][1])


@pytest.mark.parametrize("fill", [reference.fill, None], ids=["reference", "kernel"])
def test_labels_without_rows_take_what_is_left(fill: Any) -> None:
    """Child 3, which label 1 wants, goes to label 2; label 1 likes child 1 better than child 2 then.

    Its derivatives of these are negative, but label 0, without any, must not come before it.
    """
    votes = Votes(
        {1: 0.2, 2: 0.4, 3: 0.4},
        {1: {1: 0.1, 2: 0.2, 3: 0.7}, 2: {1: 0.2, 2: 0.3, 3: 0.5}, 3: {1: 0.3, 2: 0.4, 3: 0.3}},
    )
    wishes, room = reference.derivatives(votes), {1: 1, 2: 2, 3: 1}
    assert wishes[1, 2] < wishes[1, 1] < 0.0 < wishes[1, 3] < wishes[2, 3]
    found = fill(range(4), room, wishes) if fill else kernel_fill(votes, room)
    assert found == {0: 2, 1: 1, 2: 3, 3: 2}


@pytest.mark.parametrize("link", LINKS)
def test_the_assignment_is_the_references(link: str) -> None:
    """Ragged trees, labels without rows, rows of weight 0; each label has one leaf of the same shape."""
    n_moved = 0
    for seed in range(60):
        problem = random_problem(seed)
        found = kernel_tree(problem, link)
        expected = reference.assign(problem.tree, problem.reference_parameters(), problem.examples, link)
        assert np.array_equal(found.parent, problem.tree.parent)
        assert found.label.tolist() == expected.label.tolist(), f"seed {seed}"
        assert sorted(found.label[found.label >= 0].tolist()) == list(range(problem.tree.n_labels))
        n_moved += int(found != problem.tree)
    assert n_moved > 40


def test_leaves_below() -> None:
    for seed in range(10):
        tree = random_problem(seed).tree
        expected = [reference.leaves_below(tree, node) for node in range(tree.n_nodes)]
        assert _leaves_below(tree).tolist() == expected


# --- the whole tree against the reference ---


def learn_small(
    tree: LabelTree,
    examples: list[Example],
    config: Config,
    seed: int,
    report: Callable[[float], None] = lambda fraction: None,
) -> LabelTree:
    X = sparse_rows([dict(example.features) for example in examples], N_FEATURES)
    Y = label_rows([example.labels for example in examples], tree.n_labels)
    weight = np.array([example.weight for example in examples], np.float32)
    names = [str(label) for label in range(tree.n_labels)]
    with Pool(1) as pool:
        return learn_tree(TreeInput(TrainingRows(X, Y, weight), names, config, pool, report), tree, seed)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("n_labels", "arity"), [(2, 2), (7, 2), (9, 3), (14, 4)])
def test_the_tree_is_the_references(
    link: str, n_labels: int, arity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When labels move, where they go, and what becomes of nodes that had no rows at first."""
    for seed, n_at_once in enumerate((8, 12, dense.PART_EXAMPLES)):
        for module in (dense, reference):
            monkeypatch.setattr(
                module, "PART_EXAMPLES", n_at_once
            )  # calls of the kernel within an epoch, or not
        tree = build_shuffled(n_labels, arity, seed)
        examples = random_rows(n_labels, 20, seed, least_labels=int(link == "hsm"))
        config = Config(
            tree="learned", link=link, dim=4, epochs=(4, 4, 9)[seed], batch_size=(1, 4, 4)[seed],
            lr=(0.05, 0.3, 0.3)[seed], l2=1e-3, optimizer="sgd",
        )  # fmt: skip
        expected = reference.learn_tree(tree, examples, N_FEATURES, config, seed)
        assert learn_small(tree, examples, config, seed) == expected


def test_divergence_is_an_error() -> None:
    tree, examples = build_shuffled(9, 3, 1), random_rows(9, 30, 1)
    config = Config(tree="learned", dim=4, epochs=20, batch_size=4, lr=1e25, optimizer="sgd")
    with pytest.raises(TrainingError, match=r"lr=1e\+25 is too large"):
        learn_small(tree, examples, config, 1)


def test_the_part_that_is_done_is_told() -> None:
    tree, examples = build_shuffled(9, 3, 1), random_rows(9, 32, 1)
    told: list[float] = []
    config = Config(tree="learned", dim=4, epochs=10, batch_size=4)
    learn_small(tree, examples, config, 1, told.append)
    assert len(told) == 14  # a quarter of an epoch each, up to the last move of 3.5 epochs
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert told[0] == pytest.approx(1 / 14)


# --- what moving is for ---

GROUPS, PER_GROUP = 2, 4


def grouped_rows(seed: int, n_rows: int = 200) -> tuple[list[str], list[list[str]]]:
    """Rows of one label, whose words tell nothing but which of two groups it belongs to."""
    random = np.random.default_rng(seed)
    texts, Y = [], []
    for _ in range(n_rows):
        group, member = int(random.integers(GROUPS)), int(random.integers(PER_GROUP))
        texts.append(" ".join(f"group{group}word{word}" for word in random.choice(6, 3, replace=False)))
        Y.append([f"{group}-{member}"])
    return texts, Y


def groups_below(model: Model) -> list[set[str]]:
    """The groups of the labels below each child of the root."""
    tree = model.label_trees[0]
    found: list[set[str]] = [set() for _ in range(int(tree.n_children[0]))]
    for label, name in enumerate(model.label_names):
        node = int(tree.leaf_of_label[label])
        while tree.parent[node] > 0:
            node = int(tree.parent[node])
        found[node - 1].add(name[0])
    return found


def root_objective(model: Model, texts: list[str], Y: list[list[str]]) -> float:
    """J at the root of a model, on these rows."""
    parameters = model.experts[0].parameters.floats()  # type: ignore[union-attr]
    problem = Problem(model.label_trees[0], parameters, [])
    rows, ids = model._rows(texts), {name: label for label, name in enumerate(model.label_names)}
    examples = [
        Example(
            dict(zip(*(a[rows.indptr[i] : rows.indptr[i + 1]].tolist() for a in rows[1:3]), strict=True)),
            {ids[name] for name in labels},
        )
        for i, labels in enumerate(Y)
    ]
    votes = reference.measure(
        problem.tree, 0, range(model.n_labels), problem.reference_parameters(), examples, model.config.link
    )
    return reference.objective(votes)


@pytest.mark.parametrize("link", LINKS)
def test_groups_of_labels_end_in_subtrees_of_their_own(link: str, tmp_path: Path) -> None:
    """And the root separates its labels better than that of the tree that they started in."""
    for seed in range(3):
        texts, Y = grouped_rows(seed)
        options = LEARNED | dict(arity=2, link=link, seed=seed, epochs=12)
        moved = labeltree.train(texts, Y, **options)
        start = build_shuffled(GROUPS * PER_GROUP, options.pop("arity"), seed)
        write_tree(tmp_path / "start", start, moved.label_names)
        unmoved = labeltree.train(texts, Y, **options | dict(tree=str(tmp_path / "start")))
        assert len(set.union(*groups_below(moved))) == GROUPS
        assert all(len(groups) == 1 for groups in groups_below(moved))
        assert any(len(groups) > 1 for groups in groups_below(unmoved))
        assert root_objective(moved, texts, Y) > root_objective(unmoved, texts, Y) + 0.1


def check_separation(derivatives: Derivatives) -> None:
    """Filling by votes that lean a little towards the groups; then J of nodes that know the groups perfectly.

    A node that can tell only the group of a row gives a child the part of the group's labels that it has.
    """
    random = np.random.default_rng(0)
    labels, room = range(8), {1: 4, 2: 4}
    share = dict.fromkeys(labels, 1 / 8)

    def objective_of(child_of: dict[int, int]) -> float:
        part = {g: sum(child_of[i] == 1 for i in labels if i % 2 == g) / 4 for g in (0, 1)}
        return reference.objective(Votes(share, {i: {1: part[i % 2], 2: 1 - part[i % 2]} for i in labels}))

    for _ in range(20):
        lean = {i: 0.5 + (0.1 if i % 2 else -0.1) + float(random.uniform(-0.05, 0.05)) for i in labels}
        votes = Votes(share, {i: {1: p, 2: 1 - p} for i, p in lean.items()})
        found = objective_of(reference.fill(labels, room, derivatives(votes)))
        assert found == pytest.approx(1.0)
        for _ in range(10):
            order = random.permutation(8).tolist()
            assert found >= objective_of({i: 1 + (place >= 4) for place, i in enumerate(order)})


def test_filling_does_not_lower_the_objective_below_that_of_probability() -> None:
    check_separation(reference.derivatives)


# --- models; what all trees have in common is in tests/test_contract.py ---


def learn(X: Any = None, Y: Any = None, **changes: Any) -> Model:
    given = LEARNED | changes
    return labeltree.train(TRAIN.texts if X is None else X, TRAIN.Y if Y is None else Y, **given)


@pytest.mark.parametrize("link", LINKS)
def test_labels_have_moved_in_a_tree_of_the_same_shape(link: str) -> None:
    start = build_shuffled(N_LABELS, LEARNED["arity"], Config().seed)
    tree = learn(link=link).label_trees[0]
    assert np.array_equal(tree.parent, start.parent)
    assert tree != start
    assert sorted(tree.label[tree.label >= 0].tolist()) == list(range(N_LABELS))


@pytest.mark.parametrize("link", LINKS)
def test_nodes_of_any_kind_are_those_of_the_tree_from_a_file(link: str, tmp_path: Path) -> None:
    """The learned tree is a tree like any other, and the same one for all kinds of nodes."""
    tree = learn(link=link).label_trees[0]
    for nodes in KINDS:
        model = learn(link=link, nodes=nodes)
        assert all(found == tree for found in model.label_trees)
        write_tree(tmp_path / "learned.tree", tree, model.label_names)
        given = {name: value for name, value in LEARNED.items() if name != "arity"}
        given |= dict(link=link, nodes=nodes, tree=str(tmp_path / "learned.tree"))
        from_file = labeltree.train(TRAIN.texts, TRAIN.Y, **with_effect(**given))
        for one, other in zip(model.experts, from_file.experts, strict=True):
            assert all(map(np.array_equal, one.parameters, other.parameters))


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("arity", [2, 3])
def test_labels_without_rows_have_no_probability(link: str, arity: int) -> None:
    """As many as with rows: nodes without any row at first get some, and lose them."""
    names = [f"unused-{i}" for i in range(N_LABELS)] + LABELS
    model = learn(link=link, arity=arity, label_names=names)
    found = model.probability(TEST.texts, names)
    assert not found[:, :N_LABELS].any()
    assert found[:, N_LABELS:].min() > 0.0


@pytest.mark.parametrize("link", LINKS)
def test_few_labels(link: str) -> None:
    one = learn(["a b", "b c"] * 10, [["x"], ["x"]] * 10, link=link)
    assert one.predict(["a", "unknown"]) == [[("x", 1.0)], [("x", 1.0)]]
    two = learn(["a b", "c d"] * 10, [["x"], ["y"]] * 10, link=link)
    assert [row[0][0] for row in two.predict(["a b", "c d"], k=1)] == ["x", "y"]


@pytest.mark.parametrize("link", LINKS)
def test_more_labels_than_rows(link: str) -> None:
    Y = [[f"label-{i}-{j}" for j in range(10)] for i in range(4)]
    model = learn(["a", "b", "c", "d"], Y, link=link)
    assert model.n_labels == 40
    found = model.probability(["a", "b", "c", "d"], model.label_names)
    assert np.all(np.isfinite(found) & (found >= 0) & (found <= 1))


@pytest.mark.parametrize("link", LINKS)
def test_an_ensemble_has_trees_of_its_own(link: str) -> None:
    first, second = learn(link=link, trees=2).label_trees
    assert first == learn(link=link).label_trees[0]
    assert first != second
    starts = [
        build_shuffled(N_LABELS, LEARNED["arity"], tree_seed(Config().seed, number)) for number in (0, 1)
    ]
    assert [first != starts[0], second != starts[1]] == [True, True]


def test_memory_is_that_of_dense_vectors() -> None:
    """They are there while the tree is built, also if the model's own nodes are sparse."""
    small, large = (
        estimate(TRAIN.texts, TRAIN.Y, tree="learned", nodes="sparse", dim=dim, epochs=1, arity=3).peak_bytes
        for dim in (8, 4096)
    )
    n_vectors = N_FEATURES + 2 * N_LABELS
    assert large - small > 4000 * 4 * n_vectors
    complete = estimate(TRAIN.texts, TRAIN.Y, tree="complete", arity=3).peak_bytes
    assert large > complete + 4000 * 4 * n_vectors


SMALL = ["--arity", "3", "--dim", "8", "--epochs", "4", "--quiet"]


@pytest.mark.parametrize("nodes", KINDS)
@pytest.mark.parametrize("link", LINKS)
def test_the_command_line_trains(
    nodes: str, link: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = tmp_path / "train.txt", tmp_path / "m.labeltree"
    data.write_text(write_fasttext(TRAIN))
    how = ["--tree", "learned", "--nodes", nodes, "--link", link]
    assert cli.main(["train", str(data), *how, "--dry-run", "--dim", "8", "--epochs", "4"]) == 0
    assert "peak memory" in capsys.readouterr().out
    assert not path.exists()
    assert cli.main(["train", str(data), "-o", str(path), *how, *SMALL]) == 0
    model = labeltree.load(path)
    assert (model.config.tree, model.config.link, model.config.nodes) == ("learned", link, nodes)
    assert model.n_labels == N_LABELS
