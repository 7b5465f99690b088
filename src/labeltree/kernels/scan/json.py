"""JSON lines ``{"text": "...", "labels": ["...", ...]}``: spans of text and labels, unescaped in place.

Unescaping never makes a string longer, so it happens inside the string's own bytes and nothing is copied.
Helpers take a position and return ``(next position, code)``; with a code other than 0 the position is the
place of the error.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import helper, kernel

GOOD = 0
BLANK = 1
NOT_AN_OBJECT = 20
UNFINISHED = 21
CONTROL_CHARACTER = 22
BAD_ESCAPE = 23
LONE_SURROGATE = 24
EXPECTED_KEY = 25
EXPECTED_COLON = 26
EXPECTED_VALUE = 27
EXPECTED_COMMA = 28
TOO_DEEP = 29
TRAILING = 30
NO_TEXT = 31
TEXT_NOT_STRING = 32
LABELS_NOT_ARRAY = 33
LABEL_NOT_STRING = 34
EMPTY_LABEL = 35

MAX_DEPTH = 256

QUOTE, COMMA, COLON, BACKSLASH = 34, 44, 58, 92
OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT = 91, 93, 123, 125
CLOSING = 2  # both closing brackets stand two places after their opening ones in ASCII
TEXT_KEY = b"text"
LABELS_KEY = b"labels"


@helper
def skip_space(buffer, i, end):
    while i < end and (buffer[i] == 32 or buffer[i] == 9 or buffer[i] == 13):
        i += 1
    return i


@helper
def parse_hex4(buffer, i, end):
    """The number written in four hexadecimal digits at ``i``, or -1."""
    if i + 4 > end:
        return -1
    number = 0
    for j in range(i, i + 4):
        byte = np.int64(buffer[j])
        if byte >= 48 and byte <= 57:
            number = number * 16 + byte - 48
        elif (byte | 32) >= 97 and (byte | 32) <= 102:
            number = number * 16 + (byte | 32) - 87
        else:
            return -1
    return number


@helper
def scan_escape(buffer, i, end):
    """Check the escape at the backslash ``i``; a surrogate pair counts as one escape."""
    if i + 1 >= end:
        return i, UNFINISHED
    kind = buffer[i + 1]
    if kind == 34 or kind == 92 or kind == 47:  # " \ /
        return i + 2, GOOD
    if kind == 98 or kind == 102 or kind == 110 or kind == 114 or kind == 116:  # b f n r t
        return i + 2, GOOD
    if kind != 117:  # u
        return i, BAD_ESCAPE
    unit = parse_hex4(buffer, i + 2, end)
    if unit < 0:
        return i, BAD_ESCAPE
    if unit < 0xD800 or unit > 0xDFFF:
        return i + 6, GOOD
    if unit > 0xDBFF or i + 8 > end or buffer[i + 6] != BACKSLASH or buffer[i + 7] != 117:
        return i, LONE_SURROGATE
    low = parse_hex4(buffer, i + 8, end)
    if low < 0xDC00 or low > 0xDFFF:
        return i, LONE_SURROGATE
    return i + 12, GOOD


@helper
def scan_string(buffer, i, end):
    """Check the string whose opening quote is at ``i``; also tells whether it has escapes."""
    opening = i
    has_escape = False
    i += 1
    while i < end:
        byte = buffer[i]
        if byte == QUOTE:
            return i + 1, GOOD, has_escape
        if byte == BACKSLASH:
            has_escape = True
            i, code = scan_escape(buffer, i, end)
            if code != GOOD:
                return i, code, has_escape
        elif byte < 32:
            return i, CONTROL_CHARACTER, has_escape
        else:
            i += 1
    return opening, UNFINISHED, has_escape


@helper
def write_utf8(buffer, i, point):
    """Write a character's bytes at ``i`` and return where they end; U+0000 becomes a space."""
    if point == 0:
        point = 32
    if point < 0x80:
        buffer[i] = point
        return i + 1
    if point < 0x800:
        buffer[i] = 0xC0 | (point >> 6)
        buffer[i + 1] = 0x80 | (point & 0x3F)
        return i + 2
    if point < 0x10000:
        buffer[i] = 0xE0 | (point >> 12)
        buffer[i + 1] = 0x80 | ((point >> 6) & 0x3F)
        buffer[i + 2] = 0x80 | (point & 0x3F)
        return i + 3
    buffer[i] = 0xF0 | (point >> 18)
    buffer[i + 1] = 0x80 | ((point >> 12) & 0x3F)
    buffer[i + 2] = 0x80 | ((point >> 6) & 0x3F)
    buffer[i + 3] = 0x80 | (point & 0x3F)
    return i + 4


