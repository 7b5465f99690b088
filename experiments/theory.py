"""The paper's theory, run: each claim computed exactly on small distributions, with PASS or FAIL.

    python -m experiments.theory [--quick] [--output FOLDER]

The exit code is 1 if a check fails. Both sides of the paper's claims are finite sums over all label sets, in
float64; the last two checks train models, and compare what these say with such sums.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from experiments.theory_bounds import check_theorem_1, check_theorem_2
from experiments.theory_checks import (
    Check,
    check_counterexample,
    check_huffman,
    check_independent,
    check_label_trees,
    check_multi_class,
)
from experiments.theory_trained import check_trained
from experiments.writing import output_folder, parser_of, write_csv, write_page

VERDICTS = {True: "PASS", False: "FAIL"}
# Each check with its number of random cases, in full and with --quick.
RANDOM_CHECKS: tuple[tuple[Callable[[int], Check], int, int], ...] = (
    (check_counterexample, 1000, 100),
    (check_independent, 2000, 200),
    (check_label_trees, 200, 40),
    (check_multi_class, 100, 40),
    (check_theorem_1, 60000, 6000),
    (check_theorem_2, 60000, 6000),
    (check_huffman, 100, 20),
)
LINKS = ("plt", "hsm")


def shown(check: Check) -> str:
    lines = [f"{VERDICTS[check.passed]:<8}{check.name}", *(f"        {line}" for line in check.computed)]
    return "\n".join(lines)


def section(check: Check) -> str:
    results = "\n".join(f"- {line}" for line in check.computed)
    return f"## {check.name}: {VERDICTS[check.passed]}\n\n{check.claim}\n\n{results}"


def summary(checks: Sequence[Check]) -> str:
    n_failed = sum(not check.passed for check in checks)
    failing = f", {n_failed} fail" if n_failed else ""
    return f"{len(checks) - n_failed} of {len(checks)} checks pass{failing}."


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parser_of(__doc__ or "").parse_args(arguments)
    folder = output_folder(chosen)
    checks = []
    for make in [
        *(lambda f=f, n=quick if chosen.quick else full: f(n) for f, full, quick in RANDOM_CHECKS),
        *(lambda link=link: check_trained(link) for link in LINKS),
    ]:
        checks.append(make())
        print(shown(checks[-1]), flush=True)
    write_csv(
        folder / "theory.csv",
        [
            dict(check=check.name, verdict=VERDICTS[check.passed], computed="; ".join(check.computed))
            for check in checks
        ],
    )
    command = "python -m experiments.theory" + (" --quick" if chosen.quick else "")
    write_page(
        folder / "theory.md",
        "The paper's theory, computed",
        command,
        [
            "Both sides of each of the paper's claims are finite sums over all label sets of small "
            "distributions; what trained models say is compared with such sums. The theorems are those of "
            "Wydmuch et al. (2018), trees and training labeltree's. " + summary(checks),
            *(section(check) for check in checks),
        ],
    )
    print(summary(checks))
    return int(any(not check.passed for check in checks))


if __name__ == "__main__":
    sys.exit(main())
