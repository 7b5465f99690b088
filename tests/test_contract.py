"""Behaviours that every combination of the grid has; its points are in ``benchmarks/grid.py``."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.small_data import (
    LABELS,
    N_DENSE,
    N_FEATURES,
    N_LABELS,
    empty_rows,
    make_toy,
    slow_marginals,
    take_rows,
    with_effect,
)

import labeltree
from benchmarks.grid import GRID, SMALL, Point, write_small_tree
from labeltree.data.rows import SparseRows
from labeltree.errors import DataError, LabelTreeError, ParameterError
from labeltree.experts.expert import Expert
from labeltree.experts.job import Progress
from labeltree.model import Model
from labeltree.nodes import KINDS, LINKS
from labeltree.tree import LabelTree
from labeltree.trees import FROM_FILE
from labeltree.trees.file import write_tree

TRAIN, TEST = make_toy(200, seed=0), make_toy(300, seed=1)


Train = Callable[..., Model]


@pytest.fixture(scope="session")
def tree_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_tree(tmp_path_factory.mktemp("contract") / "labels.tree", LABELS)


@pytest.fixture(scope="module", params=GRID, ids=lambda point: point.name)
def point(request: pytest.FixtureRequest) -> Point:
    return request.param


@pytest.fixture(scope="module")
def train(point: Point, tree_file: Path) -> Train:
    """``labeltree.train`` on the toy data with the parameters of the grid's point."""
    parameters = point.parameters(tree_file)

    def run(X: Any = None, Y: Any = None, **changes: Any) -> Model:
        X = TRAIN.rows(point.features) if X is None else X
        return labeltree.train(X, TRAIN.Y if Y is None else Y, **with_effect(**(parameters | changes)))

    return run


@pytest.fixture(scope="module")
def model(train: Train) -> Model:
    return train()


@pytest.fixture(scope="module")
def X(point: Point) -> Any:
    return TEST.rows(point.features)


def file_bytes(model: Model, folder: Path) -> bytes:
    path = folder / "saved.labeltree"
    model.save(path)
    return path.read_bytes()


def same_rows(one: SparseRows, other: SparseRows) -> bool:
    return one.n_columns == other.n_columns and all(map(np.array_equal, one[:3], other[:3]))


def test_the_toy_problem_is_learned(model: Model, X: Any) -> None:
    ids, _ = model.predict_arrays(X, k=1)
    hits = [model.label_names[id] in labels for id, labels in zip(ids[:, 0], TEST.Y, strict=True) if labels]
    assert np.mean(hits) > 0.95


def test_rows_without_labels_get_lower_probabilities(model: Model, point: Point, X: Any) -> None:
    """The root's classifier works: rows of noise words are known to have no label."""
    if LINKS[point.link].picks_label:
        pytest.skip("a softmax has no classifier of the root: some label always fits")
    _, best = model.predict_arrays(X, k=1)
    labelled = np.array([bool(labels) for labels in TEST.Y])
    assert best[~labelled].mean() < 0.7 * best[labelled].mean()


def test_rows_without_labels_are_examples_or_counted(
    train: Train, model: Model, point: Point, X: Any, tmp_path: Path
) -> None:
    """A softmax does not use them, and says so; it shares out a probability of 1."""
    n_empty = sum(not labels for labels in TRAIN.Y)
    assert n_empty == 10
    if not LINKS[point.link].picks_label:
        assert model.unused_rows == 0
        assert model.n_examples == len(TRAIN.Y)
        return
    assert model.unused_rows == n_empty
    assert model.n_examples == len(TRAIN.Y) - n_empty
    used = [row for row, labels in enumerate(TRAIN.Y) if labels]
    rows = take_rows(TRAIN.rows("vectors"), used)
    if point.features == "vectors":  # of texts, also the rows without labels have their words
        without = train(rows, [TRAIN.Y[row] for row in used], idf=False)
        assert without.unused_rows == 0
        assert file_bytes(without, tmp_path) == file_bytes(train(idf=False), tmp_path)
    if not any(expert.lists_all for expert in model.experts):  # neighbours have several labels
        found = model.probability(X, model.label_names)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
    with pytest.raises(DataError, match="label"):
        train(TRAIN.rows(point.features), sample_weight=[float(not labels) for labels in TRAIN.Y])


