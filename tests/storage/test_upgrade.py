"""Files of earlier versions mean what they meant, whatever becomes of the parameters."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.golden import GOLDEN, check_answers, golden_facts

import labeltree
from labeltree.config import PARAMETER_NAMES, Config
from labeltree.config import definition as config_module
from labeltree.errors import CorruptedModelError
from labeltree.storage import model_file
from labeltree.storage.container import FORMAT_VERSION, read_model
from labeltree.storage.container.layout import DIGEST_BYTES
from labeltree.storage.upgrade import ADDED, UPGRADES, upgrade

FACTS = golden_facts()
OTHER_VALUES: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: not value,
    int: lambda value: value + 3,
    float: lambda value: value + 0.5,
    str: lambda value: f"{value} of another day",
}


def tree_entry(number: int, nodes: str, link: str = "plt", **chosen: Any) -> dict[str, Any]:
    return {"kind": "tree", "number": number, "nodes": nodes, "link": link, "weight": 1.0, "config": chosen}


def metadata_1(**changes: Any) -> dict[str, Any]:
    config = {"nodes": "both", "link": "plt", "trees": 2, "arity": 0, "lr": 0.5}
    return {"format": 1, "config": config, "n_trees": 2, "n_examples": 9, "features": "text"} | changes


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes labeltree one of a later day, with other parameters."""

    def change(
        defaults: Callable[[Any], Any] = lambda value: value,
        renamed: dict[str, str] | None = None,
        removed: tuple[str, ...] = (),
        added: dict[str, float] | None = None,
    ) -> None:
        new_names, fields = renamed or {}, []
        for field in dataclasses.fields(Config):
            if field.name not in removed:
                default = dataclasses.field(default=defaults(field.default), metadata=field.metadata)
                fields.append((new_names.get(field.name, field.name), field.type, default))
        for name, value in (added or {}).items():
            like = next(f for f in dataclasses.fields(Config) if f.name == "lr")
            fields.append((name, like.type, dataclasses.field(default=value, metadata=like.metadata)))
        methods = {"validate": Config.validate, "to_dict": Config.to_dict}
        made = dataclasses.make_dataclass("Config", fields, frozen=True, kw_only=True, namespace=methods)
        for module in (config_module, model_file):
            monkeypatch.setattr(module, "Config", made)

    return change


def test_every_version_has_its_upgrade() -> None:
    assert sorted(UPGRADES) == list(range(1, FORMAT_VERSION))
    assert sorted(ADDED) == list(range(1, FORMAT_VERSION + 1))


@pytest.mark.parametrize("name", FACTS)
def test_an_upgraded_file_has_every_parameter(name: str) -> None:
    """A new parameter needs the value that files without it mean, in ``ADDED``; a renamed one an upgrade."""
    metadata = read_model(GOLDEN / name)[1]
    upgraded = upgrade(metadata)
    assert upgraded["format"] == FORMAT_VERSION
    assert set(upgraded["config"]) == set(PARAMETER_NAMES)
    kept = {name: value for name, value in metadata["config"].items() if name in PARAMETER_NAMES}
    assert upgraded["config"].items() >= kept.items()
    assert upgrade(upgraded) == upgraded


def test_version_1_told_experts_by_their_place() -> None:
    upgraded = upgrade(metadata_1(chosen={"sparse": {"C": 0.5, "arity": 40}, "dense": {"arity": 16}}))
    dense, sparse = {"arity": 16}, {"C": 0.5, "arity": 40}
    assert upgraded["experts"] == [
        tree_entry(0, "dense", **dense),
        tree_entry(1, "sparse", **sparse),
        tree_entry(2, "dense", **dense),
        tree_entry(3, "sparse", **sparse),
    ]
    assert set(upgraded) == {"format", "config", "experts", "n_examples", "features", "map"}
    assert upgraded["config"] == {**ADDED[4], **ADDED[2], **ADDED[1], **metadata_1()["config"]}
    one = {"nodes": "dense", "link": "hsm", "trees": 1}
    assert upgrade(metadata_1(n_trees=1, config=one))["experts"] == [tree_entry(0, "dense", "hsm")]


@pytest.mark.parametrize("n_trees", [0, -1, "2", 3, True, None, 10**400])
def test_version_1_with_wrong_numbers_of_trees(n_trees: Any) -> None:
    with pytest.raises(CorruptedModelError, match=r"n_trees is .*, but the config has 2 trees"):
        upgrade(metadata_1(n_trees=n_trees))
    with pytest.raises(CorruptedModelError, match="n_trees is"):
        upgrade(metadata_1(n_trees=10**400, config={"nodes": "dense", "link": "plt", "trees": 10**400}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rb"\"n_trees\":2", rb"\"n_trees\":3"),
        (rb"\"nodes\":\"both", rb"\"modes\":\"both"),
        (rb"\"trees\":2", rb"\"trees\":1"),
        (rb"\"plt\"", rb"\"hsm\""),
    ],
)
def test_forged_files_of_version_1(old: bytes, new: bytes, tmp_path: Path) -> None:
    path = tmp_path / "forged.labeltree"
    content = (GOLDEN / "both-1.labeltree").read_bytes()[:-DIGEST_BYTES]
    assert old in content
    content = content.replace(old, new)
    path.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.raises(CorruptedModelError, match=r"forged\.labeltree"):
        labeltree.load(path)


@pytest.mark.parametrize("name", FACTS)
def test_new_defaults_change_no_old_file(name: str, later: Callable[..., None]) -> None:
    before = labeltree.load(GOLDEN / name).config.to_dict()
    later(defaults=lambda value: OTHER_VALUES[type(value)](value))
    assert config_module.Config().lr != Config().lr
    model = labeltree.load(GOLDEN / name)
    assert model.config.to_dict() == before
    check_answers(model, FACTS[name])


@pytest.mark.parametrize("name", FACTS)
def test_a_renamed_and_a_removed_parameter(
    name: str, later: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def upgrade_to_next(metadata: dict[str, Any]) -> dict[str, Any]:
        config = dict(metadata["config"])
        config["smallest_weight"] = config.pop("prune")
        del config["eta"]
        return {**metadata, "config": config, "format": FORMAT_VERSION + 1}

    before = labeltree.load(GOLDEN / name).config
    later(renamed={"prune": "smallest_weight"}, removed=("eta",))
    monkeypatch.setitem(UPGRADES, FORMAT_VERSION, upgrade_to_next)
    model = labeltree.load(GOLDEN / name)
    assert model.config.smallest_weight == before.prune
    assert not hasattr(model.config, "eta")
    check_answers(model, FACTS[name])


@pytest.mark.parametrize("name", FACTS)
def test_an_added_parameter(name: str, later: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default may suit new models; what it was for older ones is told once and stays."""
    later(added={"momentum": 0.9})
    with pytest.raises(CorruptedModelError, match="config has no momentum"):
        labeltree.load(GOLDEN / name)
    monkeypatch.setitem(ADDED[FORMAT_VERSION], "momentum", 0.0)
    model = labeltree.load(GOLDEN / name)
    assert model.config.momentum == 0.0
    check_answers(model, FACTS[name])
