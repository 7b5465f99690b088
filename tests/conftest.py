"""Fixtures shared by all tests; the kernel cache is keyed to the kernels' source, so none is ever stale."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest

import labeltree

KERNELS = Path(labeltree.__file__).parent / "kernels"
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(KERNELS.glob("*.py")))).hexdigest()[
    :16
]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"labeltree-kernels-{_digest}"))


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
    from small_files import METADATA, small_tensors

    from labeltree.persist import write_model

    path = tmp_path / "small.labeltree"
    write_model(path, small_tensors(), METADATA)
    return path
