"""The page of the ablation: tables, bars, and what they say, all computed from the records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import aligned
from experiments.ablation_records import (
    COMPONENTS,
    FIXED,
    FULL,
    METRICS,
    VARIANTS,
    DataSet,
    Grid,
    Precisions,
    Variant,
    best_variants,
    deviation,
    gain,
    precisions,
    published,
    seeds_of,
)
from experiments.ablation_tuning import (
    describe_diverged,
    describe_edges,
    describe_epochs,
    describe_second_look,
    tuning_table,
)
from experiments.writing import load_pyplot, mean_and_deviation, save_figure, write_page

TITLES = tuple(name.upper() for name in METRICS)


def result_table(data: DataSet) -> str:
    """P@k on the test rows, the best of each in bold."""
    found = precisions(data)
    rows = [["variant", *TITLES, "train CPU s"]]
    for variant, outcome in data.items():
        cells = []
        for metric, name in enumerate(METRICS):
            shown = mean_and_deviation(run[name] for run in outcome.final)
            cells.append(f"**{shown}**" if variant in best_variants(found, metric) else shown)
        seconds = [run["cpu_seconds"] for run in outcome.final if "cpu_seconds" in run]
        rows.append([variant.title, *cells, f"{statistics.fmean(seconds):.1f}" if seconds else "diverged"])
    return aligned(rows)


def describe_spread(found: Mapping[str, DataSet]) -> list[str]:
    """What the tables and bars show, if there is more than one seed."""
    seeds = seeds_of(found)
    if len(seeds) == 1:
        return []
    return [f"Mean ± standard deviation over {len(seeds)} seeds, the highest mean in bold; bars: the same."]


def published_table() -> str:
    rows = [["set of the paper", *(variant.title for variant in VARIANTS)]]
    for name, found in published().items():
        cells = []
        for variant in VARIANTS:
            shown = [
                f"**{value:.2f}**" if variant in best_variants(found, metric) else f"{value:.2f}"
                for metric, value in enumerate(found[variant])
            ]
            cells.append(" / ".join(shown))
        rows.append([name, *cells])
    return aligned(rows)


def gain_table(results: Mapping[str, Precisions]) -> str:
    """The mean gain of each component: our sets, their mean, and that of the paper's sets."""
    rows = [["data set", *(component.title for component in COMPONENTS)]]
    groups = {name: [found] for name, found in results.items()}
    groups["mean of these"] = list(results.values())
    groups["mean of the paper's seven sets"] = list(published().values())
    for name, group in groups.items():
        cells = []
        for component in COMPONENTS:
            gains = [statistics.fmean(gain(found, component, m) for found in group) for m in range(3)]
            cells.append(" / ".join(f"{value:+.2f}" for value in gains))
        rows.append([name, *cells])
    return aligned(rows)


def standard_error(percent: float, n_rows: int) -> float:
    """Of a P@1 measured on so many test rows."""
    return 100 * math.sqrt(percent / 100 * (1 - percent / 100) / n_rows)


def judge_set(name: str, data: DataSet) -> str:
    """Where clustering + TF-IDF + L2 stands on a data set, against the best of the others."""
    found = precisions(data)
    rivals = {variant: values for variant, values in found.items() if variant != FULL}
    places = []
    for metric, title in enumerate(TITLES):
        rival = best_variants({FULL: (-1.0,) * 3, **rivals}, metric)[0]
        lead = found[FULL][metric] - rivals[rival][metric]
        verdict = "on top, ahead of" if lead > 0 else "level with" if lead == 0 else "**not** on top, behind"
        places.append(f"at {title} {verdict} {rival.title} ({lead:+.2f})")
    n_rows = data[FULL].final[0]["n_judged"]
    error = standard_error(found[FULL][0], n_rows)
    return (
        f"- **{name}**: {FULL.title} is {'; '.join(places)}. "
        f"A P@1 on {n_rows} test rows has a standard error of {error:.2f}."
    )


