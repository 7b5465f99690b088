"""What a reader of text hands to the features: some whole rows as spans of a byte buffer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """Consecutive rows of one source. In fastText lines the labels are words of the text span itself
    (those that start with the label prefix); other formats list them as spans of their own."""

    source: str  # file name for messages
    buffer: NDArray[np.uint8]  # the bytes all spans point into; words in them are separated by white space
    text_start: NDArray[np.int64]  # (n_rows,)
    text_end: NDArray[np.int64]  # (n_rows,)
    label_start: NDArray[np.int64]  # (n_row_labels,)
    label_end: NDArray[np.int64]  # (n_row_labels,)
    label_indptr: NDArray[
        np.int64
    ]  # (n_rows + 1,): row i has label spans label_indptr[i]:label_indptr[i + 1]
    line: NDArray[np.int64]  # (n_rows,) line number in the source, from 1
    labels_in_text: bool  # words of the text with the label prefix are labels (fastText lines)

    @property
    def n_rows(self) -> int:
        return len(self.text_start)
