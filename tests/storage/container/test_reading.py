"""Damaged, hostile and foreign files: each gives its named error before anything of it is used."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_files import METADATA, posix, small_tensors

from labeltree.errors import (
    CorruptedModelError,
    ModelFileError,
    NewerModelError,
    NotAModelError,
    TruncatedModelError,
)
from labeltree.storage.container import read_model, reading, write_model


def raw_file(path: Path, header: Any, data: bytes = b"", *, align: bool = True) -> Path:
    """A file with this header (bytes, or JSON to be) and a correct digest of everything before it."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    if align:
        text += b" " * (-(8 + len(text)) % 64)
    content = len(text).to_bytes(8, "little") + text + data
    path.write_bytes(content + hashlib.sha256(content).digest())
    return path


def header_with(metadata: str = '{"format":1}', **tensors: Any) -> dict[str, Any]:
    return {"__metadata__": {"labeltree": metadata}, **tensors}


def entry(dtype: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


def digest(start: int) -> dict[str, Any]:
    return entry("U8", [32], start, start + 32)


@pytest.mark.slow
def test_truncated_at_every_header_byte_and_every_kilobyte(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_model(path, small_tensors() | {"big": np.zeros(5000, np.float64)}, METADATA)
    content = path.read_bytes()
    data_start = 8 + int.from_bytes(content[:8], "little")
    lengths = {*range(data_start + 1), *range(0, len(content), 1024), len(content) - 1, len(content) - 32}
    for length in lengths:
        path.write_bytes(content[:length])
        for verify in (True, False):
            with pytest.raises(TruncatedModelError, match="m: "):
                read_model(path, verify=verify)


@pytest.mark.slow
def test_every_flipped_byte_is_detected(small_file: Path) -> None:
    content = small_file.read_bytes()
    for place in range(len(content)):
        for bit in (0x01, 0x80):
            damaged = bytearray(content)
            damaged[place] ^= bit
            small_file.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                read_model(small_file)


def test_random_damage_without_verification_gives_arrays_or_a_named_error(small_file: Path) -> None:
    content = small_file.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(500):
        damaged = bytearray(content)
        for place in random.integers(0, len(content) // 2, size=3):
            damaged[place] = random.integers(256)
        small_file.write_bytes(damaged)
        try:
            tensors, _ = read_model(small_file, verify=False)
        except ModelFileError:
            continue
        for array in tensors.values():
            array.tobytes()


def test_digest_is_the_only_check_that_verify_skips(small_file: Path) -> None:
    content = bytearray(small_file.read_bytes())
    content[-40] ^= 1  # a byte of data or padding
    small_file.write_bytes(content)
    with pytest.raises(CorruptedModelError, match="does not match its digest"):
        read_model(small_file)
    read_model(small_file, verify=False)


def test_bytes_after_the_end(small_file: Path) -> None:
    small_file.write_bytes(small_file.read_bytes() + b"\n")
    with pytest.raises(CorruptedModelError, match="1 bytes follow the end"):
        read_model(small_file, verify=False)


# Case: (header, bytes of data before the digest, error, words of its message)

CORRUPTED, NOT_OURS = CorruptedModelError, NotAModelError
DEEP = "[" * 100 + "]" * 100
MALFORMED: dict[str, tuple[Any, int, type[ModelFileError], str]] = {
    "not JSON": (b"{nothing", 0, NOT_OURS, "not a labeltree model"),
    "an array": (b"[1]", 0, NOT_OURS, "not a labeltree model"),
    "empty object": ({}, 0, NOT_OURS, "not a labeltree model"),
    "no metadata": ({"a": entry("U8", [64], 0, 64), "digest": digest(64)}, 64, NOT_OURS, "safetensors"),
    "foreign metadata": ({"__metadata__": {"format": "pt"}}, 0, NOT_OURS, "safetensors"),
    "metadata a list": ({"__metadata__": []}, 0, NOT_OURS, "safetensors"),
    "metadata a number": ({"__metadata__": {"labeltree": 1}}, 0, NOT_OURS, "safetensors"),
    "cut JSON": (b'{"__metadata__":{"labeltree":"{}"', 0, CORRUPTED, "not valid JSON"),
    "not UTF-8": (b'{"__metadata__":{"labeltree":"\xff"}}', 0, CORRUPTED, "not valid JSON"),
    "key twice": (b'{"__metadata__":{"labeltree":"{}"},"a":1,"a":2}', 0, CORRUPTED, "'a' occurs twice"),
    "nested deep": (header_with(a=json.loads(DEEP)), 0, CORRUPTED, "nested more than 32 deep"),
    "NaN": (b'{"__metadata__":{"labeltree":"{}"},"a":NaN}', 0, CORRUPTED, "NaN"),
    "million digits": (
        b'{"__metadata__":{"labeltree":"{}"},"a":' + b"9" * 10**6 + b"}",
        0,
        CORRUPTED,
        "not valid JSON",
    ),
    "inner not JSON": (header_with("x"), 0, CORRUPTED, "metadata is not valid JSON"),
    "inner not an object": (header_with("[]"), 0, CORRUPTED, "metadata is not valid JSON"),
    "inner nested deep": (header_with(DEEP), 0, CORRUPTED, "nested"),
    "inner key twice": (header_with('{"format":1,"format":1}'), 0, CORRUPTED, "'format' occurs twice"),
    "no version": (header_with("{}", digest=digest(0)), 0, CORRUPTED, "format version"),
    "version a text": (header_with('{"format":"1"}'), 0, CORRUPTED, "format version"),
    "version true": (header_with('{"format":true}'), 0, CORRUPTED, "format version"),
    "version 0": (header_with('{"format":0}'), 0, CORRUPTED, "format version"),
    "newer": (header_with('{"format":99}', what="ever"), 0, NewerModelError, "install a newer labeltree"),
    "no tensors": (header_with(), 0, CORRUPTED, "not a digest"),
    "digest short": (header_with(digest=entry("U8", [31], 0, 31)), 0, CORRUPTED, "not a digest"),
    "digest typed": (header_with(digest=entry("U64", [4], 0, 32)), 0, CORRUPTED, "not a digest"),
    "digest not last": (
        header_with(digest=digest(0), **{"pad.0": entry("U8", [32], 32, 64)}),
        32,
        CORRUPTED,
        "not a digest",
    ),
    "entry a list": (header_with(a=[]), 0, CORRUPTED, "exactly dtype"),
    "entry incomplete": (header_with(a={"dtype": "U8"}), 0, CORRUPTED, "exactly dtype"),
    "entry too rich": (header_with(a=entry("U8", [1], 0, 1) | {"code": "x"}), 1, CORRUPTED, "exactly"),
    "unknown dtype": (header_with(a=entry("BF16", [1], 0, 2)), 2, CORRUPTED, "'BF16'"),
    "dtype a list": (header_with(a=entry(["U8"], [1], 0, 1)), 1, CORRUPTED, "unknown dtype"),
    "shape a text": (header_with(a=entry("U8", "1", 0, 1)), 1, CORRUPTED, "axes"),
    "shape negative": (header_with(a=entry("U8", [-1, -1], 0, 1)), 1, CORRUPTED, "axes"),
    "shape fractional": (header_with(a=entry("U8", [1.0], 0, 1)), 1, CORRUPTED, "axes"),
    "shape boolean": (header_with(a=entry("U8", [True], 0, 1)), 1, CORRUPTED, "axes"),
    "nine axes": (header_with(a=entry("U8", [1] * 9, 0, 1)), 1, CORRUPTED, "axes"),
    "shape overflows": (header_with(a=entry("F64", [2**61, 8], 0, 0)), 0, CORRUPTED, "impossible shape"),
    "shape huge, empty": (
        header_with(a=entry("U8", [0, 2**40, 2**40], 0, 0)),
        0,
        CORRUPTED,
        "impossible shape",
    ),
    "axis above 2^62": (header_with(a=entry("U8", [2**64 + 1], 0, 1)), 1, CORRUPTED, "axes"),
    "one offset": (header_with(a=entry("U8", [1], 0)), 1, CORRUPTED, "two data_offsets"),
    "offsets negative": (header_with(a=entry("U8", [1], -1, 0)), 0, CORRUPTED, "two data_offsets"),
    "offsets reversed": (header_with(a=entry("U8", [1], 1, 0)), 0, CORRUPTED, "contradict"),
    "size wrong": (header_with(a=entry("F32", [2], 0, 4)), 4, CORRUPTED, "contradict"),
    "overlap": (
        header_with(a=entry("U8", [64], 0, 64), b=entry("U8", [64], 0, 64), digest=digest(64)),
        64,
        CORRUPTED,
        "the one before ends at 64",
    ),
    "hole": (header_with(a=entry("U8", [64], 0, 64), digest=digest(128)), 128, CORRUPTED, "starts at 128"),
    "late start": (header_with(digest=digest(64)), 64, CORRUPTED, "starts at 64"),
    "unaligned": (
        header_with(a=entry("U8", [1], 0, 1), b=entry("F32", [1], 1, 5), digest=digest(5)),
        5,
        CORRUPTED,
        "no multiple of 64",
    ),
    "out of range": (
        header_with(a=entry("U8", [2**40], 0, 2**40), digest=digest(2**40)),
        64,
        TruncatedModelError,
        "ends after",
    ),
    "boolean of 2": (
        header_with(a=entry("BOOL", [64], 0, 64), digest=digest(64)),
        -64,
        CORRUPTED,
        "neither 0 nor 1",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("verify", [True, False])
def test_malformed_header(tmp_path: Path, case: str, verify: bool) -> None:
    header, n_bytes, error, words = MALFORMED[case]
    path = raw_file(tmp_path / "bad.labeltree", header, (b"\0" if n_bytes >= 0 else b"\2") * abs(n_bytes))
    with pytest.raises(error, match=words) as caught:
        read_model(path, verify=verify)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_unaligned_data(tmp_path: Path) -> None:
    path = raw_file(tmp_path / "m", header_with(digest=digest(0)), align=False)
    with pytest.raises(CorruptedModelError, match="data starts at"):
        read_model(path)
    assert read_model(raw_file(path, header_with(digest=digest(0)))) == ({}, {"format": 1})


def test_too_many_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_file: Path) -> None:
    monkeypatch.setattr(reading, "MAX_TENSORS", 5)
    with pytest.raises(CorruptedModelError, match="more than 5"):
        read_model(small_file)


@pytest.mark.parametrize(
    "content",
    [
        b"__label__a some text\n" * 10,
        b"\x80\x04\x95" + bytes(100),  # a pickle
        b"PK\x03\x04" + bytes(100),  # a zip
        bytes(100),
        b"\xff" * 100,
        (2**63).to_bytes(8, "little") + b"{}",
        (16_000_001).to_bytes(8, "little") + b"{" + bytes(100),
        (50).to_bytes(8, "little") + b"[" + b" " * 100,
        (1).to_bytes(8, "little") + b"{" + b" " * 100,
    ],
)
def test_other_files_are_not_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(NotAModelError, match="not a labeltree model"):
        read_model(path)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_empty_and_tiny_files(tmp_path: Path, size: int) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(b"x" * size)
    with pytest.raises(TruncatedModelError, match=f"only {size} bytes"):
        read_model(path)


def test_names_that_are_no_readable_file(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path / "missing" / "m", tmp_path, "a\0b", ""):
        with pytest.raises(ModelFileError, match="model file"):
            read_model(path)


@posix
def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_model(tmp_path / "pipe")


@posix
def test_unreadable_file(small_file: Path) -> None:
    small_file.chmod(0)
    if os.access(small_file, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ModelFileError, match="Permission denied"):
        read_model(small_file)