def judge_all(results: Mapping[str, Precisions]) -> list[str]:
    """Counts over data sets, beside the paper's claims."""

    def names(chosen: Sequence[str]) -> str:
        return f"{len(chosen)} of {len(results)} sets" + (f" ({', '.join(chosen)})" if chosen else "")

    lines = []
    for metric, title in enumerate(TITLES):
        top = [name for name, found in results.items() if best_variants(found, metric) == [FULL]]
        of_paper = [name for name, found in published().items() if best_variants(found, metric) == [FULL]]
        lines.append(
            f"- {FULL.title} has the best {title} on {names(top)}; in the paper on {len(of_paper)} of 7."
        )
    alone, rival = Variant("kmeans", "mean", False), Variant("huffman", "tf-idf", True)
    worse = [name for name, found in results.items() if found[alone][0] < found[rival][0]]
    lines.append(
        f"- The paper remarks that clustering alone does worse than {rival.title}: "
        f"so it is here, by P@1, on {names(worse)}."
    )
    helped = []
    for component in COMPONENTS:
        gained = [name for name, found in results.items() if gain(found, component, 0) > 0]
        helped.append(f"{component.title} on {len(gained)} of {len(results)}")
    lines.append(f"- The mean gain in P@1 is above 0 for {', '.join(helped)} sets.")
    return lines


def explain(found: Mapping[str, DataSet]) -> str:
    """Why the order of the variants need not be the paper's."""
    n_labels = [data[FULL].final[0]["n_labels"] for data in found.values()]
    groups = [n_groups(n) for n in n_labels]
    return (
        f"- The paper's sets have 3,993 to 670,091 labels, these {min(n_labels)} to {max(n_labels)}: "
        f"clustering halves them into {min(groups)} to {max(groups)} groups, so there is little tree to "
        "build well, and the classifiers of single labels, which all trees have, decide. That is how we "
        "read it; no run here tests it."
    )


