"""How the scores of siblings become probabilities, as the kernels know it."""

from __future__ import annotations

SIGMOID = 0  # plt: one logistic per node
NORMALIZED = 1  # ... and siblings whose probabilities sum to less than 1 are rescaled
SOFTMAX = 2  # hsm


def link_code(link: str, normalize: bool) -> int:
    """What a search is told; a softmax is normalised as it is."""
    if link == "hsm":
        return SOFTMAX
    return NORMALIZED if normalize else SIGMOID
