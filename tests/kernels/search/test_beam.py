"""Beam search against its slow twin and exact search, in every place that offers it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.searches import (
    N_FEATURES,
    ZERO,
    Case,
    Trees,
    cases,
    ensembles,
    linked,
    links,
    make_model,
    random_rows,
    tied_cases,
)
from support.strategies import (
    chain_tree,
    feature_dicts,
    random_parameters,
    random_sparse,
    sparse_rows,
    with_link,
)

import labeltree
from labeltree import LabelTree, cli
from labeltree.cli import commands
from labeltree.cli.compare import compare_searches
from labeltree.data.rows import LabelRows
from labeltree.errors import ParameterError
from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.query import NO_BEAM, Query
from labeltree.reference import search as reference
from labeltree.trees.shapes import build_complete

Found = tuple[NDArray[np.int32], NDArray[np.float32]]
CLOSE = dict(rtol=1e-4, atol=1e-6)
BINARY_TREE: dict[str, Any] = dict(arity=2, max_leaves=2, neighbours=0)  # alone: beam 1 misses most labels
ks, beams = st.sampled_from([1, 2, 5, 200]), st.sampled_from([1, 2, 3, 7])


def search(case: Case, k: int, beam: int, *, threshold: np.float32 = ZERO, normalize: bool = False) -> Found:
    ids = np.full((len(case.features), k), -7, np.int32)
    probabilities = np.full((len(case.features), k), np.nan, np.float32)
    case.search.topk(case.arrays, Query(k, threshold, normalize, beam), ids, probabilities)
    return ids, probabilities


def conditionals_of(case: Case, row: int, normalize: bool = False) -> NDArray[np.float64]:
    return reference.log_conditionals(case.tree, case.parameters, case.features[row], normalize, case.link)


def probabilities_of(case: Case, found: list[tuple[int, float]]) -> list[float]:
    """What the twin's probabilities of paths mean for their labels."""
    with np.errstate(divide="ignore"):
        return reference.probabilities_of(case.parameters, np.log([path for _, path in found])).tolist()


def is_clear(tree: LabelTree, conditionals: NDArray[np.float64], beam: int) -> bool:
    """Whether at each level rounding cannot change which nodes are the best."""
    level = {0: conditionals[0]}
    while level:
        inner = sorted((-log, node) for node, log in level.items() if tree.n_children[node])
        if len(inner) > beam:
            last, next_ = inner[beam - 1][0], inner[beam][0]
            if last != next_ and next_ - last < 1e-3 * max(1.0, last):
                return False
        level = {}
        for cost, node in inner[:beam]:
            first = int(tree.first_child[node])
            for child in range(first, first + int(tree.n_children[node])):
                level[child] = conditionals[child] - cost
    return True


@settings(max_examples=150)
@given(case=cases(), k=ks, beam=beams, normalize=st.booleans())
def test_it_finds_what_the_twin_finds(case: Case, k: int, beam: int, normalize: bool) -> None:
    ids, probabilities = search(case, k, beam, normalize=normalize)
    for row in range(len(case.features)):
        conditionals = conditionals_of(case, row, normalize)
        assume(is_clear(case.tree, conditionals, beam))
        twin = reference.beam_search(case.tree, conditionals, case.tree.n_labels, beam)
        met = dict(zip([label for label, _ in twin], probabilities_of(case, twin), strict=True))
        n_found = min(k, len(met))
        found = ids[row, :n_found].tolist()
        assert len(set(found)) == n_found
        close = case.close
        np.testing.assert_allclose(probabilities[row, :n_found], [met[label] for label in found], **close)
        np.testing.assert_allclose(probabilities[row, :n_found], list(met.values())[:n_found], **close)
        assert (ids[row, n_found:] == -1).all()
        assert not probabilities[row, n_found:].any()


