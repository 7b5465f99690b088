"""The fuzz targets pass on what they start from and on a few changes of it; fuzzing itself needs atheris."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fuzz.__main__ import NAMES
from fuzz.models import MODEL, with_digest
from fuzz.readers import READERS
from fuzz.target import Target
from labeltree.storage.container import read_model

TARGETS = {"model": MODEL} | READERS


def test_the_command_knows_all_targets() -> None:
    assert set(NAMES) == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_some_changes_of_them_pass(name: str) -> None:
    target: Target = TARGETS[name]
    random = Random(name)
    for content in target.seeds():
        assert len(content) <= target.longest
        target.check(content)
        for _ in range(5):
            changed = bytearray(content)
            for _ in range(random.randrange(1, 4)):
                changed[random.randrange(len(changed))] = random.randrange(256)
            target.check(bytes(changed))


@pytest.mark.parametrize("name", TARGETS)
def test_the_first_seed_is_accepted(name: str) -> None:
    """A fuzzer that begins with nothing but errors hardly comes further."""
    target: Target = TARGETS[name]
    assert target.check(target.seeds()[0])


def test_every_seed_is_a_model_and_forged_ones_have_their_digest(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for content in MODEL.seeds():
        path.write_bytes(with_digest(content[:-1] + b"x"))
        assert path.read_bytes() == content
        read_model(path)
