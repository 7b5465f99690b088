"""Model files of numbers that no training gives, with a digest that fits: refused, or answered in numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_data import N_LABELS, make_toy, with_effect

import labeltree
from labeltree.decisions.rule import ExpectedRule, RankingRule, Rule, ThresholdRule
from labeltree.errors import CorruptedModelError
from labeltree.features.counting import MOST_IDF, inverse_document_frequency
from labeltree.storage.container import read_model, write_model

TOY = make_toy(60)
HUGE = np.float32(3e38)
Tensors = dict[str, np.ndarray]
Forge = Callable[[Tensors, dict[str, Any]], None]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Good files by their kind of nodes and link."""
    folder, found = tmp_path_factory.mktemp("models"), {}
    for nodes in ("dense", "sparse", "direct"):
        for link in ("plt", "hsm"):
            how = with_effect(nodes=nodes, link=link, dim=20, epochs=2, arity=4, max_leaves=4, prune=0.0)
            found[nodes, link] = folder / f"{nodes}-{link}.labeltree"
            labeltree.train(TOY.texts, TOY.Y, **how).save(found[nodes, link])
    return found


def forge(source: Path, change: Forge, path: Path) -> Path:
    tensors, metadata = read_model(source)
    tensors = {name: array.copy() for name, array in tensors.items()}
    change(tensors, metadata)
    write_model(path, tensors, metadata)
    return path


def refused(path: Path) -> str:
    with pytest.raises(CorruptedModelError) as caught:
        labeltree.load(path)
    return str(caught.value)


def weigh_ngrams(tensors: Tensors, metadata: dict[str, Any]) -> None:
    metadata["config"] |= {"weighted_words": True, "word_ngrams": 2, "ngram_buckets": 8}
    tensors["features.bucket_row"] = np.full(8, -1, np.int32)


def append_empty_row(tensors: Tensors, _: dict[str, Any]) -> None:
    """To the last bucket: a search would look at the entry behind the last one."""
    tensors["nodes.0.feature"] = np.append(tensors["nodes.0.feature"], np.int32(0))
    tensors["nodes.0.length"] = np.append(tensors["nodes.0.length"], np.uint8(0))
    tensors["nodes.0.bucket"][-1, 0] += 1
    last = np.flatnonzero(np.diff(tensors["nodes.0.chunk_bucket"]))[-1]
    tensors["nodes.0.chunk_row"][last + 1 :] += 1


def leave_buckets_only(tensors: Tensors, _: dict[str, Any]) -> None:
    """Without any row: a search would look at the row before the first."""
    for name in ("feature", "length", "entry"):
        tensors[f"nodes.0.{name}"] = tensors[f"nodes.0.{name}"][:0]
    for name in ("chunk_row", "chunk_entry", "chunk_bucket"):
        tensors[f"nodes.0.{name}"][:] = 0
    tensors["nodes.0.chunk_bucket"][1:] = 2
    tensors["nodes.0.bucket"] = np.zeros((2, 2), np.int32)


def set_idf(value: float) -> Forge:
    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors["features.idf"][1] = value

    return change