@settings(max_examples=150)
@given(case=tied_cases(), k=ks, beam=beams)
def test_ties_go_to_the_lower_node_and_label(case: Case, k: int, beam: int) -> None:
    ids, probabilities = search(case, k, beam)
    for row in range(len(case.features)):
        expected = reference.beam_search(case.tree, conditionals_of(case, row), k, beam)
        n_found = len(expected)
        assert ids[row].tolist() == [label for label, _ in expected] + [-1] * (k - n_found)
        np.testing.assert_allclose(probabilities[row, :n_found], probabilities_of(case, expected), rtol=4e-6)


@settings(max_examples=100)
@given(case=st.one_of(cases(), tied_cases()), k=ks, normalize=st.booleans())
def test_a_wide_beam_is_exact(case: Case, k: int, normalize: bool) -> None:
    ids, probabilities = search(case, k, case.tree.n_nodes, normalize=normalize)
    exact_ids, exact = search(case, k, 0, normalize=normalize)
    np.testing.assert_array_equal(ids, exact_ids)
    np.testing.assert_allclose(probabilities, exact, rtol=1e-6)


@settings(max_examples=80)
@given(case=st.one_of(cases(), tied_cases()), beam=beams, threshold=st.sampled_from([1e-30, 0.05, 0.5, 1.0]))
def test_a_threshold_only_cuts_the_answer(case: Case, beam: int, threshold: float) -> None:
    ids, probabilities = search(case, 6, beam, threshold=np.float32(threshold))
    all_ids, all_probabilities = search(case, 6, beam)
    keep = all_probabilities >= np.float32(threshold)
    np.testing.assert_array_equal(ids, np.where(keep, all_ids, -1))
    np.testing.assert_array_equal(probabilities, np.where(keep, all_probabilities, 0.0))


def many_rows(is_sparse: bool = False, link: str = "plt", n_labels: int = 300, n_rows: int = 600) -> Case:
    """More rows than a group, and more nodes than a beam."""
    tree = build_complete(np.ones(n_labels, np.int64), 4)
    parameters: reference.Parameters = random_parameters(tree, N_FEATURES, 8, seed=1, scale=0.7)
    if is_sparse:
        parameters = random_sparse(tree, N_FEATURES, seed=1, calibration=(0.8, 1.2, 0.3))
    return Case(tree, with_link(parameters, link), random_rows(n_rows, seed=2), link)


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("beam", [1, 6, 5000])
def test_a_row_alone_in_a_batch_and_among_threads(beam: int, is_sparse: bool, link: str) -> None:
    case = many_rows(is_sparse, link)
    ids, probabilities = search(case, 4, beam)
    for row in range(0, len(case.features), 7):
        alone_ids, alone = search(case._replace(features=[case.features[row]]), 4, beam)
        assert alone_ids[0].tobytes() == ids[row].tobytes()
        assert alone[0].tobytes() == probabilities[row].tobytes()
    model = make_model([(case.tree, case.parameters)], link)
    X = sparse_rows(case.features, N_FEATURES)
    for threads in (1, 2, 5):
        found = model.predict_arrays(X, 4, search="beam", beam=beam, threads=threads)
        assert np.array_equal(found[0], ids)
        assert np.array_equal(found[1], probabilities)


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_wider_beams_miss_less(is_sparse: bool, link: str) -> None:
    case = many_rows(is_sparse, link)
    exact, _ = search(case, 5, 0)
    shares = [np.mean(search(case, 5, beam)[0] == exact) for beam in (1, 2, 8, 75)]
    assert shares[0] < 0.9
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def two_branches() -> tuple[LabelTree, DenseParameters]:
    """Labels 0 and 1 (0.3 each) below the better of two nodes, 2 (0.5) below the other, 3 (0.1) a leaf."""
    tree = LabelTree.from_parents(np.array([-1, 0, 0, 0, 1, 1, 2, 2]), np.array([-1, -1, -1, 3, 0, 1, 2, 4]))
    probabilities = np.empty(tree.n_nodes)
    probabilities[0] = 1.0
    probabilities[tree.leaf_of_label] = [0.5, 0.5, 1.0, 0.1, 0.01]
    probabilities[tree.parent[tree.leaf_of_label[[0, 2]]]] = [0.6, 0.5]
    with np.errstate(divide="ignore"):
        bias = (np.log(probabilities) - np.log1p(-probabilities)).astype(np.float32)
    zeros = np.zeros((tree.n_nodes, 1), np.float32)
    return tree, DenseParameters(np.zeros((N_FEATURES, 1), np.float32), zeros, bias)


