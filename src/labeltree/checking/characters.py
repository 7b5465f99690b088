"""Signs that a text was not read in the encoding that it was written in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A column each of what `odd_rows` gives.
SIGNS = ("replacement", "control", "mojibake")
N_SIGNS = len(SIGNS)

# The bytes that such characters begin with: all others, nearly all of a text, need no closer look.
_MAY_BEGIN = np.zeros(256, np.bool_)
_MAY_BEGIN[:32] = _MAY_BEGIN[127] = True
_MAY_BEGIN[[ord("\t"), ord("\n"), ord("\r")]] = False
_MAY_BEGIN[[0xC2, 0xC3, 0xEF]] = True


def odd_rows(
    buffer: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(n_rows, N_SIGNS) whether the text ``buffer[start:end]`` of a row, which is UTF-8, has

    the replacement character U+FFFD; a control character other than tab and line ends; two-byte characters
    that were read as two of Latin-1 or Windows-1252 each, such as ``Ã©`` for ``é`` and ``â€™`` for ``’``.
    """
    found = np.zeros((len(start), N_SIGNS), np.bool_)
    place = np.flatnonzero(_MAY_BEGIN[buffer])
    if len(place) == 0 or len(start) == 0:
        return found
    last = len(buffer) - 1
    first, second, third, fourth = (buffer[np.minimum(place + n, last)] for n in range(4))
    is_control = (first < 0xC2) | ((first == 0xC2) & (second < 0xA0))
    is_replacement = (first == 0xEF) & (second == 0xBF) & (third == 0xBD)
    is_latin = ((second == 0x82) | (second == 0x83)) & (third == 0xC2) & (fourth >= 0x80)
    is_quote = (second == 0xA2) & (third == 0xE2) & (fourth == 0x82)
    is_sign = np.stack([is_replacement, is_control, (first == 0xC3) & (is_latin | is_quote)], axis=1)
    is_any = is_sign.any(axis=1)
    place, is_sign = place[is_any], is_sign[is_any]
    order = np.argsort(start, kind="stable")
    row = order[np.maximum(np.searchsorted(start[order], place, "right") - 1, 0)]
    is_inside = (place >= start[row]) & (place < end[row])
    which, sign = np.nonzero(is_sign & is_inside[:, None])
    found[row[which], sign] = True
    return found
