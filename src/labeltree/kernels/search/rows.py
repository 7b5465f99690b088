"""A single row made ready in one call, for searches that more than one kernel has a part in."""

from __future__ import annotations

from labeltree.kernels.addresses import frozen
from labeltree.kernels.check import CANONICAL, check_row
from labeltree.kernels.jit import kernel
from labeltree.kernels.text.rows import NORM_NONE, normalize_row
from labeltree.kernels.text.short import transform_text


@kernel
def ready_row(indices, values, n, norm, n_features):
    """Check the first ``n`` entries and normalise them, in place; returns what is wrong, or CANONICAL."""
    code, _ = check_row(indices, values, 0, n, n_features)
    if code == CANONICAL and norm != NORM_NONE:
        normalize_row(values, 0, n, norm)
    return code


@kernel
def ready_text(text_table, text):
    """Fill the row of a short text in its table; returns its length, or -1 if there is something wrong."""
    return transform_text(text_table, frozen(text))