def test_a_beam_of_one_follows_the_better_branch() -> None:
    """The leaf below the root takes no place of the beam, and only labels that were met are returned."""
    case = Case(*two_branches(), [{}])
    ids, probabilities = search(case, 4, 1)
    assert ids.tolist() == [[0, 1, 3, -1]]
    np.testing.assert_allclose(probabilities, [[0.3, 0.3, 0.1, 0.0]], rtol=1e-6)
    assert search(case, 4, 2)[0].tolist() == [[2, 0, 1, 3]]


def test_deep_trees_and_no_rows() -> None:
    tree = chain_tree(60)
    case = Case(tree, random_parameters(tree, N_FEATURES, 3, seed=0, scale=2.0), random_rows(5))
    np.testing.assert_array_equal(search(case, 60, 1)[0], search(case, 60, 0)[0])
    assert search(Case(case.tree, case.parameters, []), 3, 2)[0].shape == (0, 3)


# Models


@settings(max_examples=80)
@given(
    trees=ensembles(),
    rows=feature_dicts(N_FEATURES, 2),
    k=st.sampled_from([1, 3, 20]),
    beam=beams,
    normalize=st.booleans(),
    link=links,
)
def test_ensembles(
    trees: Trees, rows: list[dict[int, float]], k: int, beam: int, normalize: bool, link: str
) -> None:
    """What a narrow beam finds has its true average; a wide one finds the exact answer."""
    model, X = make_model(linked(trees, link), link), sparse_rows(rows, N_FEATURES)
    exact_ids, exact = model.predict_arrays(X, k, normalize=normalize)
    marginals = model.probability(X, model.label_names, normalize=normalize)
    ids, probabilities = model.predict_arrays(X, k, normalize=normalize, search="beam", beam=beam)
    for row in range(len(rows)):
        n_found = int(np.count_nonzero(ids[row] >= 0))
        assert 1 <= n_found <= min(k, model.n_labels)
        assert (ids[row, n_found:] == -1).all()
        assert not probabilities[row, n_found:].any()
        assert len(set(ids[row, :n_found].tolist())) == n_found
        assert (np.diff(probabilities[row]) <= 0).all()
        np.testing.assert_allclose(probabilities[row, :n_found], marginals[row, ids[row, :n_found]], **CLOSE)
        assert (probabilities[row] <= exact[row] + 1e-6).all()
    wide_ids, wide = model.predict_arrays(X, k, normalize=normalize, search="beam", beam=10**12)
    np.testing.assert_array_equal(wide_ids, exact_ids)
    np.testing.assert_allclose(wide, exact, rtol=1e-6)


def test_rows_of_an_ensemble_do_not_depend_on_the_others() -> None:
    tree = build_complete(np.ones(200, np.int64), 4)
    trees = [(tree, random_parameters(tree, N_FEATURES, 4, seed, scale=0.7)) for seed in range(3)]
    model, rows = make_model(trees), random_rows(40)
    ids, probabilities = model.predict_arrays(sparse_rows(rows, N_FEATURES), 3, search="beam", beam=2)
    for row in range(len(rows)):
        alone = model.predict_arrays(sparse_rows([rows[row]], N_FEATURES), 3, search="beam", beam=2)
        assert alone[0][0].tobytes() == ids[row].tobytes()
        assert alone[1][0].tobytes() == probabilities[row].tobytes()