@pytest.mark.parametrize("normalize", [False, True])
def test_probabilities_are_those_of_the_definition(model: Model, X: Any, normalize: bool) -> None:
    expected = slow_marginals(model, X, normalize)
    found = model.probability(X, model.label_names, normalize=normalize)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("normalize", [False, True])
def test_top_k_is_exact_sorted_and_made_of_probabilities(model: Model, X: Any, normalize: bool) -> None:
    marginals = model.probability(X, model.label_names, normalize=normalize)
    ids, probabilities = model.predict_arrays(X, k=4, normalize=normalize)
    assert ids.dtype == np.int32
    assert probabilities.dtype == np.float32
    assert ids.shape == probabilities.shape == (len(TEST.texts), 4)
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    assert np.all(np.diff(probabilities, axis=1) <= 0)
    assert all(len(set(row)) == 4 for row in ids.tolist())
    np.testing.assert_allclose(probabilities, -np.sort(-marginals, axis=1)[:, :4], rtol=2e-6)
    np.testing.assert_allclose(probabilities, np.take_along_axis(marginals, ids, 1), rtol=2e-6)


@pytest.mark.parametrize("threshold", [0.01, 0.3, 0.9])
def test_threshold_keeps_what_is_above(model: Model, X: Any, threshold: float) -> None:
    marginals = model.probability(X, model.label_names)
    sure = np.abs(marginals - threshold) > 1e-5  # what stands on the threshold may fall on either side
    rows = model.predict_rows(X, threshold)
    found = np.zeros_like(marginals)
    for i in range(rows.n_rows):
        ids = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        assert np.all(np.diff(ids) > 0)
        found[i, ids] = rows.values[rows.indptr[i] : rows.indptr[i + 1]]
    assert np.array_equal(found[sure] > 0, marginals[sure] >= threshold)
    np.testing.assert_allclose(found[found > 0], marginals[found > 0], rtol=2e-6)
    ids, probabilities = model.predict_arrays(X, k=N_LABELS, threshold=threshold)
    assert np.array_equal((ids >= 0).sum(axis=1), (probabilities > 0).sum(axis=1))
    np.testing.assert_array_equal((ids >= 0).sum(axis=1), np.diff(rows.indptr))


def test_names_and_arrays_agree(model: Model, X: Any) -> None:
    ids, probabilities = model.predict_arrays(X, k=3)
    answers = model.predict(X, k=3)
    assert [[name for name, _ in row] for row in answers] == [
        [model.label_names[id] for id in row] for row in ids
    ]
    assert [[p for _, p in row] for row in answers] == probabilities.tolist()
    for row, above in zip(answers, model.predict(X, k=None, threshold=0.2), strict=True):
        sure, found = (dict(pair for pair in pairs if pair[1] > 0.2 + 1e-5) for pairs in (row, above[:3]))
        assert sure == pytest.approx(found, rel=2e-6)


def test_one_row_is_the_batch(model: Model, X: Any) -> None:
    batch_ids, batch = model.predict_arrays(X, k=5)
    marginals = model.probability(X, model.label_names)
    above = model.predict_rows(X, 0.1)
    for i in range(0, len(TEST.texts), 17):
        row = take_rows(X, [i])
        ids, probabilities = model.predict_arrays(row, k=5)
        assert np.array_equal(ids[0], batch_ids[i])
        assert np.array_equal(probabilities[0], batch[i])
        assert np.array_equal(model.probability(row, model.label_names)[0], marginals[i])
        alone = model.predict_rows(row, 0.1)
        part = slice(above.indptr[i], above.indptr[i + 1])
        assert np.array_equal(alone.indices, above.indices[part])
        assert np.array_equal(alone.values, above.values[part])


