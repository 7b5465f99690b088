"""The parts of the benchmark of decisions that need no data set and no peer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import labeltree
from benchmarks.decisions import keep, kept, make_marginals, utility
from benchmarks.decisions_page import SETS


def test_what_is_expected_of_a_decision() -> None:
    marginals = csr_matrix([[0.5, 0.2, 0.0], [0.5, 0.0, 0.1]])
    decided = csr_matrix([[1, 0, 0], [1, 0, 0]])
    assert utility(marginals, decided, "macro-f1") == pytest.approx(2.0 / 3.0 / 3.0)
    assert utility(marginals, decided, "macro-precision") == pytest.approx(0.5 / 3.0)
    assert utility(marginals, decided, "macro-recall") == pytest.approx(1.0 / 3.0)
    assert utility(marginals, decided, "coverage") == pytest.approx(0.75 / 3.0)
    assert utility(marginals, decided, "p") == pytest.approx(1.0 / 10.0)


def test_probabilities_can_be_decided_from() -> None:
    marginals = make_marginals(40, 30, 20)
    decided = labeltree.decide(marginals, measure="coverage@5")
    assert (np.diff(decided.indptr) == 5).all()
    assert (make_marginals(40, 30, 20) != marginals).nnz == 0


def test_a_record_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    scores = {"micro-f1": 0.5, "instance-f1": 0.5, "macro-f1": 0.2, "coverage": 0.3, "p": 0.2}
    scores |= {"micro-precision": 0.95, "labels_per_row": 1.0}
    ranked = ("macro-f1@5", "0.97*macro-f1@5+0.03*p@5", "coverage@5", "psp@5")
    rules = dict.fromkeys((*SETS, "precision>=0.9", *ranked), scores)
    record = {
        "name": "acl-authors", "part": "rules", "tuned_on": 100, "top": scores, "rules": rules,
        "hindsight": dict.fromkeys(SETS, 0.1), "microseconds": {"top 5": 2.0, "psp@5": 4.0},
    }  # fmt: skip
    peer = {"theirs": 0.5, "ours": 0.5, "their_seconds": 4.0, "seconds": 0.1, "wall": [0.2, 0.15]}
    many = {"ours": 0.5, "seconds": 70.0, "wall": [71.0, 40.0], "bytes": 3_000_000}
    shape = {"rows": 1, "labels": 1, "candidates": 1}
    measured = {"part": "together", "shape": shape, "bytes": 8_000_000, "measures": {"p": many}}
    keep(tmp_path, {"name": "together", **measured})
    keep(tmp_path, {"name": "xcolumns", "part": "xcolumns", "shape": shape, "measures": {"p": peer}})
    keep(tmp_path, record)
    keep(tmp_path, {**record, "tuned_on": 200})
    assert [each["name"] for each in kept(tmp_path)] == ["acl-authors", "together", "xcolumns"]
    page = (tmp_path / "README.md").read_text()
    assert "| 200 " in page
    assert "| 40 " in page
    assert "0.200 / 0.150" in page
    assert "| 70.00   | MISSED | 71.000 / 40.000 | 3  |" in page
    assert "4 (2.00)" in page
    assert "Slower than 1.5 times: acl-authors psp@5." in page
