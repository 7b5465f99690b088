"""How the ablation was done: its data sets, its tuning and the weights of rows, as the page says it."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.ablation_records import FIXED, FULL, Group, seeds_of


def n_groups(n_labels: int) -> int:
    """Of halving the labels until no group has more than ``max_leaves``."""
    return (
        1 if n_labels <= FIXED["max_leaves"] else n_groups(n_labels // 2) + n_groups(n_labels - n_labels // 2)
    )


def describe_sets(group: Group) -> str:
    first = {name: data[FULL].final[0] for name, data in group.found.items()}
    sets = "; ".join(
        f"{name}: {run['n_train']} training rows, {run['n_judged']} test rows, {run['n_labels']} labels in "
        f"{n_groups(run['n_labels'])} groups"
        for name, run in first.items()
    )
    return f"{group.title.capitalize()}: {sets}."


def describe_tuning(group: Group) -> str:
    grid, rows = group.grid, group.scale.rows
    lists = {
        name: ", ".join(f"{value:g}" for value in getattr(grid, name)) for name in ("lr", "l2", "epochs")
    }
    tuned_on = f"{rows['tune']} training rows drawn at random" if "tune" in rows else "the training rows"
    trained_on = f"{rows['final']} training rows" if "final" in rows else "all training rows"
    second = (
        f"Of each lr the best point is then trained at dim {grid.final_dim} on the same rows and judged by "
        "the same; the best of these finalists is"
        if grid.final_dim != grid.tuning_dim
        else "The best point is"
    )
    return (
        f"{group.title.capitalize()}: every variant is tuned over lr {{{lists['lr']}}}, L2 {{{lists['l2']}}} "
        f"(0 without), epochs {{{lists['epochs']}}}: trained at dim {grid.tuning_dim} on nine tenths of "
        f"{tuned_on}, judged on the rest (contiguous blocks) by the mean of P@1, P@3 and P@5. "
        f"{second} trained at dim {grid.final_dim} on {trained_on} and judged on the test "
        f"rows; seeds: {', '.join(map(str, seeds_of(group.found)))}. Points at which training diverges are "
        "left out."
    )


def describe_method(groups: Sequence[Group]) -> list[str]:
    first = {name: data[FULL].final[0] for group in groups for name, data in group.found.items()}
    numbered = [name for name, run in first.items() if run["input"] == "vectors"]
    method = (
        "All eight variants are dense nodes trained online (SGD, one example per step, the step falling "
        f"linearly to 0), link plt, binary trees; clustering is balanced 2-means, eps {FIXED['kmeans_eps']}, "
        f"down to {FIXED['max_leaves']} labels. L2 acts on all parameters but biases. "
        "Labels are clustered by the rows that are trained on, so TF-IDF may change the tree too."
    )
    weights = (
        "*Mean*: a row is the mean of its words' vectors, each as often as it occurs. *TF-IDF*: the mean "
        "weighted by count x IDF, IDF = 1 + ln((1 + N) / (1 + df)); weights of a row sum to 1 in both."
    )
    if numbered:
        weights += (
            f" {' and '.join(numbered)}: features are numbered columns without words; a column's value takes "
            "the place of the count, and its IDF is that of the rows in which it is not 0."
        )
    return [*map(describe_sets, groups), method, *map(describe_tuning, groups), weights]
