"""Forests: models of them alone and beside others, what a file keeps, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_data import make_toy

import labeltree
from labeltree import cli
from labeltree.errors import CorruptedModelError, DataError, ParameterError
from labeltree.experts.forest import ForestExpert
from labeltree.experts.job import Progress
from labeltree.model import Model
from labeltree.storage.container import read_model, write_model
from labeltree.training.driver import estimate

TOY, TEST = make_toy(400, seed=2), make_toy(60, seed=3)
SMALL: dict[str, Any] = dict(forest=6, forest_leaf=5)


def forest_of(model: Model) -> ForestExpert:
    (found,) = [expert for expert in model.experts if isinstance(expert, ForestExpert)]
    return found


@pytest.fixture(scope="module")
def alone() -> Model:
    return labeltree.train(TOY.X, TOY.Y, trees=0, neighbours=0, **SMALL)


def test_the_preset_is_a_forest_alone() -> None:
    model = labeltree.train(TOY.X, TOY.Y, preset="fastxml", forest=2)
    assert [expert.kind for expert in model.experts] == ["forest"]
    assert model.label_trees == []
    assert len(forest_of(model).forest.root) == 2


def test_it_is_combined_with_trees_and_neighbours(alone: Model) -> None:
    model = labeltree.train(TOY.X, TOY.Y, calibrate=False, **SMALL)
    assert [expert.kind for expert in model.experts] == ["tree", "neighbours", "forest"]
    weights = model.combination.weights
    assert np.isclose(weights.sum(), 1.0)
    # It is the same whatever stands beside it.
    assert all(map(np.array_equal, forest_of(model).forest, forest_of(alone).forest))
    total = sum(
        weight * expert.score(rows_of(model), every_label(model), labeltree.query.make_query(1)).astype(float)
        for weight, expert in zip(weights, model.experts, strict=True)
    )
    expected = model.combination.mapped(total.astype(np.float32).astype(np.float64))
    found = model.probability(TEST.X, model.label_names).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def puzzle(n_rows: int, seed: int) -> tuple[np.ndarray, list[list[str]]]:
    """The label follows from two features together, and from neither alone: no linear model finds it."""
    first, second = np.random.default_rng(seed).integers(0, 4, (2, n_rows))
    X = np.zeros((n_rows, 8), np.float32)
    X[np.arange(n_rows), first] = X[np.arange(n_rows), 4 + second] = 1.0
    return X, [[f"label{label}"] for label in (first + second) % 4]


def test_it_is_kept_only_where_held_out_rows_gain_by_it() -> None:
    heard: list[Progress] = []
    plain = labeltree.train(TOY.X, TOY.Y)  # a tree is nearly always right here
    model = labeltree.train(TOY.X, TOY.Y, callback=heard.append, **SMALL)
    assert [expert.kind for expert in model.experts] == ["tree", "neighbours"]
    assert model.predict(TEST.X) == plain.predict(TEST.X)
    assert [progress.fraction for progress in heard if progress.stage == "forest"] == [0.0, 1 / 8, 1.0]
    model = labeltree.train(*puzzle(600, 1), neighbours=0, forest=30)
    assert [expert.kind for expert in model.experts] == ["tree", "forest"]
    assert model.combination.weights[1] > 0.2
    assert len(forest_of(model).forest.root) == 30
    assert model.is_calibrated
    X, Y = puzzle(100, 2)
    hits = [found[0][0] == labels[0] for found, labels in zip(model.predict(X, 1), Y, strict=True)]
    assert np.mean(hits) > 0.75  # of a tree alone 0.25


def rows_of(model: Model) -> Any:
    return model.features.prepared(model.features.given_rows(TEST.X))[:3]


def every_label(model: Model) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n = TEST.X.n_rows, model.n_labels
    return np.arange(n_rows + 1) * n, np.tile(np.arange(n, dtype=np.int32), n_rows)


def test_held_out_rows_are_in_the_leaves(alone: Model) -> None:
    """Of what is kept, also where rows were held out to judge other trees by them."""
    uncalibrated = labeltree.train(TOY.X, TOY.Y, trees=0, neighbours=0, calibrate=False, **SMALL)
    assert alone.is_calibrated
    assert not uncalibrated.is_calibrated
    assert all(map(np.array_equal, forest_of(alone).forest, forest_of(uncalibrated).forest))


def test_rows_without_weight_are_in_no_leaf() -> None:
    weight = np.tile([1.0, 0.0], TOY.X.n_rows // 2)
    how: dict[str, Any] = dict(trees=0, neighbours=0, sample_weight=weight, **SMALL)
    wrong = np.where(weight[:, None] > 0, TOY.indicator, 0)
    model, other = labeltree.train(TOY.X, TOY.indicator, **how), labeltree.train(TOY.X, wrong, **how)
    assert all(map(np.array_equal, forest_of(model).forest, forest_of(other).forest))


def test_a_model_needs_an_expert() -> None:
    with pytest.raises(ParameterError, match="trees, neighbours and forest are all 0"):
        labeltree.train(TOY.X, TOY.Y, trees=0, neighbours=0)
    with pytest.raises(DataError, match="no neighbours; use trees=1"):
        labeltree.train(np.eye(30, dtype=np.float32), [["a"], ["b"]] * 15, trees=0)


def test_what_has_no_effect_is_an_error() -> None:
    for given, wanted in (
        ({"forest_leaf": 5}, "forest=1 to 1000"),
        ({"forest": 5, "forest_split": "l1", "forest_prune": 0.1}, "forest_split=l2"),
        ({"trees": 0, "arity": 8}, "trees=1 to 1000"),
        ({"trees": 0, "nodes": "dense"}, "trees=1 to 1000"),
        ({"trees": 0, "dim": 8}, "trees=1 to 1000"),
    ):
        with pytest.raises(ParameterError, match=f"has no effect.* needs {wanted}"):
            labeltree.train(TOY.X, TOY.Y, **given)


def test_needs_are_about_right(alone: Model, tmp_path: Path) -> None:
    alone.save(tmp_path / "m")
    found = estimate(TOY.X, TOY.Y, trees=0, neighbours=0, threads=1, **SMALL)
    assert found.parameter_bytes == pytest.approx(alone.inspect()["parameter_bytes"], rel=0.3)
    assert found.model_bytes == pytest.approx((tmp_path / "m").stat().st_size, rel=0.5)
    assert found.cpu_seconds > 0


def test_the_command_line_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").write_text("".join(f"__label__a{i % 3} w{i % 3} v{i % 5}\n" for i in range(300)))
    data, model = str(tmp_path / "data"), str(tmp_path / "m")
    options = ["--preset", "fastxml", "--forest", "3"]
    assert cli.main(["train", data, "-o", model, *options, "--verbose"]) == 0
    assert "growing forest" in capsys.readouterr().err
    assert cli.main(["train", data, *options, "--dry-run"]) == 0
    assert "model file" in capsys.readouterr().out
    assert cli.main(["inspect", model]) == 0
    shown = capsys.readouterr().out
    assert "forest 1:\n  trees over rows: 3\n" in shown
    assert "arity" not in shown
    assert cli.main(["test", model, data, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["p@1"] == 1.0


def point_beyond(tensors: dict[str, np.ndarray]) -> None:
    inner = np.flatnonzero(tensors["forest.0.first_child"])
    tensors["forest.0.first_child"][inner[0]] = len(tensors["forest.0.first_child"]) - 1


def point_back(tensors: dict[str, np.ndarray]) -> None:
    inner = np.flatnonzero(tensors["forest.0.first_child"])
    tensors["forest.0.first_child"][inner[-1]] = inner[-1]


def label_beyond(tensors: dict[str, np.ndarray]) -> None:
    leaf = np.flatnonzero(tensors["forest.0.first_child"] == 0)[0]
    tensors["forest.0.low"][tensors["forest.0.start"][leaf]] = 60_000


def set_to(name: str, place: Any, value: Any) -> Callable[[dict[str, np.ndarray]], None]:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors[f"forest.0.{name}"][place] = value

    return change


def cut(name: str) -> Callable[[dict[str, np.ndarray]], None]:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors[f"forest.0.{name}"] = tensors[f"forest.0.{name}"][:-1]

    return change


@pytest.mark.parametrize(
    "change",
    [
        point_beyond, point_back, label_beyond, set_to("root", 0, -1), set_to("root", 0, 1 << 30),
        set_to("start", 0, 1), set_to("start", 5, 1 << 40), set_to("scale", slice(None), 0.0),
        set_to("scale", 0, np.nan), set_to("bias", 0, np.inf), set_to("bias", -1, 0.0),
        set_to("amount", slice(None), -1),
        cut("low"), cut("start"), cut("bias"), cut("scale"),
    ],
)  # fmt: skip
def test_files_that_are_no_forest_are_refused(
    alone: Model, tmp_path: Path, change: Callable[[dict[str, np.ndarray]], None]
) -> None:
    alone.save(tmp_path / "good")
    tensors, metadata = read_model(tmp_path / "good")
    tensors = {name: array.copy() for name, array in tensors.items()}
    change(tensors)
    write_model(tmp_path / "bad", tensors, metadata)
    with pytest.raises(CorruptedModelError, match=r"forest\.0"):
        labeltree.load(tmp_path / "bad")


@pytest.mark.parametrize("n_columns", [-1, 1_000_000, 2.0, None, "1"])
def test_columns_that_there_are_not_are_refused(alone: Model, tmp_path: Path, n_columns: Any) -> None:
    alone.save(tmp_path / "good")
    tensors, metadata = read_model(tmp_path / "good")
    metadata["experts"][0]["n_columns"] = n_columns
    write_model(tmp_path / "bad", dict(tensors), metadata)
    with pytest.raises(CorruptedModelError, match="n_columns is"):
        labeltree.load(tmp_path / "bad")


@pytest.fixture(scope="module")
def ranked() -> Model:
    return labeltree.train(TOY.X, TOY.Y, preset="pfastrexml", **SMALL)


def test_rare_labels_come_to_the_front(alone: Model, ranked: Model) -> None:
    """In what is listed first of labels that the same leaves may have."""
    counts = alone.label_counts
    plain, weighted = (model.predict_arrays(TEST.X, 3)[0] for model in (alone, ranked))
    assert counts[weighted].mean() < counts[plain].mean()


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("weight", 0, 0.0), ("weight", 0, 1.5), ("scale", 0, np.nan), ("scale", 0, -1.0), ("start", 0, 1),
        ("start", 1, 1 << 40), ("low", 0, 60_000),
    ],
)  # fmt: skip
def test_files_that_rank_by_nothing_possible_are_refused(
    ranked: Model, tmp_path: Path, name: str, place: int, value: Any
) -> None:
    ranked.save(tmp_path / "good")
    tensors, metadata = read_model(tmp_path / "good")
    tensors = {key: array.copy() for key, array in tensors.items()}
    tensors[f"forest.0.tail.{name}"][place] = value
    write_model(tmp_path / "bad", tensors, metadata)
    with pytest.raises(CorruptedModelError, match=r"forest\.0\.tail is not"):
        labeltree.load(tmp_path / "bad")
