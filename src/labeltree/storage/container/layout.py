"""What a container looks like, for reader and writer: names, types, limits.

The header (padded with spaces), the tensors in order of name, each starting at a multiple of 64 bytes of the
file, and last the SHA-256 of every byte before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

FORMAT_VERSION = 4  # of the metadata: tensors are laid out as they were in version 1
RESERVED_KEY, METADATA_KEY = "__metadata__", "labeltree"  # the first is safetensors' name, the second ours
DIGEST_NAME, DIGEST_BYTES = "digest", 32
PAD_PREFIX = "pad."
ALIGNMENT = 64  # a cache line, and the widest vector register
# safetensors itself allows 100 MB of header; parsing that much hostile JSON would take gigabytes.
MAX_HEADER_BYTES = 16_000_000
MAX_TENSORS = 100_000  # entries of the header, padding included
MAX_DIMENSIONS = 8
MAX_DEPTH = 32
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("bool"),
}
# Possessive, and the closing quote optional: linear in the text's length even where no string ever ends.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]}]', re.DOTALL)


def is_own_name(name: str) -> bool:
    """Whether a tensor is the format's own: the digest, or a gap between two others."""
    return name == DIGEST_NAME or name.startswith(PAD_PREFIX)


def is_impossible(shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """NumPy refuses to make even an empty array whose other axes multiply to more than an address."""
    return math.prod(max(length, 1) for length in shape) * dtype.itemsize >= 1 << 62


def nesting_depth(text: str) -> int:
    """How deep the brackets of a JSON text are nested; counting stops just above :data:`MAX_DEPTH`."""
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        first = match.group()[0]
        depth += (first in "[{") - (first in "]}")
        deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            break
    return deepest
