"""Annif's lines, ``text<TAB><uri> <uri>``: labels are the subjects in angle brackets."""

from __future__ import annotations

import re

import numpy as np

from labeltree.data.lines import REASONS, LineFormat, Lines, Spans
from labeltree.kernels.scan import lines as scan

_SUBJECTS = re.compile(rb"(?:\s*<[^<>\s]+>)+\s*")
_FIX = "write text<TAB><uri> <uri>"
_REASONS = {
    **REASONS,
    scan.NO_TAB: ("expected a tab between text and subjects", _FIX),
    scan.NOT_A_SUBJECT: ("expected a subject in angle brackets", _FIX),
}


class _Annif(LineFormat):
    name = "annif"
    extensions = (".tsv",)
    example = "one two\t<http://a>\ntwo three\t<http://b>\n"
    reasons = _REASONS

    def begins(self, line: bytes) -> bool:
        _, _, subjects = line.partition(b"\t")
        return _SUBJECTS.fullmatch(subjects) is not None

    def where_labels_are(self, label_prefix: str) -> str:
        return "labels are the subjects in angle brackets after the tab"

    def scan(self, lines: Lines) -> Spans:
        n_lines, most_labels = len(lines.start), scan.count_byte(lines.buffer, scan.LESS)
        text_end, indptr = np.empty(n_lines, np.int64), np.empty(n_lines + 1, np.int64)
        start, end = np.empty(most_labels, np.int64), np.empty(most_labels, np.int64)
        n_labels = scan.scan_subjects(*lines, text_end, start, end, indptr)
        # copies: the arrays were made for the most there could be
        return Spans(
            lines.buffer, lines.start, text_end, start[:n_labels].copy(), end[:n_labels].copy(), indptr
        )


ANNIF = _Annif()
