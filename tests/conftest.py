"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Property tests try the same examples everywhere, so that a commit has one verdict. New ones are tried by
# `pytest --hypothesis-profile explore`; what that finds becomes a fixed `@example`.
settings.register_profile(
    "same-everywhere",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("same-everywhere"), derandomize=False, print_blob=True
)
settings.load_profile("same-everywhere")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; tests that need it are skipped where it is missing."""
    folder = Path(os.environ.get("LABELTREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real data sets not found in {folder}; set LABELTREE_DATA to their folder")
    return folder


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """A small model file with every kind of tensor."""
    from support.small_files import METADATA, small_tensors

    from labeltree.storage.container import write_model

    path = tmp_path / "small.labeltree"
    write_model(path, small_tensors(), METADATA)
    return path
