"""fastText lines, ``__label__a some words``: labels are the words with the label prefix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.data.lines import LineFormat, Lines, Spans

_NO_SPANS: NDArray[np.int64] = np.empty(0, np.int64)


class _FastText(LineFormat):
    name = "fasttext"
    example = "__label__a one two\n__label__b two three\n"
    labels_in_text = True

    def begins(self, line: bytes) -> bool:
        return line.startswith(b"__label__")

    def where_labels_are(self, label_prefix: str) -> str:
        return f"labels are words that start with {label_prefix!r} (label_prefix, --label-prefix)"

    def scan(self, lines: Lines) -> Spans:
        """Words and labels are told apart where texts are split."""
        no_labels = np.zeros(len(lines.start) + 1, np.int64)
        return Spans(lines.buffer, lines.start, lines.end, _NO_SPANS, _NO_SPANS, no_labels)


FASTTEXT = _FastText()