def test_predict_returns_only_labels_that_were_found() -> None:
    model, X = make_model([two_branches()]), sparse_rows([{}], N_FEATURES)
    (found,) = model.predict(X, 5, search="beam", beam=1)
    assert [label for label, _ in found] == ["label0", "label1", "label3"]
    assert model.predict(X, 1, search="beam", beam=np.int64(2)) == model.predict(X, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"search": "breadth"}, "search must be one of auto, exact, beam, but is 'breadth'"),
        ({"search": None}, "but is None"),
        ({"search": "beam", "beam": 0}, "beam must be at least 1, but is 0"),
        ({"search": "exact", "beam": -3}, "beam must be at least 1, but is -3"),
        ({"beam": 10}, "beam=10 has no effect where search is auto: it needs search=beam"),
        ({"search": "beam", "beam": 2.5}, "but is 2.5"),
        ({"search": "beam", "beam": True}, "but is True"),
        ({"search": "beam", "k": None, "threshold": 0.1}, "search beam cannot find them"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    model, X = make_model([two_branches()]), sparse_rows([{}], N_FEATURES)
    with pytest.raises(ParameterError, match=message):
        model.predict(X, **arguments)


def test_the_comparison_counts_what_is_missed() -> None:
    model, X = make_model([two_branches()]), sparse_rows([{}, {1: 1.0}], N_FEATURES)
    labels = LabelRows(np.array([0, 1, 1]), np.array([2], np.int32), 5)
    exact, auto, narrow, wide = compare_searches(model, X, labels, (1, 3), (1, 2))
    assert (exact.beam, auto.beam, narrow.beam, wide.beam) == (NO_BEAM, NO_BEAM, 1, 2)
    assert [each.title for each in (exact, auto, narrow)] == ["exact", "auto", "beam 1"]
    assert [each.rows_proven for each in (exact, auto, narrow, wide)] == [1.0, 1.0, 0.0, 1.0]
    assert auto.precision == exact.precision
    assert exact.precision == wide.precision == {"p@1": 0.5, "p@3": pytest.approx(1 / 6)}
    assert narrow.precision == {"p@1": 0.0, "p@3": 0.0}
    assert (narrow.rows_that_differ, narrow.labels_missed) == (1.0, pytest.approx(1 / 3))
    assert (wide.rows_that_differ, wide.labels_missed) == (0.0, 0.0)
    assert (narrow.missed_rows.tolist(), narrow.missed_ids.tolist()) == ([0, 1], [2, 2])
    assert narrow.microseconds_per_row > 0


# The estimator and the command line


def test_the_estimator_searches_so(small_texts: tuple[list[str], list[list[str]]]) -> None:
    texts, labels = small_texts
    fitted = labeltree.LabelTreeClassifier(**BINARY_TREE, k=8).fit(texts, labels)
    exact = fitted.predict_topk(texts)
    fitted.set_params(search="beam", beam=1)
    narrow = fitted.predict_topk(texts)
    assert all(0 < len(row) < 8 for row in narrow)
    assert (fitted.predict_proba(texts).getnnz(axis=1) < 8).all()
    fitted.set_params(beam=100)
    assert fitted.predict_topk(texts) == exact
    fitted.set_params(beam=0)
    with pytest.raises(ParameterError, match="beam"):
        fitted.predict_topk(texts)


@pytest.fixture(scope="module")
def small_texts() -> tuple[list[str], list[list[str]]]:
    labels = [[f"topic{i % 8}", f"topic{(i // 8) % 8}"] for i in range(64)]
    return [" ".join(f"word of {label}" for label in row) for row in labels], [sorted(set(r)) for r in labels]


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory, small_texts: tuple[list[str], list[list[str]]]
) -> tuple[str, str]:
    """A model and its data; beam 1 reaches at most two of the eight labels."""
    folder: Path = tmp_path_factory.mktemp("beam")
    texts, labels = small_texts
    lines = [
        " ".join(f"__label__{label}" for label in row) + f" {text}\n"
        for text, row in zip(texts, labels, strict=True)
    ]
    (folder / "data.txt").write_text("".join(lines))
    model = labeltree.train(str(folder / "data.txt"), **BINARY_TREE)
    model.save(folder / "small.labeltree")
    return str(folder / "small.labeltree"), str(folder / "data.txt")


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capsys.readouterr()
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