@helper
def unescape(buffer, start, end):
    """Replace the escapes of the checked string ``buffer[start:end]`` in place and return its new end."""
    write = start
    i = start
    while i < end:
        if buffer[i] != BACKSLASH:
            buffer[write] = buffer[i]
            write += 1
            i += 1
            continue
        kind = np.int64(buffer[i + 1])
        if kind == 117:
            point = parse_hex4(buffer, i + 2, end)
            i += 6
            if point >= 0xD800 and point <= 0xDBFF:
                point = 0x10000 + ((point - 0xD800) << 10) + parse_hex4(buffer, i + 2, end) - 0xDC00
                i += 6
        else:
            i += 2
            point = kind
            if kind == 98:
                point = 8
            elif kind == 102:
                point = 12
            elif kind == 110:
                point = 10
            elif kind == 114:
                point = 13
            elif kind == 116:
                point = 9
        write = write_utf8(buffer, write, point)
    return write


@helper
def read_string(buffer, i, end):
    """Check and unescape the string at ``i``: next position, code, start and end of its content."""
    after, code, has_escape = scan_string(buffer, i, end)
    content_end = after - 1
    if code == GOOD and has_escape:
        content_end = unescape(buffer, i + 1, after - 1)
    return after, code, i + 1, content_end


@helper
def scan_digits(buffer, i, end):
    while i < end and buffer[i] >= 48 and buffer[i] <= 57:
        i += 1
    return i


@helper
def scan_number(buffer, i, end):
    start = i
    if i < end and buffer[i] == 45:
        i += 1
    whole = i
    i = scan_digits(buffer, i, end)
    if i == whole or (buffer[whole] == 48 and i > whole + 1):  # no digit, or a leading zero
        return start, EXPECTED_VALUE
    if i < end and buffer[i] == 46:
        fraction = i + 1
        i = scan_digits(buffer, fraction, end)
        if i == fraction:
            return start, EXPECTED_VALUE
    if i < end and (buffer[i] | 32) == 101:
        i += 1
        if i < end and (buffer[i] == 43 or buffer[i] == 45):
            i += 1
        exponent = i
        i = scan_digits(buffer, i, end)
        if i == exponent:
            return start, EXPECTED_VALUE
    return i, GOOD


@helper
def starts_with(buffer, i, end, word):
    if i + len(word) > end:
        return False
    for j in range(len(word)):  # noqa: SIM110 (all() over a generator does not compile)
        if buffer[i + j] != word[j]:
            return False
    return True


@helper
def scan_scalar(buffer, i, end):
    """Check the string, number, ``true``, ``false`` or ``null`` at ``i``."""
    if buffer[i] == QUOTE:
        i, code, _ = scan_string(buffer, i, end)
        return i, code
    if starts_with(buffer, i, end, b"true") or starts_with(buffer, i, end, b"null"):
        return i + 4, GOOD
    if starts_with(buffer, i, end, b"false"):
        return i + 5, GOOD
    return scan_number(buffer, i, end)


@helper
def read_key(buffer, i, end):
    """Read ``"key":`` at ``i``: next position, code, start and end of the key."""
    i = skip_space(buffer, i, end)
    if i >= end:
        return i, UNFINISHED, i, i
    if buffer[i] != QUOTE:
        return i, EXPECTED_KEY, i, i
    i, code, key_start, key_end = read_string(buffer, i, end)
    if code != GOOD:
        return i, code, key_start, key_end
    i = skip_space(buffer, i, end)
    if i >= end:
        return i, UNFINISHED, key_start, key_end
    if buffer[i] != COLON:
        return i, EXPECTED_COLON, key_start, key_end
    return skip_space(buffer, i + 1, end), GOOD, key_start, key_end


@helper
def skip_value(buffer, i, end, stack):
    """Check any value at ``i``; ``stack`` holds the open brackets (no recursion: lines may be hostile)."""
    depth = 0
    needs_key = False
    while True:
        if needs_key:
            i, code, _, _ = read_key(buffer, i, end)
            if code != GOOD:
                return i, code
        i = skip_space(buffer, i, end)
        if i >= end:
            return i, UNFINISHED
        bracket = buffer[i]
        if bracket in (OPEN_OBJECT, OPEN_ARRAY):
            if depth == len(stack):
                return i, TOO_DEEP
            i = skip_space(buffer, i + 1, end)
            if i >= end or buffer[i] != bracket + CLOSING:
                stack[depth] = bracket
                depth += 1
                needs_key = bracket == OPEN_OBJECT
                continue
            i += 1
        else:
            i, code = scan_scalar(buffer, i, end)
            if code != GOOD:
                return i, code
        # A value has ended: close what ends with it, then go on to the next one.
        while depth > 0:
            i = skip_space(buffer, i, end)
            if i >= end or buffer[i] != stack[depth - 1] + CLOSING:
                break
            depth -= 1
            i += 1
        if depth == 0:
            return i, GOOD
        if i >= end:
            return i, UNFINISHED
        if buffer[i] != COMMA:
            return i, EXPECTED_COMMA
        i += 1
        needs_key = stack[depth - 1] == OPEN_OBJECT


