"""Model files of all versions of the format load and predict what they did when they were written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.golden import EXPECTED, GOLDEN, check_answers, golden_facts, rows_of
from support.make_golden import golden_models, main

import labeltree
from labeltree.experts.combination import BENDS
from labeltree.storage.container import FORMAT_VERSION, read_model

FACTS = golden_facts()


def test_every_golden_file_is_expected_and_small() -> None:
    files = {path.name: path.stat().st_size for path in GOLDEN.glob("*.labeltree")}
    assert set(files) == set(FACTS)
    assert max(files.values()) < 30_000


def test_every_version_has_its_files() -> None:
    """Those of the present one are of all kinds of features, nodes and links, and of several experts."""
    versions = {name: read_model(GOLDEN / name)[1]["format"] for name in FACTS}
    assert set(versions.values()) == set(range(1, FORMAT_VERSION + 1))
    names = {f"{name}-{FORMAT_VERSION}.labeltree" for name in golden_models()}
    assert names == {name for name, version in versions.items() if version == FORMAT_VERSION}, (
        "write them with `PYTHONPATH=tests python -m support.make_golden`"
    )


@pytest.mark.parametrize(
    "part",
    [
        "features.column_weight",
        "features.bucket_row",
        "features.ngrams",
        "features.pairs",
        "neighbours.column_lists",
        "neighbours.weight",
        "features.n_dense",
        "forest.root",
        "forest.tail.weight",
        "rule.summand",
        "rule.threshold",
    ],
)
def test_files_of_the_present_version_have_a_part_or_not(part: str) -> None:
    tensors = [read_model(GOLDEN / f"{name}-{FORMAT_VERSION}.labeltree")[0] for name in golden_models()]
    filled = [{re.sub(r"\.\d+", "", key) for key, tensor in file.items() if len(tensor)} for file in tensors]
    assert {part in names for names in filled} == {True, False}


def test_experts_of_the_present_version_are_combined_in_every_way() -> None:
    told = [read_model(GOLDEN / f"{name}-{FORMAT_VERSION}.labeltree")[1] for name in golden_models()]
    assert {len(metadata["map"]) for metadata in told} == {0, 3 + len(BENDS)}
    n_weights = [len({expert["weight"] for expert in metadata["experts"]}) for metadata in told]
    assert set(n_weights) == {1, 2, 3}  # all trees alike; neighbours beside them; kinds of nodes told apart


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", FACTS)
def test_golden_model(name: str, verify: bool) -> None:
    check_answers(labeltree.load(GOLDEN / name, verify=verify), FACTS[name])


@pytest.mark.parametrize("name", FACTS)
def test_golden_model_is_saved_as_one_of_the_present_version_that_predicts_the_same(
    name: str, tmp_path: Path
) -> None:
    model = labeltree.load(GOLDEN / name)
    model.save(tmp_path / name)
    again, X = labeltree.load(tmp_path / name), rows_of(FACTS[name]["queries"])
    assert again.predict(X, k=20) == model.predict(X, k=20)
    assert again.config == model.config
    old, new = read_model(GOLDEN / name)[0], read_model(tmp_path / name)
    assert new[1]["format"] == FORMAT_VERSION
    assert {key: new[0].pop(key).tobytes() for key in old} == {key: old[key].tobytes() for key in old}
    assert not any(map(len, new[0].values()))  # tensors that later versions added are empty


def test_the_command_that_makes_them_still_works(tmp_path: Path) -> None:
    main(tmp_path)
    made = json.loads((tmp_path / EXPECTED).read_text())
    assert set(made) == {f"{name}-{FORMAT_VERSION}.labeltree" for name in golden_models()}
    for name, facts in made.items():
        check_answers(labeltree.load(tmp_path / name), facts)
