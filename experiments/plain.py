"""labeltree with what the paper's models have and no more, whatever its defaults are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Words between white space and nothing beside them, trees with levels, and their probabilities as they come.
# Values to start from: an experiment's own settings override them.
PLAIN: dict[str, Any] = dict(
    tokens="spaces", char_weight=0.0, pair_weight=0.0, max_leaves=64, calibrate=False, neighbours=0
)


def plain_idf(train: Path, wanted: bool = True) -> bool:
    """Whether labeltree is to weigh features: not those that are numbered, which are taken as they are."""
    return wanted and not is_numbered(train)


def is_numbered(file: Path) -> bool:
    """Whether a file begins with its numbers of rows, features and labels."""
    with file.open("rb") as source:
        header = source.readline().split()
    return len(header) == 3 and all(word.isdigit() for word in header)
