"""The driver: every way to give it data makes the same model; odd data, weights, estimates, divergence."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.small_data import (
    LABELS,
    N_FEATURES,
    N_LABELS,
    empty_rows,
    make_toy,
    with_effect,
    write_fasttext,
    write_xmlc,
)

import labeltree
from labeltree.config import Config, make_config
from labeltree.errors import DataError, ParameterError, TrainingError
from labeltree.experts.job import Progress
from labeltree.experts.tree_training import tree_seed
from labeltree.features.strings import StringTable
from labeltree.model import Model
from labeltree.training.driver import estimate, train
from labeltree.trees.file import write_tree
from labeltree.trees.profiles import label_profiles

TOY = make_toy(100)
SMALL: dict[str, Any] = dict(arity=2, max_leaves=3)
SMALL_DENSE: dict[str, Any] = SMALL | dict(nodes="dense", dim=8, epochs=3)
DENSE = np.zeros((100, N_FEATURES), np.float32)
DENSE[np.repeat(np.arange(100), np.diff(TOY.X.indptr)), TOY.X.indices] = 1


def saved(model: Model, folder: Path) -> bytes:
    path = folder / "saved.labeltree"
    model.save(path)
    return path.read_bytes()


def jsonl() -> str:
    rows = zip(TOY.texts, TOY.Y, strict=True)
    return "".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows)


def annif() -> str:
    rows = zip(TOY.texts, TOY.Y, strict=True)
    return "".join(f"{text}\t{' '.join(f'<{label}>' for label in labels)}\n" for text, labels in rows)


@pytest.mark.parametrize("name", ["train.txt", "train.jsonl", "train.tsv", "train.txt.gz"])
def test_texts_in_a_file_and_in_memory_make_the_same_model(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write = {"train.jsonl": jsonl, "train.tsv": annif}.get(name, lambda: write_fasttext(TOY))
    content = write().encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    expected = train(TOY.texts, TOY.Y, **SMALL)
    assert saved(train(path, **SMALL), tmp_path) == saved(expected, tmp_path)
    assert saved(train(str(path), **SMALL), tmp_path) == saved(expected, tmp_path)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_fasttext(TOY).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    model = train("-", **SMALL)
    assert saved(model, tmp_path) == saved(train(TOY.texts, TOY.Y, **SMALL), tmp_path)


def test_vectors_of_every_kind_make_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "train.xmlc"
    path.write_text(write_xmlc(TOY))
    expected = saved(train(TOY.X, TOY.indicator, **SMALL), tmp_path)
    assert saved(train(path, **SMALL), tmp_path) == expected
    for X in (DENSE, DENSE.tolist(), DENSE.astype(bool), sp.csr_matrix(DENSE), sp.coo_array(DENSE)):
        assert saved(train(X, sp.csc_matrix(TOY.indicator), **SMALL), tmp_path) == expected
    numbers = [np.flatnonzero(row) for row in TOY.indicator]
    by_lists = train(DENSE, numbers, **SMALL)  # labels numbered as they appear
    assert sorted(by_lists.label_names, key=int) == [str(label) for label in range(N_LABELS)]


@pytest.mark.parametrize("convert", [tuple, iter, np.array, lambda texts: np.array(texts, object)])
def test_texts_of_every_kind_make_the_same_model(convert: Any, tmp_path: Path) -> None:
    expected = saved(train(TOY.texts, TOY.Y, **SMALL), tmp_path)
    assert saved(train(convert(TOY.texts), TOY.Y, **SMALL), tmp_path) == expected
    assert saved(train(TOY.texts, [tuple(labels) for labels in TOY.Y], **SMALL), tmp_path) == expected


def test_label_names_name_the_columns() -> None:
    model = train(TOY.texts, TOY.indicator, label_names=LABELS, **SMALL)
    assert model.label_names == LABELS
    assert model.label_counts.tolist() == TOY.indicator.sum(axis=0).tolist()
    with pytest.raises(DataError, match="columns"):
        train(TOY.texts, TOY.indicator, label_names=LABELS[:-1], **SMALL)


def test_config_preset_and_parameters() -> None:
    config = make_config(SMALL)
    model = train(TOY.texts, TOY.Y, config=config, seed=5)
    assert model.config == make_config({**SMALL, "seed": 5})
    model = train(TOY.texts, TOY.Y, preset="paper", **SMALL_DENSE)
    assert (model.config.optimizer, model.config.dim) == ("sgd", 8)
    with pytest.raises(ParameterError, match="not both"):
        train(TOY.texts, TOY.Y, preset="paper", config=Config())


def test_labels_twice_in_a_row_count_once(tmp_path: Path) -> None:
    twice = [labels + labels[:1] for labels in TOY.Y]
    assert saved(train(TOY.texts, twice, **SMALL), tmp_path) == saved(
        train(TOY.texts, TOY.Y, **SMALL), tmp_path
    )


ODD: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "no text has a word": ([""] * 100, TOY.Y, {}),
    "no word is frequent enough": (TOY.texts, TOY.Y, {"min_count": 10_000}),
    "no columns": (np.zeros((100, 0)), TOY.Y, {}),
    "only zeros": (np.zeros((100, 3)), TOY.Y, {}),
    "one label": (TOY.texts, [["a"]] * 50 + [[]] * 50, {}),
    "one label, always": (TOY.texts, [["a"]] * 100, {}),
    "two labels, always": (TOY.texts, [["a", "b"]] * 100, {}),
    "one row": (["word"], [["a"]], {}),
    "one row of many labels": (["word"], [LABELS], {}),
    "equal rows": (["same words"] * 100, TOY.Y, {}),
    "thousands of labels without examples": (TOY.texts, np.pad(TOY.indicator, ((0, 0), (0, 3000))), {}),
    "large values": (DENSE * 1e30, TOY.Y, {}),
    "small values": (DENSE * 1e-38, TOY.Y, {}),
    "small weights": (TOY.texts, TOY.Y, {"sample_weight": np.full(100, 1e-30)}),
    "a batch larger than the data": (TOY.texts, TOY.Y, {"batch_size": 1 << 20}),
    "an arity larger than the labels": (TOY.texts, TOY.Y, {"arity": 1 << 20}),
    "one dimension": (TOY.texts, TOY.Y, {"dim": 1}),
    "strong regularisation": (TOY.texts, TOY.Y, {"l2": 1e6}),
    "labels with spaces": (TOY.texts, [[f"a b\t{label}\u00e9"] for label in range(100)], {}),
}


@pytest.mark.parametrize("nodes", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("tree", "link"),
    [(tree, "plt") for tree in ("kmeans", "huffman", "complete", "flat")]
    + [("kmeans", "hsm"), ("flat", "hsm")],
)
@pytest.mark.parametrize("case", ODD)
def test_odd_data_makes_a_model(case: str, tree: str, link: str, nodes: str, tmp_path: Path) -> None:
    X, Y, parameters = ODD[case]
    # Labels of neighbours are not picked ones: what they vote for does not sum to 1.
    neighbours = 0 if link == "hsm" else 50
    how = SMALL_DENSE | {"nodes": nodes, "tree": tree, "link": link, "trees": 2, "neighbours": neighbours}
    how |= parameters
    model = train(X, Y, **with_effect(**how))
    if link == "hsm" and X is TOY.texts:
        found = model.probability(X, model.label_names)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-4)
    ids, probabilities = model.predict_arrays(X, k=3)
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    assert np.all(ids[:, 0] >= 0)
    path = tmp_path / "odd.labeltree"
    model.save(path)
    loaded = labeltree.load(path)
    assert all(map(np.array_equal, loaded.predict_arrays(X, k=3), (ids, probabilities)))


def test_a_label_of_every_row_is_certain_and_of_no_row_impossible() -> None:
    model = train(TOY.texts, np.c_[np.ones(100), np.zeros(100), TOY.indicator[:, 0]], **SMALL)
    found = model.probability(TOY.texts, ["0", "1", "2"])
    assert np.all(found[:, 0] == 1)
    assert np.all(found[:, 1] == 0)
    assert np.all((found[:, 2] > 0) & (found[:, 2] < 1))


@pytest.mark.parametrize(
    ("n_rows", "parameters"),
    [
        (100, dict(nodes="dense", dim=8, epochs=20, lr=0.02)),
        (100, dict(nodes="sparse", loss="log", rare_weight=0.0)),  # too few rows to calibrate on
        (1000, dict(nodes="sparse", loss="log")),
        (100, dict(nodes="dense", link="hsm", dim=8, epochs=20, lr=0.02)),
        (100, dict(nodes="sparse", link="hsm", rare_weight=0.0)),
        (1000, dict(nodes="sparse", link="hsm")),
    ],
)
def test_weights_shift_probabilities(n_rows: int, parameters: dict[str, Any]) -> None:
    """Equal rows with contradicting labels: the probabilities are the shares of the weight."""
    texts, Y = ["same words"] * n_rows, [["a"], ["b"]] * (n_rows // 2)
    weight = np.tile([3.0, 1.0], n_rows // 2)
    model = train(texts, Y, sample_weight=weight, **parameters)
    found = model.probability(texts[:1], ["a", "b"])[0]
    np.testing.assert_allclose(found, [0.75, 0.25], atol=0.05)


@pytest.mark.parametrize("nodes", ["dense", "sparse"])
@pytest.mark.parametrize("link", ["plt", "hsm"])
def test_a_label_whose_rows_weigh_nothing_is_impossible(link: str, nodes: str) -> None:
    weight = 1.0 - TOY.indicator[:, 0]
    model = train(TOY.texts, TOY.Y, sample_weight=weight, **(SMALL | {"nodes": nodes, "link": link}))
    assert np.all(model.probability(TOY.texts, [LABELS[0]]) == 0)
    assert np.all(model.probability(TOY.texts, LABELS[1:]) > 0)


def test_rows_without_labels_alone_are_nothing_for_a_softmax() -> None:
    Y = np.zeros((100, 3), np.int8)
    for nodes in ("dense", "sparse"):
        with pytest.raises(DataError, match="label"):
            train(TOY.texts, Y, link="hsm", nodes=nodes)


@pytest.mark.parametrize("nodes", ["dense", "sparse", "both"])
def test_the_counterexample_of_the_paper(nodes: str) -> None:
    """Label sets {1}, {1, 2}, {3} of shares .1, .5, .4: by marginals 1 is the best, by picked labels 3 is."""
    texts, Y = ["same words"] * 400, [["1"]] * 40 + [["1", "2"]] * 200 + [["3"]] * 160
    how: dict[str, Any] = dict(nodes=nodes, dim=8, epochs=10, lr=0.02, calibrate=False, neighbours=0)
    how |= dict(loss="log", rare_weight=0.0, bias=1.0, prune=0.0, tolerance=1e-3, max_iterations=200)
    found = {
        link: train(texts, Y, **with_effect(link=link, **how)).probability(texts[:1], ["1", "2", "3"])[0]
        for link in ("plt", "hsm")
    }
    np.testing.assert_allclose(found["plt"], [0.6, 0.5, 0.4], atol=0.03)
    np.testing.assert_allclose(found["hsm"], [0.35, 0.25, 0.4], atol=0.03)
    assert found["hsm"].argmax() == 2


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_a_step_too_large_is_an_error_that_names_one_to_try(optimizer: str) -> None:
    with pytest.raises(TrainingError, match=r"epoch \d+: lr=1e\+15 .* try lr=0\.1"):
        train(TOY.texts, TOY.Y, optimizer=optimizer, batch_size=1, lr=1e15, **SMALL_DENSE)


def test_the_suggested_step_leads_to_one_that_works() -> None:
    lr = 100.0
    for _ in range(5):
        try:
            model = train(TOY.texts, TOY.Y, optimizer="sgd", batch_size=8, lr=lr, **SMALL_DENSE)
            break
        except TrainingError as error:
            lr = float(str(error).rpartition("lr=")[2])
    assert np.all(np.isfinite(model.probability(TOY.texts, LABELS)))


@pytest.mark.parametrize("row_norm", ["l2", "mean", "none"])
@pytest.mark.parametrize("tf", ["log", "count", "binary"])
def test_every_weighting_trains(tf: str, row_norm: str) -> None:
    model = train(TOY.texts, TOY.Y, tf=tf, row_norm=row_norm, idf=tf != "binary", word_ngrams=2, **SMALL)
    found = model.probability(empty_rows("text"), LABELS)
    assert np.all((found > 0) & (found < 1))


def test_the_path_of_a_tree_file_is_not_kept(tmp_path: Path) -> None:
    """Equal trees make equal files, wherever they were read from; and no path of a machine leaks out."""
    for name in ("one.tree", "two.tree"):
        model = train(TOY.texts, TOY.Y, tree="huffman", arity=2)
        write_tree(tmp_path / name, model.label_trees[0], model.label_names)
    one, two = (train(TOY.texts, TOY.Y, tree=str(tmp_path / f"{n}.tree")) for n in ("one", "two"))
    assert saved(one, tmp_path) == saved(two, tmp_path)
    assert str(tmp_path).encode() not in saved(one, tmp_path)


def test_seeds_of_trees_differ_and_the_first_is_the_models() -> None:
    seeds = [tree_seed(7, number) for number in range(100)]
    assert seeds[0] == 7
    assert len(set(seeds)) == 100
    assert seeds[1] != tree_seed(8, 1)


@pytest.mark.parametrize("kind", ["text", "vectors"])
@pytest.mark.parametrize("tree", ["kmeans", "flat", "complete"])
def test_estimates_are_near_the_truth(kind: str, tree: str, tmp_path: Path) -> None:
    parameters: dict[str, Any] = dict(
        nodes="dense", dim=400, tree=tree, arity=2, max_leaves=2, trees=2, epochs=1
    )
    parameters = with_effect(**parameters)
    guess = estimate(TOY.rows(kind), TOY.Y, **parameters)
    model = train(TOY.rows(kind), TOY.Y, **parameters)
    assert (guess.n_rows, guess.n_labels, guess.n_features) == (100, N_LABELS, model.n_features)
    assert guess.parameter_bytes == pytest.approx(model.inspect()["parameter_bytes"], rel=0.05)
    assert guess.model_bytes == pytest.approx(len(saved(model, tmp_path)), rel=0.15)
    assert guess.peak_bytes > guess.data_bytes + guess.parameter_bytes
    assert guess.data_bytes >= 8 * len(TOY.X.indices)


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("tree", ["kmeans", "flat"])
def test_estimates_of_pruned_weights_are_near_the_truth(tree: str, link: str) -> None:
    """However many of them are pruned: averages over rows and labels do not tell."""
    for prune in (0.01, 0.5):
        given = dict(tree=tree, link=link, prune=prune)
        guess, model = estimate(TOY.texts, TOY.Y, **given), train(TOY.texts, TOY.Y, **given)
        assert guess.parameter_bytes == pytest.approx(model.inspect()["parameter_bytes"], rel=0.25)


def test_config_must_be_a_config() -> None:
    for config in ({"dim": 4}, "paper", 3):
        for function in (train, estimate):
            with pytest.raises(ParameterError, match="config must be a Config"):
                function(TOY.texts, TOY.Y, config=config)


def test_numbers_of_numpy_are_parameters(tmp_path: Path) -> None:
    given = {name: np.int64(value) for name, value in SMALL.items()}
    model = train(TOY.texts, TOY.Y, threads=np.int32(1), **given)
    assert saved(model, tmp_path) == saved(train(TOY.texts, TOY.Y, **SMALL), tmp_path)


def test_estimate_checks_the_tree_and_counts_the_batch() -> None:
    with pytest.raises(ParameterError, match="oak"):
        estimate(TOY.texts, TOY.Y, tree="oak")
    dense = make_config({"nodes": "dense", "dim": 10, "neighbours": 0})
    small, large = (estimate(TOY.texts, TOY.Y, config=dense, dim=1000, batch_size=size) for size in (1, 100))
    # two vectors per example, and one for the root and for each visited block of siblings
    assert large.peak_bytes - small.peak_bytes >= 99 * 4 * 1000 * 4
    Y = np.pad(TOY.indicator, ((0, 0), (0, 64_000)))
    flat = estimate(TOY.texts, Y, config=dense, tree="flat", batch_size=64)
    deep = estimate(TOY.texts, Y, config=dense, tree="huffman", arity=2)
    for guess, has_many_blocks in ((flat, True), (deep, False)):
        in_training = guess.parameter_bytes // (10 + 4) * 40  # a byte per number and a scale; in 32 bits
        rest = guess.peak_bytes - guess.data_bytes - guess.parameter_bytes - in_training
        assert (rest > 150_000_000 + 64 * 256 * 10 * 4) == has_many_blocks


def test_reading_a_file_is_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labeltree.data.opening.Source.blocks.__defaults__", (1 << 12,))
    path = tmp_path / "train.txt"
    path.write_text(write_fasttext(TOY) * 10)
    heard: list[float] = []
    with pytest.raises(KeyboardInterrupt):
        train(path, callback=lambda progress: note(progress, heard), **SMALL)
    assert len(heard) > 2
    assert heard == sorted(heard)
    assert heard[0] == 0
    assert heard[-1] == 1


def note(progress: Progress, heard: list[float]) -> None:
    """Keep the fractions of the first stage, then end the training."""
    if progress.stage != "read":
        raise KeyboardInterrupt
    heard.append(progress.fraction)


def test_texts_in_memory_are_not_told_of_lines_to_skip(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        train(["one:1", "one:x"], [["a"], ["b"]], weighted_words=True, **SMALL)
    assert "skip_bad" not in str(error.value)
    (tmp_path / "data.txt").write_text("__label__a one:x\n")
    with pytest.raises(DataError, match="skip_bad_lines"):
        train(tmp_path / "data.txt", weighted_words=True, **SMALL)
    model = train(TOY.texts, TOY.Y, weighted_words=False, **SMALL)
    (tmp_path / "data.txt").write_bytes(b"\xff\n")
    with pytest.raises(DataError, match="skip_bad_lines"):
        model.read(tmp_path / "data.txt")


def test_label_names_are_checked_for_lists_too() -> None:
    with pytest.raises(DataError, match="label_names, number 0"):
        train(TOY.texts, TOY.indicator, label_names=range(N_LABELS), **SMALL)
    with pytest.raises(DataError, match="label_names, numbers 0 and 1"):
        train(TOY.texts, TOY.Y, label_names=[LABELS[0], *LABELS], **SMALL)
    with pytest.raises(DataError, match="not among the 11 label_names"):
        train(TOY.texts, TOY.Y, label_names=LABELS[:-1], **SMALL)


def test_profiles_and_names_are_made_once_for_all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    n_calls = {"profiles": 0, "names": 0}

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            n_calls[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr("labeltree.trees.kmeans.label_profiles", counted("profiles", label_profiles))
    monkeypatch.setattr(StringTable, "strings", counted("names", StringTable.strings))
    for trees in (1, 3):
        n_calls.update(profiles=0, names=0)
        train(TOY.texts, TOY.Y, trees=trees, **SMALL)
        assert n_calls == {"profiles": 1, "names": 1}