def test_threads_do_not_change_predictions(model: Model, X: Any) -> None:
    best = model.predict_arrays(X, k=5, threads=1)
    above = model.predict_rows(X, 0.1, threads=1)
    marginals = model.probability(X, LABELS[:3], threads=1)
    for threads in (2, 3):
        assert all(map(np.array_equal, model.predict_arrays(X, k=5, threads=threads), best))
        assert same_rows(model.predict_rows(X, 0.1, threads=threads), above)
        assert np.array_equal(model.probability(X, LABELS[:3], threads=threads), marginals)


def test_a_model_may_be_used_by_many_threads_at_once(model: Model, X: Any) -> None:
    expected = model.predict(X, k=3)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict(X, k=3, threads=2), range(8)))
        one_by_one = list(pool.map(lambda i: model.predict(take_rows(X, [i]), k=3)[0], range(len(expected))))
    assert all(answer == expected for answer in answers)
    assert one_by_one == expected


def lists_labels(point: Point) -> bool:
    """Whether labels that no list has are impossible."""
    return point.trees == 0


def test_empty_row_gets_what_the_biases_say(model: Model, point: Point) -> None:
    X = empty_rows(point.features, 2)
    found = model.probability(X, model.label_names)
    assert np.all(np.isfinite(found))
    assert np.array_equal(found[0], found[1])
    assert found.min() > 0.0 or lists_labels(point)
    assert found.max() < 1.0
    np.testing.assert_allclose(found, slow_marginals(model, X), rtol=2e-5)
    ids, probabilities = model.predict_arrays(X, k=N_LABELS)
    assert sorted(ids[0]) == list(range(N_LABELS))
    np.testing.assert_allclose(probabilities[0], -np.sort(-found[0]), rtol=2e-6)


def test_what_is_unknown_or_zero_is_as_if_absent(model: Model, point: Point) -> None:
    if point.features != "vectors":
        nothing: Any = ["nothing anybody ever saw", "\t \n", "\u2003unknown\x00tokens"]
        if point.features == "joined":
            nothing = [nothing, np.zeros((3, N_DENSE))]
    else:
        zeros = np.zeros(3, np.float32)
        nothing = SparseRows(np.arange(4), np.array([0, 5, N_FEATURES - 1], np.int32), zeros, N_FEATURES)
    expected = model.probability(empty_rows(point.features, 3), model.label_names)
    assert np.array_equal(model.probability(nothing, model.label_names), expected)
    assert model.predict(nothing, k=3) == model.predict(empty_rows(point.features, 3), k=3)


