"""Lines of a byte block: where they are, whether they are UTF-8, and the subjects of Annif lines.

A kernel that scans lines sets a line's status to 0, or to the code of what is wrong with it and its place to
the offending byte; :mod:`labeltree.data.lines` and the formats have the words for each code.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.characters import is_space, skip_space, utf8_width
from labeltree.kernels.jit import helper, kernel

GOOD = 0
BLANK = 1  # a line that is no row (blank lines of JSONL)
INVALID_UTF8 = 2
NO_TAB = 3
NOT_A_SUBJECT = 4

# Eight bytes at a time: the highest bit of each, and a space in each.
HIGH_BITS = np.uint64(0x8080808080808080)
SPACES = np.uint64(0x2020202020202020)

NUL, TAB, NEWLINE, RETURN, SPACE, LESS, GREATER = 0, 9, 10, 13, 32, 60, 62


@kernel
def count_byte(buffer, byte):
    """``bytes(buffer).count(byte)``"""
    count = 0
    for i in range(len(buffer)):
        count += buffer[i] == byte
    return count


@kernel
def find_last_newline(buffer, start, stop):
    """``bytes(buffer).rfind(b"\\n", start, stop)``"""
    for i in range(stop - 1, start - 1, -1):
        if buffer[i] == NEWLINE:
            return i
    return -1


@helper
def trim_return(buffer, start, end):
    """``end`` without the carriage return of a line that ended in CR LF."""
    return end - 1 if end > start and buffer[end - 1] == RETURN else end


@kernel
def scan_lines(buffer, first, out_start, out_end, out_status, out_place):
    """Fill in the lines of ``buffer[first:]``, check that they are UTF-8, and return their number.

    NUL bytes become spaces in the buffer itself, so that nothing downstream has to know about them.
    Equivalent to :func:`labeltree.reference.scan.scan_lines`.
    """
    n_lines = 0
    start = first
    status = GOOD
    place = first
    stop = len(buffer)
    words = buffer[: stop // 8 * 8].view(np.uint64)
    i = first
    while i < stop:
        if i % 8 == 0:  # almost all bytes are printable ASCII: no subtraction borrows, no high bit
            w = i // 8
            while w < len(words) and ((words[w] - SPACES) | words[w]) & HIGH_BITS == 0:
                w += 1
            i = 8 * w
            if i == stop:
                break
        byte = buffer[i]
        if byte >= 32 and byte < 128:
            i += 1
        elif byte == NEWLINE:
            out_start[n_lines] = start
            out_end[n_lines] = trim_return(buffer, start, i)
            out_status[n_lines] = status
            out_place[n_lines] = place
            n_lines += 1
            i += 1
            start = i
            status = GOOD
        elif byte >= 128:
            width = utf8_width(buffer, i, stop)
            if width == 0 and status == GOOD:
                status = INVALID_UTF8
                place = i
            i += max(width, 1)
        else:
            if byte == NUL:
                buffer[i] = SPACE
            i += 1
    if start < stop:  # the last line has no newline
        out_start[n_lines] = start
        out_end[n_lines] = trim_return(buffer, start, stop)
        out_status[n_lines] = status
        out_place[n_lines] = place
        n_lines += 1
    return n_lines


@kernel
def scan_subjects(
    buffer,
    line_start,
    line_end,
    out_status,
    out_place,
    out_text_end,
    out_label_start,
    out_label_end,
    out_indptr,
):
    """Split Annif lines, ``text<TAB><uri> <uri>``, that are good so far; an empty line is an empty row.

    Equivalent to :func:`labeltree.reference.scan.scan_subjects`.
    """
    n_labels = 0
    out_indptr[0] = 0
    for row in range(len(line_start)):
        i = line_start[row]
        end = line_end[row]
        while i < end and buffer[i] != TAB:
            i += 1
        out_text_end[row] = i
        row_labels = n_labels
        if out_status[row] == GOOD and i == end and i > line_start[row]:
            out_status[row] = NO_TAB
            out_place[row] = line_start[row]
        while i < end and out_status[row] == GOOD:
            i = skip_space(buffer, i, end)
            token = i
            n_brackets = 0
            while i < end and not is_space(buffer[i]):
                n_brackets += buffer[i] == LESS or buffer[i] == GREATER
                i += 1
            if i == token:
                break
            wrapped = buffer[token] == LESS and buffer[i - 1] == GREATER
            if not wrapped or n_brackets != 2 or i - token < 3:
                out_status[row] = NOT_A_SUBJECT
                out_place[row] = token
                row_labels = n_labels
            else:
                out_label_start[row_labels] = token + 1
                out_label_end[row_labels] = i - 1
                row_labels += 1
        n_labels = row_labels  # a bad line leaves none behind
        out_indptr[row + 1] = n_labels
    return n_labels
