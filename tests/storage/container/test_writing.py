"""The model file: what is written is read back, byte for byte, or nothing is written at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.small_files import METADATA, posix, small_tensors

from labeltree.errors import ModelFileError, ParameterError
from labeltree.storage.container import FORMAT_VERSION, read_model, write_model
from labeltree.storage.container.layout import DTYPES


def test_round_trip(small_file: Path) -> None:
    tensors, metadata = read_model(small_file)
    assert metadata == METADATA | {"format": FORMAT_VERSION}
    assert set(tensors) == set(small_tensors())
    for name, expected in small_tensors().items():
        assert tensors[name].dtype == expected.dtype
        np.testing.assert_array_equal(tensors[name], expected)


tensor_mappings = st.dictionaries(
    st.from_regex(r"[a-z_./0-9]{1,12}", fullmatch=True).filter(
        lambda name: name != "digest" and not name.startswith("pad.")
    ),
    st.sampled_from(list(DTYPES.values())).flatmap(
        lambda dtype: arrays.arrays(
            dtype, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
        )
    ),
    max_size=6,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tensor_mappings, st.dictionaries(st.text().filter(lambda key: key != "format"), json_values, max_size=3)
)
def test_any_tensors_round_trip(
    tmp_path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, Any]
) -> None:
    path = tmp_path / "m"
    write_model(path, tensors, metadata)
    loaded, loaded_metadata = read_model(path)
    assert loaded_metadata == metadata | {"format": FORMAT_VERSION}
    assert list(loaded) == sorted(tensors)
    for name, array in tensors.items():
        assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
        assert loaded[name].tobytes() == array.tobytes()  # NaN payloads and -0.0 too
    first = path.read_bytes()
    write_model(path, loaded, loaded_metadata)
    assert path.read_bytes() == first


def test_bytes_do_not_depend_on_the_order_of_the_mappings(tmp_path: Path, small_file: Path) -> None:
    other = tmp_path / "other"
    reverse_metadata = {"labels": 3, "config": dict(reversed(METADATA["config"].items()))}  # type: ignore[attr-defined]
    write_model(other, dict(reversed(small_tensors().items())), reverse_metadata)
    assert other.read_bytes() == small_file.read_bytes()


def test_memory_layout_does_not_change_the_bytes(tmp_path: Path) -> None:
    matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
    for name, array in {
        "c": matrix,
        "fortran": np.asfortranarray(matrix),
        "swapped": matrix.astype(">i4"),
        "strided": np.repeat(matrix, 2, axis=1)[:, ::2],
    }.items():
        write_model(tmp_path / name, {"w": array}, {})
        assert (tmp_path / name).read_bytes() == (tmp_path / "c").read_bytes()


def test_the_safetensors_library_reads_it(small_file: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(small_file, "numpy") as file:
        assert list(file.metadata()) == ["labeltree"]
        content = json.loads(file.metadata()["labeltree"])
        assert content == METADATA | {"format": FORMAT_VERSION}
        assert file.metadata()["labeltree"] == json.dumps(content, sort_keys=True, separators=(",", ":"))
        for name, expected in small_tensors().items():
            np.testing.assert_array_equal(file.get_tensor(name), expected)


def test_the_last_bytes_are_the_sha256_of_all_others(small_file: Path) -> None:
    content = small_file.read_bytes()
    assert content[-32:] == hashlib.sha256(content[:-32]).digest()


def test_arrays_are_aligned_read_only_views_of_one_mapping(small_file: Path) -> None:
    for verify in (True, False):
        tensors, _ = read_model(small_file, verify=verify)
        again, _ = read_model(small_file, verify=verify)
        bases = set()
        for name, array in tensors.items():
            assert array.ctypes.data % 64 == 0
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
            base = array
            while isinstance(base, np.ndarray):
                base = base.base  # type: ignore[assignment]
            bases.add(id(base.obj if isinstance(base, memoryview) else base))
            assert not np.shares_memory(array, again[name])
        assert len(bases) == 1


@posix
def test_a_replaced_model_stays_usable_where_it_is_mapped(small_file: Path) -> None:
    old, _ = read_model(small_file)
    write_model(small_file, {"weights": np.full(1000, 7, np.float32)}, {})
    np.testing.assert_array_equal(old["weights"], small_tensors()["weights"])
    assert read_model(small_file)[0]["weights"][0] == 7


# ---- writing: all or nothing


def fail_with(error: BaseException) -> Callable[..., None]:
    def fail(*_: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_failed_write_keeps_the_old_file_and_leaves_no_other(
    small_file: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    before = small_file.read_bytes()
    monkeypatch.setattr(os, function, fail_with(error))
    expected = ModelFileError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left" if isinstance(error, OSError) else None):
        write_model(small_file, {"a": np.zeros(9)}, {})
    assert small_file.read_bytes() == before
    assert list(small_file.parent.iterdir()) == [small_file]


@posix
def test_file_size_limit_of_the_system(small_file: Path) -> None:
    import resource

    before = small_file.read_bytes()
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, old_limit[1]))
    try:
        with pytest.raises(ModelFileError, match="cannot be written"):
            write_model(small_file, {"a": np.zeros(1 << 20)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
    assert small_file.read_bytes() == before
    assert list(small_file.parent.iterdir()) == [small_file]


def test_writing_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="folder exists"):
        write_model(tmp_path / "missing" / "m", {}, {})
    with pytest.raises(ModelFileError, match="not a regular file"):
        write_model(tmp_path, {}, {})
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelFileError, match="cannot be written"):
        write_model(tmp_path / "file" / "m", {}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@posix
def test_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        write_model(tmp_path / "pipe", {}, {})


@posix
def test_mode_is_what_the_umask_gives(tmp_path: Path) -> None:
    for umask in (0o022, 0o077):
        old = os.umask(umask)
        try:
            write_model(tmp_path / "m", {}, {})
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o666 & ~umask


@posix
def test_a_link_keeps_pointing_to_the_model(tmp_path: Path, small_file: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(small_file)
    write_model(link, {"a": np.ones(3)}, {})
    assert link.is_symlink()
    assert list(read_model(small_file)[0]) == ["a"]


@pytest.mark.parametrize(
    ("tensors", "metadata", "words"),
    [
        ({"digest": np.zeros(1)}, {}, "used by the file format"),
        ({"pad.3": np.zeros(1)}, {}, "used by the file format"),
        ({"__metadata__": np.zeros(1)}, {}, "used by the file format"),
        ({"": np.zeros(1)}, {}, "printable ASCII"),
        ({"a b": np.zeros(1)}, {}, "printable ASCII"),
        ({"é": np.zeros(1)}, {}, "printable ASCII"),
        ({1: np.zeros(1), "a": np.zeros(1)}, {}, "printable ASCII"),
        ({"a": [1, 2]}, {}, "NumPy array"),
        ({"a": np.array(["x"])}, {}, "types float64"),
        ({"a": np.array([None])}, {}, "types float64"),
        ({"a": np.zeros(1, np.complex64)}, {}, "complex64"),
        ({"a": np.zeros((1,) * 9)}, {}, "at most 8 axes"),
        ({}, {"x": float("nan")}, "finite JSON"),
        ({}, {"x": np.float32(1)}, "finite JSON"),
        ({}, {1: 2}, "keys must be strings"),
        ({}, {"format": 1}, f"'format' must be {FORMAT_VERSION}, but is 1"),
        ({}, {"x": json.loads("[" * 40 + "]" * 40)}, "at most 32 deep"),
        ({}, {"x": "y" * 16_000_000}, "put large metadata into a tensor"),
    ],
)
def test_what_the_file_cannot_hold(tmp_path: Path, tensors: Any, metadata: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        write_model(tmp_path / "m", tensors, metadata)
    assert not list(tmp_path.iterdir())


def test_writing_does_not_copy_the_arrays(tmp_path: Path) -> None:
    import tracemalloc

    array = np.zeros(4_000_000, np.float64)
    tracemalloc.start()
    try:
        write_model(tmp_path / "m", {"a": array, "b": array}, {})
        read_model(tmp_path / "m")
        assert tracemalloc.get_traced_memory()[1] < array.nbytes // 4
    finally:
        tracemalloc.stop()


def test_reading_imports_nothing_heavy() -> None:
    import subprocess

    code = "import sys, labeltree.storage.container; print({'numba', 'scipy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
