"""Masks: the best of the allowed labels, exactly, whatever the experts, the search and the mask's form."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.searches import ZERO, Case, cases
from support.small_data import N_LABELS, make_toy, write_fasttext

import labeltree
from labeltree import cli
from labeltree.errors import DataError, ParameterError
from labeltree.experts.masks import LabelMask
from labeltree.features.strings import StringTable
from labeltree.model import Model
from labeltree.query import Query, query_all
from labeltree.reference import search as reference

TRAIN, TEST = make_toy(300), make_toy(40, seed=4)
TREE = dict(arity=2, max_leaves=3)
MODELS: dict[str, dict[str, Any]] = {
    "one tree": dict(neighbours=0, calibrate=False, **TREE),
    "tree and neighbours": dict(neighbours=5, **TREE),
    "three trees": dict(trees=3, neighbours=5, **TREE),
    "both kinds": dict(nodes="both", dim=8, epochs=2, **TREE),
    "hsm": dict(link="hsm", neighbours=0, **TREE),
    "dense": dict(nodes="dense", dim=8, epochs=2, neighbours=0, **TREE),
    "neighbours": dict(trees=0, neighbours=5),
    "forest": dict(trees=0, neighbours=0, forest=3),
    "all": dict(trees=2, neighbours=5, forest=3, **TREE),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS[request.param])


def expected(model: Model, texts: list[str], allowed: list[list[str]], k: int, least: float = 0.0) -> Any:
    """By the probabilities of all labels."""
    names = model.label_names
    probabilities = model.probability(texts, names)
    found = []
    for row, labels in zip(probabilities, allowed, strict=True):
        ids, values = reference.top_k(row, k, least, sorted(map(names.index, labels)))
        found.append([(names[id], value) for id, value in zip(ids, values, strict=True) if id >= 0])
    return found


def assert_same(found: Any, wanted: Any) -> None:
    """Dense nodes are summed in another order when they are asked for one by one."""
    assert len(found) == len(wanted)
    for row, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose([p for _, p in row], [p for _, p in other], rtol=1e-5, atol=1e-7)
        least = 1.001 * other[-1][1] if other else 0.0
        assert {label for label, _ in row} >= {label for label, p in other if p > least}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_allowed", [1, 4, 11])
def test_the_best_allowed_labels(model: Model, n_allowed: int, seed: int) -> None:
    allowed = np.random.default_rng(seed).permutation(model.label_names)[:n_allowed].tolist()
    without = sorted({*model.label_names} - {*allowed})
    of_rows = [allowed] * len(TEST.texts)
    for k in (1, 3, 20):
        wanted = expected(model, TEST.texts, of_rows, k)
        found = model.predict(TEST.texts, k, allowed=allowed)
        assert {label for row in found for label, _ in row} <= {*allowed}
        assert_same(found, wanted)
        assert model.predict(TEST.texts, k, without=without) == found
        assert_same(model.predict(TEST.texts, k, allowed=of_rows), wanted)
        assert_same(model.predict(TEST.texts, k, allowed=allowed, search="beam", beam=50), wanted)
        assert_same(model.predict(TEST.texts[:1], k, allowed=allowed), wanted[:1])
    wanted = expected(model, TEST.texts, of_rows, N_LABELS, 0.1)
    assert_same(model.predict(TEST.texts, None, threshold=0.1, allowed=allowed), wanted)
    assert_same(model.predict(TEST.texts, None, threshold=0.1, allowed=of_rows), wanted)
    assert_same(model.predict(TEST.texts, 20, threshold=0.1, allowed=allowed), wanted)


def test_each_row_has_its_own_labels(model: Model) -> None:
    random, names = np.random.default_rng(0), np.array(model.label_names)
    allowed = [random.permutation(names)[: random.integers(0, 5)].tolist() for _ in TEST.texts]
    assert_same(model.predict(TEST.texts, 3, allowed=allowed), expected(model, TEST.texts, allowed, 3))
    left = [[label for label in row if label != "topic-0"] for row in allowed]
    found = model.predict(TEST.texts, 3, allowed=allowed, without=["topic-0"])
    assert_same(found, expected(model, TEST.texts, left, 3))


def test_iterators_and_tests(model: Model) -> None:
    names = ["topic-1", "topic-2"]
    assert model.predict(TEST.texts, 2, allowed=iter(names)) == model.predict(TEST.texts, 2, allowed=names)
    scores = model.test(TEST.texts, TEST.Y, allowed=[names] * len(TEST.texts))
    assert scores["p@1"] == pytest.approx(model.test(TEST.texts, TEST.Y, allowed=names)["p@1"])
    assert scores["micro-f1"] == pytest.approx(model.test(TEST.texts, TEST.Y, allowed=names)["micro-f1"])
    with pytest.raises(DataError, match=f"lists for 1 rows, but X has {len(TEST.texts)}"):
        model.test(TEST.texts, TEST.Y, allowed=[names])


def test_arrays_have_k_columns(model: Model) -> None:
    ids, probabilities = model.predict_arrays(TEST.texts, 5, allowed=["topic-1", "topic-2"])
    assert ids.shape == probabilities.shape == (40, 5)
    assert {*ids.ravel().tolist()} <= {-1, *(model.label_names.index(f"topic-{n}") for n in (1, 2))}
    assert (ids[:, 2:] == -1).all()
    ids, _ = model.predict_arrays(TEST.texts, 2, allowed=[[]] * 40)
    assert (ids == -1).all()


def test_a_mask_is_used_again(model: Model) -> None:
    mask = model.mask(allowed=["topic-1", "topic-2", "topic-3"], without=["topic-3"])
    assert repr(mask) == "<labeltree mask: 2 of 12 labels>"
    wanted = model.predict(TEST.texts, 2, allowed=["topic-1", "topic-2"])
    for _ in range(2):
        assert model.predict(TEST.texts, 2, allowed=mask) == wanted
    rows = model.predict_rows(TEST.texts, 0.2, allowed=mask)
    assert {*rows.indices.tolist()} <= {*np.flatnonzero(mask.allowed).tolist()}
    threaded = [model.predict_arrays(TEST.texts * 20, 2, allowed=mask, threads=n) for n in (1, 2)]
    np.testing.assert_array_equal(threaded[0][0], threaded[1][0])


@settings(max_examples=100)
@given(cases(), st.data())
def test_trees_agree_with_the_reference(case: Case, data: st.DataObject) -> None:
    """Any shape of tree, any kind of nodes, both links: exactly, above a threshold, and by a beam."""
    n_labels = case.tree.n_labels
    chosen = data.draw(st.sets(st.integers(0, n_labels - 1), min_size=1))
    k, beam = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    allowed = np.zeros(n_labels, np.bool_)
    allowed[list(chosen)] = True
    search = case.search.restricted(allowed)
    n_rows = len(case.features)
    ids, probabilities = np.empty((n_rows, k), np.int32), np.empty((n_rows, k), np.float32)
    is_exact = search.topk(case.arrays, Query(k, ZERO), ids, probabilities)
    assert is_exact.all()
    for row in range(n_rows):
        marginals = case.marginals(row)
        _, values = reference.top_k(marginals, k, 0.0, chosen)
        np.testing.assert_allclose(probabilities[row], values, **case.close)
        assert {*ids[row].tolist()} <= chosen | {-1}
        assert np.count_nonzero(ids[row] >= 0) == min(k, len(chosen))
    lengths, found, values_above = search.above(case.arrays, query_all(0.1))
    starts = np.cumsum(lengths) - lengths
    for row in range(n_rows):
        part = slice(starts[row], starts[row] + lengths[row])
        marginals = case.marginals(row)
        sure = {label for label in chosen if marginals[label] > 0.1001}
        assert sure <= {*found[part].tolist()} <= chosen
        assert (values_above[part] >= np.float32(0.1)).all()
    search.topk(case.arrays, Query(k, ZERO, beam=beam), ids, probabilities)
    for row in range(n_rows):
        conditionals = reference.log_conditionals(
            case.tree, case.parameters, case.features[row], link=case.link
        )
        met = reference.beam_search(case.tree, conditionals, k, beam, chosen)
        logs = np.log([max(p, 1e-300) for _, p in met])
        wanted = reference.probabilities_of(case.parameters, logs)
        n = np.count_nonzero(ids[row] >= 0)
        assert n <= min(k, len(chosen))
        if n == len(met):
            np.testing.assert_allclose(probabilities[row, :n], wanted, rtol=1e-2, atol=1e-4)


def test_nodes_without_allowed_labels_are_left_out() -> None:
    case_tree = labeltree.LabelTree.from_parents([-1, 0, 0, 1, 1, 2, 2], [-1, -1, -1, 0, 1, 2, 3])
    most = case_tree.most_below(np.array([False, False, True, False]))
    assert most.tolist() == [True, False, True, False, False, True, False]
    assert case_tree.most_below(np.array([1.0, 5.0, 2.0, 3.0])).tolist() == [5, 5, 3, 1, 5, 2, 3]


def mask_of(labels: str) -> LabelMask:
    return LabelMask(np.ones(len(labels), np.bool_), StringTable.from_strings([*labels]))


def test_a_mask_is_of_its_models_labels() -> None:
    """Other models of the same labels in the same order may use it, even at the same time."""
    own, same, turned = (
        labeltree.train(TRAIN.texts[::step], TRAIN.Y[::step], **MODELS["one tree"]) for step in (1, 1, -1)
    )
    assert turned.label_names != own.label_names
    mask, wanted = own.mask(allowed=["topic-1"]), own.predict(TEST.texts, allowed=["topic-1"])
    assert own.predict(TEST.texts, allowed=mask) == same.predict(TEST.texts, allowed=mask) == wanted
    assert own.mask(allowed=mask) is mask
    for ask in (turned.predict, turned.predict_arrays, lambda _, allowed: turned.mask(allowed)):
        with pytest.raises(ParameterError, match="the mask is of another model"):
            ask(TEST.texts, allowed=mask)


def test_threads_with_other_models_do_not_mix() -> None:
    class Slow(LabelMask):
        def __setattr__(self, name: str, value: Any) -> None:
            """Another thread goes on after each change."""
            super().__setattr__(name, value)
            time.sleep(0)

    class Whole:
        def restricted(self, _: Any) -> Any:
            return self  # so that what comes out tells what went in

    mask = Slow(np.ones(1, np.bool_), StringTable.from_strings(["a"]))
    wrong, begin = [0, 0], threading.Barrier(2)

    def ask(number: int) -> None:
        own: Any = Whole()
        begin.wait()
        wrong[number] = sum(mask.restrict(own) is not own for _ in range(2_000))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0, 0]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (dict(allowed=["topic-1", "nobody"]), "12 labels; find_labels, or labeltree labels MODEL --search"),
        (dict(without=["nobody"]), "without: label 'nobody' is not"),
        (dict(allowed=[["topic-1"], ["nobody"]]), "label 'nobody' is not among"),
        (dict(allowed="topic-1"), "allowed must be a list of labels, but is 'topic-1'"),
        (dict(without="topic-1"), "without must be a list"),
        (dict(allowed=[]), "allowed is an empty list"),
        (dict(allowed=iter(())), "allowed is an empty list"),
        (dict(allowed=["topic-1"], without=["topic-1"]), "the mask allows no label"),
        (dict(allowed=[["topic-1"], "topic-1"]), "allowed, row 1: 'topic-1' is not a list"),
        (dict(allowed=[["topic-1"]]), "allowed has lists for 1 rows, but X has 40"),
        (dict(allowed=mask_of("abc")), "the mask is for 3 labels, but the model has 12"),
        (dict(allowed=mask_of("abcdefghijkl")), "the mask is of another model"),
        (dict(allowed=mask_of("abcdefghijkl"), without=["topic-1"]), "without has no effect"),
    ],
)
def test_wrong_masks_are_refused(how: dict[str, Any], message: str) -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS["one tree"])
    with pytest.raises((DataError, ParameterError), match=message):
        model.predict(TEST.texts, 3, **how)
    with pytest.raises(ParameterError, match="not a list for each row"):
        model.mask(allowed=[["topic-1"]])


def test_files_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS["one tree"])
    path, data, only, out = (tmp_path / name for name in ("m", "test.txt", "only.txt", "without.txt"))
    model.save(path)
    data.write_text(write_fasttext(TEST))
    only.write_text("topic-1\n\ntopic-2\r\ntopic-3\n")
    out.write_text("topic-3")
    asked = ["--only", str(only), "--without", str(out)]
    assert cli.main(["predict", str(path), str(data), "-k", "3", *asked]) == 0
    found = [line.split("\t")[::2] for line in capsys.readouterr().out.splitlines()]
    texts = [
        " ".join(w for w in line.split() if not w.startswith("__")) for line in data.read_text().splitlines()
    ]
    wanted = model.predict(texts, 3, allowed=["topic-1", "topic-2"])
    assert found == [[label for label, _ in row] for row in wanted]
    assert cli.main(["test", str(path), str(data), "--json", *asked]) == 0
    assert f'"p@1": {model.test(data, allowed=["topic-1", "topic-2"])["p@1"]}' in capsys.readouterr().out
    for text, message in (
        ("topic-1\nnobody\n", "only.txt, line 2: 'nobody' is not among"),
        ("\n", "no label is left"),
    ):
        only.write_text(text)
        assert cli.main(["predict", str(path), str(data), "--only", str(only)]) in (1, 2)
        assert message in capsys.readouterr().err
    assert cli.main(["predict", str(path), str(data), "--only", str(tmp_path / "none")]) == 1


def test_labels_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS["one tree"])
    path, data, labels = (tmp_path / name for name in ("m", "test.txt", "labels.txt"))
    model.save(path)
    data.write_text(write_fasttext(TEST))
    labels.write_text("topic-1\ntopic-2\n")

    def run(*arguments: str, pipe: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pipe.encode())))
        code = cli.main([arguments[0], str(path), *arguments[1:]])
        return code, *capsys.readouterr()

    for command in ("predict", "test"):
        for mask in ("--only", "--without"):
            piped = run(command, str(data), mask, "-", pipe=labels.read_text())
            assert piped == run(command, str(data), mask, str(labels))
            assert piped[0] == 0
            code, _, said = run(command, "-", mask, "-")
            assert (code, f"standard input (-) is given for the data and {mask}" in said) == (2, True)
    assert run("predict", "--only", "-")[0] == 2  # rows come from there, too, where no file is named
    assert "for --only and --without" in run("predict", str(data), "--only", "-", "--without", "-")[2]
    assert "standard input, line 1: 'x' is not" in run("predict", str(data), "--only", "-", pipe="x")[2]


ODD = ("back\\tslash", "a\ttab", "two\nlines", "end\r", "\x1b[31mred", "\u202eturned", "plain")


def test_labels_are_given_as_they_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [f"word{i % len(ODD)} word" for i in range(70)]
    model = labeltree.train(texts, [[ODD[i % len(ODD)]] for i in range(70)], **MODELS["one tree"])
    path, data, only = (tmp_path / name for name in ("m", "test.txt", "only.txt"))
    model.save(path)
    data.write_text("word1\n")
    assert cli.main(["labels", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    names = {line.split("\t")[0] for line in printed.splitlines()}
    assert len(names) == len(ODD)
    for name in names:
        only.write_text(f"{name}\n")
        assert cli.main(["predict", str(path), str(data), "--only", str(only)]) == 0
        assert capsys.readouterr().out.split("\t")[0] == name
    only.write_text("back\\tslash\n")  # a label as it is: first of all it is that one
    assert cli.main(["predict", str(path), str(data), "--only", str(only), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"][0]["label"] == "back\\tslash"
