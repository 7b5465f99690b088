"""Reading a container: check everything, then map it.

A file is untrusted until every check has passed: nothing in it is executed, and no array is made before the
whole header is known to be consistent with the file's size.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import stat
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import (
    CorruptedModelError,
    ModelFileError,
    NewerModelError,
    NotAModelError,
    TruncatedModelError,
)
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

_OUR_START = f'{{"{RESERVED_KEY}":{{"{METADATA_KEY}":'.encode()
_HASH_BYTES = 1 << 24
_ADVICE = "copy the file again or train a new model"


class _Tensor(NamedTuple):
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # relative to the end of the header
    stop: int


def read_model(
    path: str | os.PathLike[str], *, verify: bool = True, private: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The tensors, as read-only views of the mapped file, and the metadata with its ``"format"``.

    ``private`` ones may be written, which changes nothing in the file.

    ``verify=False`` skips the digest, and with it the reading of the whole file; all other checks still run.
    The mapping lives as long as one of the arrays. Replace a model with ``write_model`` (it renames), and
    never overwrite one in place: programs that have it mapped would see it change.
    """
    buffer = _map(path, mmap.ACCESS_COPY if private else mmap.ACCESS_READ)
    header = _header_bytes(path, buffer)
    entries = _parse_header(path, header)
    metadata = _metadata(path, entries.pop(RESERVED_KEY, None))
    tensors = [_tensor(path, name, entry) for name, entry in entries.items()]
    data_start = 8 + len(header)
    _check_layout(path, tensors, data_start, len(buffer))
    if verify:
        _check_digest(path, buffer)
    arrays = {}
    for name, dtype, shape, start, stop in tensors:
        if is_own_name(name):
            continue
        count = (stop - start) // dtype.itemsize
        arrays[name] = np.frombuffer(buffer, dtype, count, data_start + start).reshape(shape)
        if dtype.kind == "b" and np.any(arrays[name].view(np.uint8) > 1):
            _corrupted(path, f"tensor {name!r} of booleans holds a byte that is neither 0 nor 1")
    return arrays, metadata


def _corrupted(path: Any, problem: str) -> NoReturn:
    # Cut: a hostile file may hold a name of megabytes.
    raise CorruptedModelError(f"model file {path}: corrupted: {problem[:500]}; {_ADVICE}")


def _map(path: str | os.PathLike[str], access: int) -> mmap.mmap:
    try:
        # Looked at before it is opened: opening a pipe would wait for a writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError(f"model file {path}: is not a regular file; give the file that train wrote")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise TruncatedModelError(f"model file {path}: has only {size} bytes; {_ADVICE}")
            return mmap.mmap(file.fileno(), size, access=access)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelFileError(
            f"model file {path}: cannot be read ({reason}); check the name and its permissions"
        ) from error
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"model file {path!r}: cannot be read ({error}); give a file's name") from error


def _header_bytes(path: Any, buffer: mmap.mmap) -> bytes:
    length = int.from_bytes(buffer[:8], "little")
    if not 2 <= length <= MAX_HEADER_BYTES or buffer[8:9] not in (b"{", b""):
        raise NotAModelError(f"model file {path}: is not a labeltree model; give a file that train wrote")
    if 8 + length > len(buffer):
        raise TruncatedModelError(
            f"model file {path}: ends inside its header, after {len(buffer)} bytes of at least "
            f"{8 + length}; {_ADVICE}"
        )
    return buffer[8 : 8 + length]