def test_predict_and_test(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    exact = output_of(capsys, "predict", *files, "-k", "5")
    assert output_of(capsys, "predict", *files, "-k", "5", "--search", "beam") == exact
    narrow = output_of(capsys, "predict", *files, "-k", "5", "--search", "beam", "--beam", "1")
    assert {len(line.split("\t")) for line in exact} == {10}
    assert max(len(line.split("\t")) for line in narrow) < 10
    in_json = output_of(capsys, "predict", *files, "--json", "--search", "beam", "--beam", "1")
    assert not any(json.loads(line)["exact"] for line in in_json)
    assert not any("exact" in json.loads(line) for line in output_of(capsys, "predict", *files, "--json"))
    scores = [
        json.loads(output_of(capsys, "test", *files, "--json", *how)[-1])
        for how in ((), ("--search", "beam", "--beam", "99"), ("--search", "beam", "--beam", "1"))
    ]
    assert scores[0]["p@3"] == scores[1]["p@3"] > scores[2]["p@3"]


def test_compare_search(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = output_of(capsys, "compare-search", *files)
    assert header.split()[:5] == ["search", "P@1", "P@3", "P@5", "µs/row"]
    assert [line.split("  ")[0] for line in lines] == [
        "exact",
        "auto",
        *(f"beam {n}" for n in (1, 2, 5, 10, 20, 50)),
    ]
    table = tmp_path / "missed.tsv"
    arguments = ["compare-search", *files, "--beam", "1,50", "-k", "3", "--missed", str(table)]
    facts = json.loads(output_of(capsys, *arguments, "--json")[-1])
    assert (facts["examples"], facts["k"]) == (64, 3)
    exact, auto, narrow, wide = facts["searches"]
    assert (exact["search"], auto["search"], narrow["beam"], wide["beam"]) == ("exact", "auto", 1, 50)
    assert exact["rows_proven"] == auto["rows_proven"] == wide["rows_proven"] == 1.0 > narrow["rows_proven"]
    assert wide["rows_that_differ"] == wide["labels_missed"] == 0
    assert wide["p@3"] == exact["p@3"]
    assert narrow["rows_that_differ"] == 1.0
    assert narrow["microseconds_per_row"] > 0
    titles, *missed = [line.split("\t") for line in table.read_text().splitlines()]
    assert titles == ["beam", "row", "label"]
    assert len(missed) == round(narrow["labels_missed"] * 64 * 3)
    assert {row for _, row, _ in missed} == {str(row) for row in range(1, 65)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "--beam", "3"), "beam=3 has no effect where search is auto: it needs search=beam"),
        (("test", "--beam", "10"), "beam=10 has no effect where search is auto"),
        (("predict", "--search", "beam", "--beam", "0"), "0"),
        (("predict", "--search", "depth"), "depth"),
        (
            ("predict", "--search", "beam", "-k", "0", "--threshold", "0.1"),
            "search beam cannot find them; give a k",
        ),
        (("compare-search", "--beam", "1,x"), "1,x"),
    ],
)
def test_wrong_calls(
    arguments: tuple[str, ...], message: str, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    assert cli.main([command, *files, *options]) == commands.USAGE
    assert message in capsys.readouterr().err


def test_nothing_to_compare_on(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.txt").write_text("")
    assert cli.main(["compare-search", files[0], str(tmp_path / "empty.txt")]) == 1
    assert "no rows to compare on" in capsys.readouterr().err