REFUSED: dict[str, tuple[Forge, str]] = {
    "n-grams of weighted words": (weigh_ngrams, "weighted_words needs word_ngrams=1"),
    "a huge idf": (set_idf(HUGE), "features.idf is not"),
    "an idf of no number of rows": (set_idf(46.0), "features.idf is not"),
    "an infinite idf": (set_idf(np.inf), "features.idf is not"),
    "an idf of NaN": (set_idf(np.nan), "features.idf is not"),
    "a row without entries": (append_empty_row, "nodes.0.bucket does not fit"),
    "buckets without rows": (leave_buckets_only, "nodes.0.bucket does not fit"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_numbers_that_are_refused(case: str, files: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    change, words = REFUSED[case]
    assert words in refused(forge(files["sparse", "plt"], change, tmp_path / "forged.labeltree"))


def test_no_idf_of_training_is_refused() -> None:
    assert inverse_document_frequency(np.zeros(1, np.int64), 2**63 - 2)[0] < MOST_IDF


def check_probabilities(path: Path) -> None:
    model = labeltree.load(path)
    texts = [*TOY.texts[:10], "", " ".join(TOY.texts)]
    for normalize in (False, True):
        found = [
            model.predict_arrays(texts, k=3, normalize=normalize)[1],
            model.predict_arrays(texts, k=3, normalize=normalize, search="beam")[1],
            model.predict_arrays(texts[:1], k=3, normalize=normalize)[1],
            model.probability(texts, model.label_names, normalize=normalize),
        ]
        for probabilities in found:
            assert np.all((probabilities >= 0) & (probabilities <= 1))


MULTIPLIERS = [("dense", name) for name in ("embedding_scale", "weight_scale", "bias")]
MULTIPLIERS += [("sparse", name) for name in ("scale", "bias")]
MULTIPLIERS += [("direct", "bias")]


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize(("nodes", "name"), MULTIPLIERS)
@pytest.mark.parametrize("value", [HUGE, -HUGE, 1e-45, 0.0])
@pytest.mark.parametrize("step", [1, 2])  # every number, or every second one
def test_any_multiplier_gives_probabilities(
    nodes: str, name: str, link: str, value: float, step: int,
    files: dict[tuple[str, str], Path], tmp_path: Path,
) -> None:  # fmt: skip
    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensor, bias = tensors[f"nodes.0.{name}"], tensors["nodes.0.bias"]
        changed = np.arange(len(tensor)) % step == 0
        if name != "embedding_scale":
            changed &= np.isfinite(bias)  # constant nodes stay as they are
        tensor[changed] = value

    check_probabilities(forge(files[nodes, link], change, tmp_path / "forged.labeltree"))


@pytest.mark.parametrize("value", [HUGE, -HUGE, 2e15, np.inf, np.nan])
def test_weights_whose_sums_could_be_no_numbers_are_refused(
    value: float, files: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors["nodes.0.weights"][-1, -1] = value

    path = forge(files["direct", "plt"], change, tmp_path / "forged.labeltree")
    assert "nodes.0.weights has values beyond" in refused(path)


def test_the_largest_weights_give_probabilities(files: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors["nodes.0.weights"][:] = np.where(np.arange(len(tensors["nodes.0.bias"])) % 2, 1e15, -1e15)[
            :, None
        ]

    for link in ("plt", "hsm"):
        check_probabilities(forge(files["direct", link], change, tmp_path / "forged.labeltree"))


@pytest.mark.parametrize(
    "calibration", [(HUGE, 1, HUGE), (1, HUGE, -HUGE), (HUGE, HUGE, 0), (1e-45, 1e-45, 1)]
)
def test_any_calibration_gives_probabilities(
    calibration: tuple[float, float, float], files: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors["nodes.0.calibration"][:] = calibration

    check_probabilities(forge(files["sparse", "plt"], change, tmp_path / "forged.labeltree"))


RULES: dict[str, Rule] = {
    "ranking": RankingRule("p@3", 3, np.ones(N_LABELS, np.float32), np.zeros(N_LABELS, np.float32)),
    "expected-f1": ExpectedRule("instance-f1", np.ones(N_LABELS, np.float32), np.zeros(N_LABELS, np.float32)),
    "thresholds": ThresholdRule("macro-f1", np.full(N_LABELS, 0.5, np.float32)),
}
LINES = [("weight", -1.0), ("weight", -1e-30), ("weight", 1e7), ("summand", 1e7), ("summand", -1e7)]
OF_RULES = [(kind, *each) for kind in ("ranking", "expected-f1") for each in LINES]
OF_RULES += [("thresholds", "threshold", value) for value in (0.0, 1e-39, 1e-7, -0.5, 2.1)]
OF_RULES += [
    (kind, name, value)
    for kind, rule in RULES.items()
    for name in rule.tensor_names
    for value in (HUGE, -HUGE, np.inf, -np.inf, np.nan)
]


@pytest.fixture(scope="module")
def ruled(files: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Good files by their kind of rule."""
    folder, model = tmp_path_factory.mktemp("ruled"), labeltree.load(files["sparse", "plt"])
    for kind, rule in RULES.items():
        model.rule = rule
        model.save(folder / kind)
    return {kind: folder / kind for kind in RULES}


@pytest.mark.parametrize(("kind", "name", "value"), OF_RULES)
def test_numbers_of_rules_that_are_refused(
    kind: str, name: str, value: float, ruled: dict[str, Path], tmp_path: Path
) -> None:
    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors[f"rule.{name}"][-1] = value

    assert f"rule.{name} has numbers that are not from" in refused(
        forge(ruled[kind], change, tmp_path / "forged")
    )


@pytest.mark.parametrize("at_least", [True, 1.0, 2, -1, None, "1"])
def test_numbers_of_labels_that_are_refused(at_least: Any, ruled: dict[str, Path], tmp_path: Path) -> None:
    def change(_: Tensors, metadata: dict[str, Any]) -> None:
        metadata["rule"]["at_least"] = at_least

    assert "the rule gives at least" in refused(forge(ruled["thresholds"], change, tmp_path / "forged"))


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("place", [0, 1])
def test_the_outermost_numbers_of_rules_give_probabilities(
    kind: str, place: int, ruled: dict[str, Path], tmp_path: Path
) -> None:
    """Which constructors keep to, so that what was tuned can be loaded."""
    wild = [np.where(np.arange(N_LABELS) % 2 == place, -HUGE, HUGE) for _ in RULES[kind].tensor_names]
    with np.errstate(all="raise"):
        rule: Any = type(RULES[kind])(*(("p@3", 3) if kind == "ranking" else ("x",)), *wild)

    def change(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors.update(rule.tensors())

    model = labeltree.load(forge(ruled[kind], change, tmp_path / "forged"))
    with np.errstate(all="raise"):
        answers = model.predict([*TOY.texts, ""], threads=1)
    assert all(0.0 <= p <= 1.0 for row in answers for _, p in row)