def _parse_header(path: Any, header: bytes) -> dict[str, Any]:
    try:
        entries = _parse_json(header.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if header.startswith(_OUR_START):
            _corrupted(path, f"its header is not valid JSON ({error})")
        raise NotAModelError(
            f"model file {path}: is not a labeltree model (its header is not valid JSON); "
            "give a file that train wrote"
        ) from error
    if len(entries) > MAX_TENSORS:
        _corrupted(path, f"its header lists {len(entries)} tensors, more than {MAX_TENSORS}")
    return entries


def _parse_json(text: str) -> dict[str, Any]:
    if nesting_depth(text) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    content = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"key {key[:100]!r} occurs twice")
        content[key] = value
    return content


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _metadata(path: Any, reserved: Any) -> dict[str, Any]:
    text = reserved.get(METADATA_KEY) if isinstance(reserved, dict) else None
    if not isinstance(text, str):
        raise NotAModelError(
            f"model file {path}: is a safetensors file, but not a labeltree model; "
            "give a file that train wrote"
        )
    try:
        metadata = _parse_json(text)
    except (ValueError, RecursionError) as error:
        _corrupted(path, f"its metadata is not valid JSON ({error})")
    try:
        json.dumps(metadata, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        _corrupted(path, "its metadata has half of a surrogate pair")
    version = metadata.get("format")
    if type(version) is not int or version < 1:
        _corrupted(path, f"its format version must be a positive whole number, but is {version!r}")
    # Before any tensor is looked at: a newer format may lay them out in another way.
    if version > FORMAT_VERSION:
        raise NewerModelError(
            f"model file {path}: has format {version}, but this version of labeltree reads formats up to "
            f"{FORMAT_VERSION}; install a newer labeltree"
        )
    return metadata


def _tensor(path: Any, name: str, entry: Any) -> _Tensor:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _corrupted(path, f"tensor {name!r} must have exactly dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        _corrupted(path, f"tensor {name!r} has the unknown dtype {code!r}")
    dtype = DTYPES[code]
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
        _corrupted(path, f"tensor {name!r} must have at most {MAX_DIMENSIONS} axes of length 0 or more")
    if is_impossible(shape, dtype):
        _corrupted(path, f"tensor {name!r} has an impossible shape")
    if not _are_sizes(offsets) or len(offsets) != 2:
        _corrupted(path, f"tensor {name!r} must have two data_offsets of 0 or more")
    start, stop = offsets
    if stop - start != math.prod(shape) * dtype.itemsize:
        _corrupted(path, f"tensor {name!r} has {stop - start} bytes, which its shape and dtype contradict")
    return _Tensor(name, dtype, tuple(shape), start, stop)


def _are_sizes(values: Any) -> bool:
    # Below 2^62, so that sums and products of a few of them cannot surprise anybody.
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 62 for value in values)


def _check_layout(path: Any, tensors: list[_Tensor], data_start: int, size: int) -> None:
    """Tensors follow each other without holes, aligned, the digest last, to the end of the file."""
    if data_start % ALIGNMENT:
        _corrupted(path, f"its data starts at byte {data_start}, which is no multiple of {ALIGNMENT}")
    end = 0
    last = None
    for last in sorted(tensors, key=lambda tensor: (tensor.start, tensor.stop)):
        if last.start != end:
            _corrupted(path, f"tensor {last.name!r} starts at {last.start}, but the one before ends at {end}")
        if last.start % ALIGNMENT and not last.name.startswith(PAD_PREFIX):
            _corrupted(path, f"tensor {last.name!r} starts at {last.start}, no multiple of {ALIGNMENT}")
        end = last.stop
    if last is None or (last.name, last.dtype, last.shape) != (DIGEST_NAME, DTYPES["U8"], (DIGEST_BYTES,)):
        _corrupted(path, f"its last tensor is not a digest of {DIGEST_BYTES} bytes")
    if data_start + end > size:
        raise TruncatedModelError(
            f"model file {path}: ends after {size} of {data_start + end} bytes; {_ADVICE}"
        )
    if data_start + end < size:
        _corrupted(path, f"{size - data_start - end} bytes follow the end of the model")


def _check_digest(path: Any, buffer: mmap.mmap) -> None:
    digest = hashlib.sha256()
    end = len(buffer) - DIGEST_BYTES
    with memoryview(buffer) as view:
        for start in range(0, end, _HASH_BYTES):
            digest.update(view[start : min(start + _HASH_BYTES, end)])
    if digest.digest() != buffer[end:]:
        _corrupted(path, "its content does not match its digest")
