"""What a rule is, in a few numbers and in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeltree.decisions.rule import Rule


def rule_facts(rule: Rule) -> dict[str, Any]:
    """For `labeltree inspect`: its measure, kind and k, and its numbers, one for all labels or a range."""
    facts: dict[str, Any] = {"rule": rule.measure, "rule_kind": rule.kind}
    if rule.k:
        facts["rule_k"] = rule.k
    for name, array in zip(rule.tensor_names, rule.arrays, strict=True):
        least, most = (float(f"{value:.6g}") for value in (array.min(), array.max()))
        if least == most:
            facts[f"rule_{name}"] = least
        else:
            facts |= {f"rule_{name}_min": least, f"rule_{name}_max": most}
    return facts


def rule_text(rule: Rule) -> str:
    """``thresholds for macro-f1, threshold 0.1 to 0.6``."""
    facts = rule_facts(rule)
    parts = [f"{rule.kind} for {rule.measure}"]
    for name in rule.tensor_names:
        if f"rule_{name}" in facts:
            parts.append(f"{name} {facts[f'rule_{name}']:.3g}")
        else:
            parts.append(f"{name} {facts[f'rule_{name}_min']:.3g} to {facts[f'rule_{name}_max']:.3g}")
    return ", ".join(parts)