def draw(data: Mapping[str, DataSet], path: Path) -> list[str]:
    """P@1 of the eight variants and its deviation over the seeds, a panel per data set."""
    pyplot = load_pyplot()
    if pyplot is None:
        return []
    n_columns = min(2, len(data))
    n_lines = math.ceil(len(data) / n_columns)
    figure, grid = pyplot.subplots(
        n_lines, n_columns, figsize=(5.6 * n_columns, 3.4 * n_lines), constrained_layout=True, squeeze=False
    )
    trees = (("huffman", "Huffman tree", "tab:gray"), ("kmeans", "clustering", "tab:blue"))
    for axes, (name, outcomes) in zip(grid.flat, data.items(), strict=False):
        found = precisions(outcomes)
        n_seeds = len(outcomes[FULL].final)
        for first, (tree, title, color) in zip((0.0, 4.6), trees, strict=True):
            chosen = [variant for variant in VARIANTS if variant.tree == tree]
            heights = [found[variant][0] for variant in chosen]
            spread = [deviation(outcomes, variant, 0) for variant in chosen] if n_seeds > 1 else None
            places = [first + i for i in range(4)]
            bars = axes.bar(places, heights, yerr=spread, color=color, label=title, error_kw={"lw": 1})
            axes.bar_label(bars, [f"{height:.1f}" for height in heights], fontsize=9, padding=1)
        parts = ["tree only", "+ L2", "+ TF-IDF", "+ TF-IDF\n+ L2"]
        axes.set_xticks([0, 1, 2, 3, 4.6, 5.6, 6.6, 7.6], parts * 2, fontsize=7.5)
        axes.set(ylabel="P@1 (percent)", title=name)
        axes.margins(y=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    for axes in list(grid.flat)[len(data) :]:
        axes.set_visible(False)
    return save_figure(figure, path)


def n_groups(n_labels: int) -> int:
    """Of halving the labels until no group has more than ``max_leaves``."""
    return (
        1 if n_labels <= FIXED["max_leaves"] else n_groups(n_labels // 2) + n_groups(n_labels - n_labels // 2)
    )


def describe_method(found: Mapping[str, DataSet], grid: Grid) -> list[str]:
    first = {name: data[FULL].final[0] for name, data in found.items()}
    numbered = [name for name, run in first.items() if run["input"] == "vectors"]
    sets = "; ".join(
        f"{name}: {run['n_train']} training rows, {run['n_judged']} test rows, {run['n_labels']} labels"
        for name, run in first.items()
    )
    lists = {
        name: ", ".join(f"{value:g}" for value in getattr(grid, name)) for name in ("lr", "l2", "epochs")
    }
    groups = ", ".join(f"{n_groups(run['n_labels'])} ({name})" for name, run in first.items())
    method = (
        "All eight variants are dense nodes trained online (SGD, one example per step, the step falling "
        f"linearly to 0), link plt, binary trees; clustering is balanced 2-means, eps {FIXED['kmeans_eps']}, "
        f"down to {FIXED['max_leaves']} labels: {groups} groups. L2 acts on all parameters but biases. "
        "Labels are clustered by the rows that are trained on, so TF-IDF may change the tree too."
    )
    tuning = (
        f"Every variant is tuned over lr {{{lists['lr']}}}, L2 {{{lists['l2']}}} (0 without), epochs "
        f"{{{lists['epochs']}}}: trained at dim {grid.tuning_dim} on nine tenths of the training rows, "
        "judged on the rest (contiguous blocks) by the mean of P@1, P@3 and P@5. Of each lr the best point "
        f"is then trained at dim {grid.final_dim} on the same rows and judged by the same; the best of these "
        f"finalists is trained at dim {grid.final_dim} on all training rows and judged on the test rows; "
        f"seeds: {', '.join(map(str, seeds_of(found)))}. Points at which training diverges are left out."
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
    return [f"{sets}.", method, tuning, weights]


def write(folder: Path, found: Mapping[str, DataSet], grid: Grid, command: str) -> str:
    """Write page and figure; the page's summary for the terminal."""
    results = {name: precisions(data) for name, data in found.items()}
    figures = draw(found, folder / "ablation-precision")
    tables = [f"### {name}\n\n{result_table(data)}" for name, data in found.items()]
    summary = "\n".join(
        [*judge_all(results), *(judge_set(name, data) for name, data in found.items()), explain(found)]
    )
    diverged = [line for name, data in found.items() for line in describe_diverged(name, data, grid)]
    sections = [
        "Figure 1 and Appendix E.3 of the paper: Huffman tree or clustering, mean or TF-IDF, no "
        "regularisation or L2.",
        "## What the records show",
        summary,
        "## What each part adds",
        "Mean over the four pairs of variants that differ in this part alone, P@1 / P@3 / P@5.",
        gain_table(results),
        "## Test rows",
        *describe_spread(found),
        *(f"![P@1 of the eight variants]({name})" for name in figures if name.endswith(".png")),
        *tables,
        "## The paper's own sets (published, P@1 / P@3 / P@5)",
        "Other data sets than ours, so only the order of the variants can be compared.",
        published_table(),
        "## How it was done",
        *describe_method(found, grid),
        "## Chosen values",
        f"With the mean of P@1, P@3 and P@5 on the held-out rows at both dims; of dim {grid.tuning_dim} also "
        "the worst that converged, and how many points of the grid did not.",
        *(f"### {name}: chosen values\n\n{tuning_table(data, grid)}" for name, data in found.items()),
        describe_edges(found, grid),
        describe_epochs(found, grid),
        *(["Finalists that diverged:", "\n".join(diverged)] if diverged else []),
        f"## Does tuning at dim {grid.tuning_dim} carry over to dim {grid.final_dim}?",
        *describe_second_look(found, grid),
    ]
    write_page(folder / "ablation.md", "Ablation", command, sections)
    return "\n\n".join([*tables, summary, gain_table(results)])