def frequencies(model: Model, point: Point, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each label of the model is in a row, or is picked of its labels."""
    share = TRAIN.indicator[:, [LABELS.index(name) for name in model.label_names]].astype(np.float64)
    if LINKS[point.link].picks_label:
        n_labels = share.sum(axis=1)
        share, weight = share[n_labels > 0], weight[n_labels > 0]
        share /= share.sum(axis=1, keepdims=True)
    return weight @ share / weight.sum()


def test_before_any_step_probabilities_are_frequencies(train: Train, point: Point, X: Any) -> None:
    """Along a path the frequencies among the parent's examples multiply to the label's own."""
    if point.nodes != "dense":
        pytest.skip("only dense nodes start there; sparse ones learn their bias as they learn weights")
    model = train(lr=0.0, epochs=1)
    expected = frequencies(model, point, np.ones(len(TRAIN.Y)))
    for rows in (X, empty_rows(point.features)):
        found = model.probability(rows, model.label_names)
        np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-5)
    counts = TRAIN.indicator[:, [LABELS.index(name) for name in model.label_names]].sum(axis=0)
    assert np.array_equal(model.label_counts, counts)


def test_k_larger_than_the_labels_is_filled_up(model: Model, X: Any) -> None:
    ids, probabilities = model.predict_arrays(X, k=N_LABELS + 3)
    assert np.all(ids[:, N_LABELS:] == -1)
    assert np.all(probabilities[:, N_LABELS:] == 0)
    assert np.all(np.sort(ids[:, :N_LABELS], axis=1) == np.arange(N_LABELS))
    exact_ids, exact = model.predict_arrays(X, k=N_LABELS)
    assert np.array_equal(ids[:, :N_LABELS], exact_ids)
    assert np.array_equal(probabilities[:, :N_LABELS], exact)
    assert all(len(row) == N_LABELS for row in model.predict(X, k=N_LABELS + 3))


def test_no_rows_give_no_answers(model: Model, point: Point) -> None:
    none = empty_rows(point.features, 0)
    assert model.predict(none) == []
    ids, probabilities = model.predict_arrays(none, k=3)
    assert ids.shape == probabilities.shape == (0, 3)
    assert model.probability(none, LABELS[:2]).shape == (0, 2)
    assert model.predict_rows(none, 0.5).n_rows == 0


@pytest.mark.parametrize("verify", [True, False])
def test_saved_and_loaded_is_the_same_model(model: Model, X: Any, tmp_path: Path, verify: bool) -> None:
    path = tmp_path / "first.labeltree"
    model.save(path)
    loaded = labeltree.load(path, verify=verify)
    assert loaded.config == model.config
    assert loaded.label_names == model.label_names
    assert loaded.n_examples == model.n_examples
    assert np.array_equal(loaded.label_counts, model.label_counts)
    assert loaded.label_trees == model.label_trees
    for one, other in zip(loaded.experts, model.experts, strict=True):
        assert same_parameters(one, other)
    assert all(map(np.array_equal, loaded.predict_arrays(X, k=5), model.predict_arrays(X, k=5)))
    assert loaded.predict(X, k=5, search="beam", beam=3) == model.predict(X, k=5, search="beam", beam=3)
    assert same_rows(loaded.predict_rows(X, 0.1), model.predict_rows(X, 0.1))
    assert loaded.inspect() == model.inspect()
    assert file_bytes(loaded, tmp_path) == path.read_bytes()


def test_same_seed_same_bytes_for_any_number_of_threads(train: Train, model: Model, tmp_path: Path) -> None:
    expected = file_bytes(model, tmp_path)
    for threads in (1, 2, 3):  # the model itself was trained with as many as there are CPUs
        assert file_bytes(train(threads=threads), tmp_path) == expected, f"{threads} threads"


def same_parameters(one: Expert, other: Expert) -> bool:
    """Not necessarily of the same tree."""
    found, expected = one.tensors(0), other.tensors(0)
    names = [name for name in found if not name.startswith("tree.")]
    return found.keys() == expected.keys() and all(
        np.array_equal(found[name], expected[name]) for name in names
    )


def trees_of(model: Model) -> list[Expert]:
    return [expert for expert in model.experts if expert.trees]


def test_another_seed_gives_another_model(train: Train, model: Model) -> None:
    pairs = zip(train(seed=2).experts, model.experts, strict=True)
    assert not any(same_parameters(*pair) for pair in pairs if pair[0].kind != "neighbours")


def test_the_trees_of_an_ensemble_differ_and_the_first_is_the_single_one(train: Train, model: Model) -> None:
    if not model.config.trees:
        pytest.skip("no trees of labels")
    first, experts = trees_of(single := train(trees=1)), trees_of(model)
    n_kinds = len(first)
    assert len(experts) == model.config.trees * n_kinds
    assert single.label_trees == model.label_trees[:n_kinds]
    assert all(map(same_parameters, first, experts))
    for place in range(n_kinds, len(experts)):
        assert not same_parameters(experts[place - n_kinds], experts[place])


def test_progress_is_told_in_order(train: Train, point: Point) -> None:
    heard: list[Progress] = []
    train(callback=heard.append)
    stages = [(progress.stage, progress.tree) for progress in heard]
    expected = [("read", 1)]
    for tree in range(1, point.trees + 1):
        expected += [("tree", tree), ("train", tree)] * len(KINDS.parts_of(point.nodes))
    if point.parameters(Path())["neighbours"]:
        expected.append(("neighbours", 1))
    if point.parameters(Path()).get("forest"):
        expected.append(("forest", 1))
    assert [stage for stage, _ in itertools.groupby(stages)] == expected
    for (stage, _, epochs), group in itertools.groupby(heard, key=lambda p: (p.stage, p.tree, p.epochs)):
        steps = list(group)
        fractions = [step.fraction for step in steps]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
        assert all(step.trees == point.trees for step in steps)
        if stage != "train":
            assert all(math.isnan(step.loss) and step.epoch == 0 for step in steps)
            continue
        assert all(step.seconds_left >= 0 for step in steps)
        assert epochs == SMALL["epochs"] or point.nodes != "dense"
        if epochs == 0:  # sparse nodes, each of which has its own passes
            assert all(math.isnan(step.loss) and step.epoch == 0 for step in steps)
            assert all(step.examples_per_second > 0 for step in steps)
        else:
            assert {step.epoch for step in steps} == set(range(1, SMALL["epochs"] + 1))
            assert all(0 < step.loss < 100 and step.examples_per_second > 0 for step in steps)
            assert steps[-1].loss < steps[0].loss


@pytest.mark.parametrize(
    ("stage", "error"), [("read", RuntimeError), ("tree", RuntimeError), ("train", KeyboardInterrupt)]
)
def test_what_the_callback_raises_ends_training(
    train: Train, point: Point, stage: str, error: type[BaseException]
) -> None:
    if not point.trees and stage != "read":
        stage = "forest"
    heard: list[str] = []

    def stop(progress: Progress) -> None:
        heard.append(progress.stage)
        if progress.stage == stage:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        train(callback=stop, threads=2)
    assert heard.count(stage) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("labeltree_")]


def test_weights_count_like_copies(train: Train, point: Point) -> None:
    """Biases start at weighted frequencies: a row of weight 2 is there twice, one of weight 0 not at all."""
    if point.nodes != "dense":
        pytest.skip("see tests/nodes/sparse/test_fitting.py")
    weight = np.tile(np.array([2.0, 0.0, 1.0, 1.0]), 50)
    model = train(sample_weight=weight, lr=0.0, epochs=1)
    found = model.probability(empty_rows(point.features), model.label_names)[0]
    np.testing.assert_allclose(found, frequencies(model, point, weight), rtol=1e-5)


def test_rows_of_weight_zero_teach_nothing(train: Train, point: Point, X: Any) -> None:
    """Rows with wrong labels do no harm if their weight is 0."""
    wrong = [[LABELS[(LABELS.index(label) + 1) % N_LABELS] for label in labels] for labels in TRAIN.Y]
    rows = list(range(len(TRAIN.Y)))
    both = take_rows(TRAIN.rows(point.features), rows + rows)
    weight = np.repeat([1.0, 0.0], len(rows))
    model = train(both, TRAIN.Y + wrong, sample_weight=weight)
    ids, _ = model.predict_arrays(X, k=1)
    hits = [model.label_names[id] in labels for id, labels in zip(ids[:, 0], TEST.Y, strict=True) if labels]
    assert np.mean(hits) > 0.95


def test_labels_without_examples_come_last_with_probability_zero(
    train: Train, point: Point, X: Any, tmp_path: Path
) -> None:
    absent = [3, 10]
    Y = np.concatenate([TRAIN.indicator, np.zeros((len(TRAIN.Y), 1), np.int8)], axis=1)
    Y[:, absent] = 0
    parameters: dict[str, Any] = {}
    if point.tree == FROM_FILE:
        path = tmp_path / "tree"
        write_tree(path, LabelTree([-1] + [0] * 13, [-1, *range(13)]), [str(label) for label in range(13)])
        parameters["tree"] = str(path)
    model = train(Y=Y, **parameters)
    ids, probabilities = model.predict_arrays(X, k=13)
    if not lists_labels(point):  # else others may be 0 too
        assert np.all(np.sort(ids[:, 10:], axis=1) == [3, 10, 12])
    assert np.all(probabilities[:, 10:] == 0)
    assert np.all(probabilities[:, :10] > 0) or lists_labels(point)
    assert np.all(model.probability(X, ["3", "10", "12"]) == 0)
    assert not np.isin(model.predict_rows(X, 1e-6).indices, [3, 10, 12]).any()
    assert model.inspect()["n_labels_without_examples"] == 3


def test_explanations_are_exact(model: Model, point: Point, X: Any) -> None:
    """Shares sum to what the probability changes by when all that a row has is deleted."""
    at_empty = model.probability(empty_rows(point.features), LABELS)[0].astype(np.float64)
    for row in range(8):
        one = take_rows(X, [row])
        own = model.probability(one, LABELS)[0].astype(np.float64)
        for label, p, p0 in zip(model.explain(one, LABELS).labels, own, at_empty, strict=True):
            np.testing.assert_allclose([label.probability, label.at_empty], [p, p0], rtol=2e-5, atol=1e-7)
            expected = math.log(p / p0) if label.unit == "log-probability" else p - p0
            assert label.total == pytest.approx(expected, abs=1e-5), (row, label.label)
            assert sum(term.share for term in label.terms) + label.rest == pytest.approx(
                label.total, abs=1e-9
            )
            weighted = [part.weight * part.probability for part in label.parts]
            assert model.combination.probability_of(sum(weighted)) == pytest.approx(label.probability)


def test_the_path_of_a_label_has_its_probability(model: Model, X: Any) -> None:
    one = take_rows(X, [0])
    label = model.explain(one, k=1).labels[0]
    for part in label.parts:
        for node in part.path:
            change = math.log(node.probability / node.at_empty)
            assert sum(term.share for term in node.terms) == pytest.approx(change, abs=1e-9)
        assert not part.path or part.path[-1].labels == (label.label,)
    why = model.why_not(one, label.label)
    assert why.probability == label.probability
    assert (why.lost_at is None) == (not model.config.trees)
    card = model.label(label.label)
    assert card.n_rows == model.label_counts[model.label_names.index(label.label)]
    assert bool(card.words) == bool(model.config.trees)


BAD_CALLS: dict[str, tuple[type[LabelTreeError], Callable[[Model, Any], Any]]] = {
    "a string": (DataError, lambda model, X: model.predict("word1 word2")),
    "k of 0": (ParameterError, lambda model, X: model.predict(X, k=0)),
    "k of a half": (ParameterError, lambda model, X: model.predict(X, k=0.5)),
    "k without limit": (ParameterError, lambda model, X: model.predict(X, k=None)),
    "threshold of 2": (ParameterError, lambda model, X: model.predict(X, threshold=2.0)),
    "threshold of nan": (ParameterError, lambda model, X: model.predict_rows(X, float("nan"))),
    "threads of -1": (ParameterError, lambda model, X: model.predict_arrays(X, threads=-1)),
    "unknown label": (DataError, lambda model, X: model.probability(X, ["no such topic"])),
    "label as string": (DataError, lambda model, X: model.probability(X, "topic-1")),
    "explaining two rows": (DataError, lambda model, X: model.explain(take_rows(X, [0, 1]))),
    "explaining no row": (DataError, lambda model, X: model.explain(take_rows(X, []))),
    "explaining what is no label": (DataError, lambda model, X: model.why_not(take_rows(X, [0]), "topik-1")),
    "explaining no labels": (ParameterError, lambda model, X: model.explain(take_rows(X, [0]), k=0)),
    "None": (DataError, lambda model, X: model.predict(None)),
    "a number": (DataError, lambda model, X: model.predict(3)),
    "wrong width": (DataError, lambda model, X: model.predict(X_OF_WIDTH_3)),
    "list with None": (DataError, lambda model, X: model.predict(["word1", None])),
}
X_OF_WIDTH_3 = SparseRows(np.arange(2), np.zeros(1, np.int32), np.ones(1, np.float32), 3)


def test_bad_calls_are_named(model: Model, X: Any) -> None:
    for case, (error, call) in BAD_CALLS.items():
        with pytest.raises(error) as caught:
            call(model, X)
        assert len(str(caught.value)) > 15, case
