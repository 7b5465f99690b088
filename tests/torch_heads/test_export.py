"""What is exported is served without torch, with torch's probabilities."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.torch_trees import fill

import labeltree
from labeltree.errors import DataError

pytest.importorskip("torch.nn", reason="torch is not installed: pip install 'labeltree[torch]'")
import torch

from labeltree.torch import HSMHead, PLTHead

HEADS = {"plt": PLTHead, "hsm": HSMHead}
N_LABELS, DIM = 300, 24


@pytest.fixture(scope="module", params=HEADS)
def head(request: pytest.FixtureRequest) -> object:
    torch.set_num_threads(1)
    random = np.random.default_rng(1)
    Y = [random.choice(N_LABELS, 3, replace=False).tolist() for _ in range(900)]
    built = HEADS[request.param].build(Y, in_features=DIM, n_labels=N_LABELS, arity=8, max_leaves=12)
    fill(built, 7)
    return built


def test_a_loaded_model_has_the_probabilities_of_torch(head: PLTHead, tmp_path: Path) -> None:
    names = [f"label {label}" for label in range(N_LABELS)]
    head.export(tmp_path / "m.labeltree", names, card={"licence": "CC0-1.0"})
    model = labeltree.load(tmp_path / "m.labeltree")
    h = torch.randn(50, DIM)
    expected = head.log_prob(h).exp().detach().numpy()
    np.testing.assert_allclose(model.probability(h.numpy(), names), expected, rtol=1e-5, atol=1e-7)
    ids, best = model.predict_arrays(h.numpy(), k=10)
    np.testing.assert_allclose(best, np.take_along_axis(expected, ids, 1), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(best, -np.sort(-expected, axis=1)[:, :10], rtol=1e-5, atol=1e-7)
    assert np.array_equal(ids, head.predict(h, 10)[0].numpy())
    assert model.predict(h.numpy()[:1], k=1)[0][0][0] == names[ids[0, 0]]
    told = model.inspect()
    assert told["card"] == {"licence": "CC0-1.0"}
    assert told["n_examples"] == 900
    assert model.label_counts.sum() == 2700


def test_a_model_stays_as_it_was_when_training_goes_on(head: PLTHead) -> None:
    h = np.ones((2, DIM), np.float32)
    model = head.to_model()
    before = model.probability(h, ["3"])
    with torch.no_grad():
        head.weight.add_(0.5)
    assert np.array_equal(model.probability(h, ["3"]), before)
    fill(head, 7)


def test_no_torch_is_imported_to_serve(head: PLTHead, tmp_path: Path) -> None:
    path = tmp_path / "m.labeltree"
    head.export(path)
    check = f"""
import sys, numpy, labeltree
labeltree.load({str(path)!r}).predict(numpy.ones((2, {DIM}), "f4"))
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_wrong_names_are_refused(head: PLTHead, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"label_names are 1, but the tree has {N_LABELS}"):
        head.export(tmp_path / "m", ["one"])
    assert not (tmp_path / "m").exists()
