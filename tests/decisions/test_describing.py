"""What a rule is, in a few numbers and in a line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import labeltree
from labeltree import cli
from labeltree.decisions.describing import rule_facts
from labeltree.decisions.rule import RankingRule, Rule, ThresholdRule

LEAST, MOST = np.float32([0.25, 0.5]), np.float32([1.0, 3.0])
SAME = np.float32([0.3, 0.3])


@pytest.mark.parametrize(
    ("rule", "facts", "text"),
    [
        (
            ThresholdRule("micro-f1", SAME),
            {"rule": "micro-f1", "rule_kind": "thresholds", "rule_threshold": 0.3},
            "thresholds for micro-f1, threshold 0.3",
        ),
        (
            ThresholdRule("macro-f1", LEAST),
            {
                "rule": "macro-f1",
                "rule_kind": "thresholds",
                "rule_threshold_min": 0.25,
                "rule_threshold_max": 0.5,
            },
            "thresholds for macro-f1, threshold 0.25 to 0.5",
        ),
        (
            RankingRule("psp@2", 2, MOST, np.zeros(2, np.float32)),
            {
                "rule": "psp@2",
                "rule_kind": "ranking",
                "rule_k": 2,
                "rule_weight_min": 1.0,
                "rule_weight_max": 3.0,
                "rule_summand": 0.0,
            },
            "ranking for psp@2, weight 1 to 3, summand 0",
        ),
    ],
)
def test_facts(rule: Rule, facts: dict[str, object], text: str) -> None:
    assert rule_facts(rule) == facts
    assert repr(rule) == f"<labeltree rule: {text}>"


def test_models_tell_their_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = labeltree.train(["flour", "broth"] * 5, [["a"], ["b"]] * 5, neighbours=0)
    assert "tuned" not in repr(model)
    model.rule = ThresholdRule("micro-f1", SAME)
    assert repr(model).endswith(", tuned for micro-f1>")
    model.save(tmp_path / "m")
    assert cli.main(["inspect", str(tmp_path / "m")]) == 0
    said = capsys.readouterr().out
    assert "rule tuned for: micro-f1\nkind of the rule: thresholds\n" in said
    assert "threshold of the rule, of all labels: 0.3\n" in said
    assert cli.main(["inspect", str(tmp_path / "m"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rule_threshold"] == 0.3
