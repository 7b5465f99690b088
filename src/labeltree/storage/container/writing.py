"""Writing a container: check that it can hold what it is given, then stream it, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import ModelFileError, ParameterError
from labeltree.storage.container.layout import (
    ALIGNMENT,
    DIGEST_BYTES,
    DIGEST_NAME,
    DTYPES,
    FORMAT_VERSION,
    MAX_DEPTH,
    MAX_DIMENSIONS,
    MAX_HEADER_BYTES,
    MAX_TENSORS,
    METADATA_KEY,
    PAD_PREFIX,
    RESERVED_KEY,
    is_impossible,
    is_own_name,
    nesting_depth,
)
from labeltree.storage.files import write_whole

_CODES = {dtype: code for code, dtype in DTYPES.items()}
_NAME = re.compile(r"[!-~]{1,200}")  # printable ASCII, so that names sort the same everywhere
_CHUNK_BYTES = 1 << 20  # hashed while still in the processor's cache from being copied


def write_model(
    path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
) -> None:
    """Write a model file so that ``path`` holds either its old content or the whole new one, never a part.

    Equal arguments give equal bytes, whatever the order of the mappings. Arrays are streamed: only one that
    is not C-contiguous and little-endian is copied. What ``read_model`` returned can be passed again.
    """
    header, names = _header(tensors, metadata)
    try:
        target = Path(os.path.realpath(path))  # a link keeps pointing to the model; its target is replaced
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"model file {path!r}: cannot be a file's name ({error}); give another"
        ) from error
    if target.exists() and not target.is_file():
        raise ModelFileError(f"model file {path}: exists and is not a regular file; choose another name")
    try:
        write_whole(target, _content(header, names, tensors))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelFileError(
            f"model file {path}: cannot be written ({reason}); an older file of that name is unchanged; "
            "check that the folder exists, is writable and has space left"
        ) from error


def _header(
    tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
) -> tuple[bytes, list[tuple[str, int]]]:
    """The first bytes of the file, and each tensor's name with the number of pad bytes that follow it."""
    entries: dict[str, Any] = {RESERVED_KEY: {METADATA_KEY: _metadata_json(metadata)}}
    names: list[tuple[str, int]] = []
    offset = 0
    codes = {name: _check_tensor(name, array) for name, array in tensors.items()}
    for name, code in sorted(codes.items()):
        entries[name] = _entry(code, tensors[name].shape, offset, tensors[name].nbytes)
        offset += tensors[name].nbytes
        n_pad = -offset % ALIGNMENT
        if n_pad:  # safetensors allows no holes between tensors, so the gap is a tensor too
            entries[f"{PAD_PREFIX}{len(names)}"] = _entry("U8", (n_pad,), offset, n_pad)
            offset += n_pad
        names.append((name, n_pad))
    entries[DIGEST_NAME] = _entry("U8", (DIGEST_BYTES,), offset, DIGEST_BYTES)
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES or len(entries) > MAX_TENSORS:
        raise ParameterError(
            f"a model may have {MAX_TENSORS} header entries (padding included) in {MAX_HEADER_BYTES} bytes, "
            f"but this one has {len(entries)} in {len(text)}; put large metadata into a tensor"
        )
    return len(text).to_bytes(8, "little") + text, names


def _entry(code: str, shape: tuple[int, ...], offset: int, n_bytes: int) -> dict[str, Any]:
    return {"dtype": code, "shape": list(shape), "data_offsets": [offset, offset + n_bytes]}


def _check_tensor(name: str, array: NDArray[Any]) -> str:
    """The dtype's code, or a :class:`ParameterError` if the file cannot hold this tensor."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(f"a tensor's name must be 1 to 200 printable ASCII characters, but is {name!r}")
    if name == RESERVED_KEY or is_own_name(name):
        raise ParameterError(f"tensor name {name!r} is used by the file format itself; choose another")
    if not isinstance(array, np.ndarray):
        raise ParameterError(f"tensor {name!r} must be a NumPy array, but is of type {type(array).__name__}")
    if array.ndim > MAX_DIMENSIONS:
        raise ParameterError(f"tensor {name!r} must have at most {MAX_DIMENSIONS} axes, but has {array.ndim}")
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None:
        known = ", ".join(str(dtype) for dtype in _CODES)
        raise ParameterError(f"tensor {name!r} must be of one of the types {known}, but is {array.dtype}")
    if is_impossible(array.shape, array.dtype):
        raise ParameterError(f"tensor {name!r} has the impossible shape {array.shape}")
    return code


def _metadata_json(metadata: Mapping[str, Any]) -> str:
    """Sorted compact JSON of the metadata, the format version included."""
    if metadata.get("format", FORMAT_VERSION) != FORMAT_VERSION:
        raise ParameterError(f"metadata 'format' must be {FORMAT_VERSION}, but is {metadata['format']!r}")
    if not all(isinstance(key, str) for key in metadata):
        raise ParameterError(f"metadata keys must be strings, but are {list(metadata)!r}")
    content = {**metadata, "format": FORMAT_VERSION}
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"metadata must be plain finite JSON values: {error}") from error
    if nesting_depth(text) > MAX_DEPTH:
        raise ParameterError(f"metadata must be nested at most {MAX_DEPTH} deep")
    return text


def _content(
    header: bytes, names: list[tuple[str, int]], tensors: Mapping[str, NDArray[Any]]
) -> Iterator[bytes | memoryview]:
    """The whole file in small pieces; each is hashed just before it is written, as the digest comes last."""
    digest = hashlib.sha256()  # with the SHA instructions of today's processors, 1.6 times BLAKE2b

    def pieces() -> Iterator[bytes | memoryview]:
        yield header
        for name, n_pad in names:
            yield from _chunks(tensors[name])
            yield bytes(n_pad)

    for piece in pieces():
        digest.update(piece)
        yield piece
    yield digest.digest()


def _chunks(array: NDArray[Any]) -> Iterator[memoryview]:
    little_endian = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    flat = little_endian.reshape(-1).view(np.uint8).data
    for start in range(0, len(flat), _CHUNK_BYTES):
        yield flat[start : start + _CHUNK_BYTES]