@helper
def read_labels(buffer, i, end, n_labels, out_label_start, out_label_end):
    """Read an array of strings or numbers (kept as written) at ``i``, or ``null``: no labels."""
    if starts_with(buffer, i, end, b"null"):
        return i + 4, GOOD, n_labels
    if i >= end or buffer[i] != OPEN_ARRAY:
        return i, LABELS_NOT_ARRAY, n_labels
    i = skip_space(buffer, i + 1, end)
    if i < end and buffer[i] == CLOSE_ARRAY:
        return i + 1, GOOD, n_labels
    while i < end:
        label = i
        if buffer[i] == QUOTE:
            i, code, start, stop = read_string(buffer, i, end)
        else:
            start = i
            i, code = scan_number(buffer, i, end)
            stop = i
            if code != GOOD:
                code = LABEL_NOT_STRING
        if code != GOOD:
            return i, code, n_labels
        if start == stop:
            return label, EMPTY_LABEL, n_labels
        out_label_start[n_labels] = start
        out_label_end[n_labels] = stop
        n_labels += 1
        i = skip_space(buffer, i, end)
        if i < end and buffer[i] == CLOSE_ARRAY:
            return i + 1, GOOD, n_labels
        if i < end and buffer[i] != COMMA:
            return i, EXPECTED_COMMA, n_labels
        i = skip_space(buffer, i + 1, end)
    return end, UNFINISHED, n_labels


@helper
def read_object(buffer, i, end, n_labels, stack, out_label_start, out_label_end):
    """Read the object at ``i``: place, code, start and end of the text, labels so far. The last key wins."""
    first_label = n_labels
    text_start = -1
    text_end = -1
    if buffer[i] != OPEN_OBJECT:
        return i, NOT_AN_OBJECT, text_start, text_end, n_labels
    opening = i
    i = skip_space(buffer, i + 1, end)
    while i >= end or buffer[i] != CLOSE_OBJECT:
        i, code, key_start, key_end = read_key(buffer, i, end)
        if code != GOOD:
            return i, code, text_start, text_end, n_labels
        length = key_end - key_start
        if length == len(TEXT_KEY) and starts_with(buffer, key_start, key_end, TEXT_KEY):
            if i >= end or buffer[i] != QUOTE:
                return i, TEXT_NOT_STRING, text_start, text_end, n_labels
            i, code, text_start, text_end = read_string(buffer, i, end)
        elif length == len(LABELS_KEY) and starts_with(buffer, key_start, key_end, LABELS_KEY):
            i, code, n_labels = read_labels(buffer, i, end, first_label, out_label_start, out_label_end)
        else:
            i, code = skip_value(buffer, i, end, stack)
        if code != GOOD:
            return i, code, text_start, text_end, n_labels
        i = skip_space(buffer, i, end)
        if i < end and buffer[i] == COMMA:
            i = skip_space(buffer, i + 1, end)
            if i < end and buffer[i] == CLOSE_OBJECT:
                return i, EXPECTED_KEY, text_start, text_end, n_labels
        elif i >= end or buffer[i] != CLOSE_OBJECT:
            return i, UNFINISHED if i >= end else EXPECTED_COMMA, text_start, text_end, n_labels
    i = skip_space(buffer, i + 1, end)
    if i < end:
        return i, TRAILING, text_start, text_end, n_labels
    if text_start < 0:
        return opening, NO_TEXT, text_start, text_end, n_labels
    return i, GOOD, text_start, text_end, n_labels


@kernel
def scan_objects(
    buffer,
    line_start,
    line_end,
    out_status,
    out_place,
    out_text_start,
    out_text_end,
    out_label_start,
    out_label_end,
    out_indptr,
):
    """Read the JSON lines that are good so far; blank lines get the status BLANK.

    Equivalent to :func:`labeltree.reference.scan.scan_objects`.
    """
    stack = np.empty(MAX_DEPTH, np.uint8)
    n_labels = 0
    out_indptr[0] = 0
    for row in range(len(line_start)):
        end = line_end[row]
        i = skip_space(buffer, line_start[row], end)
        if i >= end:
            out_status[row] = BLANK
        if out_status[row] == GOOD:
            place, code, text_start, text_end, row_labels = read_object(
                buffer, i, end, n_labels, stack, out_label_start, out_label_end
            )
            out_status[row] = code
            out_place[row] = place
            out_text_start[row] = text_start
            out_text_end[row] = text_end
            if code == GOOD:
                n_labels = row_labels
        out_indptr[row + 1] = n_labels
    return n_labels
