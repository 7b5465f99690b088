"""Arithmetic that kernels share is accurate for every number."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.kernels.arithmetic import apply_softmax
from labeltree.reference import training as reference


@pytest.mark.parametrize("least", [-30.0, -88.0])
def test_softmax_is_accurate_for_every_score(least: float) -> None:
    """Siblings whose scores differ by anything up to what a float32 can hold, some impossible."""
    random = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 30.0, 1e3, 1e30, 3e38):
        for n in (1, 2, 3, 70):
            scores = (random.uniform(-1.0, 1.0, n) * scale).astype(np.float32)
            scores[1::3] = np.where(random.random(len(scores[1::3])) < 0.5, -np.inf, scores[1::3])
            found = np.append(scores, np.float32(7.0))
            apply_softmax(found, n, np.float32(least))
            expected = reference.softmax(dict(enumerate(scores.astype(np.float64).tolist())))
            np.testing.assert_allclose(found[:n], list(expected.values()), rtol=1e-5, atol=1e-13)
            assert found[:n].sum() == pytest.approx(1.0, abs=1e-6)
            assert found[n] == 7.0
            if least == -88.0:
                assert (found[:n][scores == -np.inf] == 0.0).all()
