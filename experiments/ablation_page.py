"""The page of the ablation: tables, bars, and what they say, all computed from the records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import aligned
from experiments.ablation_method import describe_method, n_groups
from experiments.ablation_records import (
    COMPONENTS,
    FULL,
    MANY,
    METRICS,
    VARIANTS,
    DataSet,
    Group,
    Precisions,
    Variant,
    best_variants,
    deviation,
    gain,
    precisions,
    published,
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
    n_seeds = max(len(data[FULL].final) for data in found.values())
    if n_seeds == 1:
        return []
    once = [name for name, data in found.items() if len(data[FULL].final) == 1]
    told = f" (one on {', '.join(once)})" if once else ""
    return [
        f"Mean ± standard deviation over {n_seeds} seeds{told}, the highest mean in bold; bars: the same."
    ]


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


def gain_table(groups: Sequence[Group]) -> str:
    """The mean gain of each component: our sets, the means of each group, and that of the paper's sets."""
    rows = [["data set", *(component.title for component in COMPONENTS)]]
    sets: dict[str, list[Precisions]] = {}
    for group in groups:
        results = group_precisions(group)
        sets |= {name: [found] for name, found in results.items()}
        sets[f"mean of these, {group.title}"] = list(results.values())
    sets["mean of the paper's seven sets"] = list(published().values())
    for name, chosen in sets.items():
        cells = []
        for component in COMPONENTS:
            gains = [statistics.fmean(gain(found, component, m) for found in chosen) for m in range(3)]
            cells.append(" / ".join(f"{value:+.2f}" for value in gains))
        rows.append([name, *cells])
    return aligned(rows)


def group_precisions(group: Group) -> dict[str, Precisions]:
    return {name: precisions(data) for name, data in group.found.items()}


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


def explain(groups: Sequence[Group]) -> str:
    """Whether it is the number of labels that makes the order of the variants the paper's."""
    shown = []
    for group in groups:
        n_labels = [data[FULL].final[0]["n_labels"] for data in group.found.values()]
        n_leaf_groups = [n_groups(n) for n in n_labels]
        results = list(group_precisions(group).values())
        on_top = sum(best_variants(found, 0) == [FULL] for found in results)
        gains = [
            f"{component.title} {statistics.fmean(gain(found, component, 0) for found in results):+.2f}"
            for component in COMPONENTS
        ]
        shown.append(
            f"With {min(n_labels)} to {max(n_labels)} labels, which clustering halves into "
            f"{min(n_leaf_groups)} to {max(n_leaf_groups)} groups, {FULL.title} is on top at P@1 on {on_top} "
            f"of {len(results)} sets, and the mean gains in P@1 are {', '.join(gains)}"
        )
    return (
        "- Is it the number of labels? The paper's sets have 3,993 to 670,091, and the more there are, the "
        f"more tree there is to build well. {'. '.join(shown)}. {judge_labels(groups)}"
    )


def judge_labels(groups: Sequence[Group]) -> str:
    """What the sets of many labels say of the paper's order, if there are any."""
    many = [found for group in groups if group.title == MANY for found in group_precisions(group).values()]
    if not many:
        return "No set of many labels was run, so this is not tested."
    n_top = sum(best_variants(found, 0) == [FULL] for found in many)
    helping = [
        component.title for component in COMPONENTS if all(gain(found, component, 0) > 0 for found in many)
    ]
    verdict = "refuted" if n_top == 0 else "confirmed" if n_top == len(many) else "partly confirmed"
    parts = f"{', '.join(helping)} above 0 on every one of them" if helping else "none helps on all of them"
    return (
        f"So the paper's order, all three parts together on top, is **{verdict}** where there are many "
        f"labels: on {n_top} of {len(many)} sets. Of the gains of the parts, {parts}."
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


def describe_choices(group: Group) -> list[str]:
    """What tuning chose on the sets of a group."""
    found, grid = group.found, group.grid
    diverged = [line for name, data in found.items() for line in describe_diverged(name, data, grid)]
    return [
        f"## Chosen values, {group.title}",
        f"With the mean of P@1, P@3 and P@5 on the held-out rows; of dim {grid.tuning_dim} also the worst "
        "that converged, and how many points of the grid did not.",
        *(f"### {name}: chosen values\n\n{tuning_table(data, grid)}" for name, data in found.items()),
        describe_edges(found, grid),
        *([describe_epochs(found, grid)] if len(grid.epochs) > 1 else []),
        *(["Finalists that diverged:", "\n".join(diverged)] if diverged else []),
        *describe_carrying_over(group),
    ]


def describe_carrying_over(group: Group) -> list[str]:
    """What a second look at another dim gave, if there was one."""
    grid = group.grid
    if grid.final_dim == grid.tuning_dim:
        return []
    title = f"## Does tuning at dim {grid.tuning_dim} carry over to dim {grid.final_dim}? ({group.title})"
    return [title, *describe_second_look(group.found, grid)]


def summarize(groups: Sequence[Group]) -> str:
    """What the records show."""
    lines = []
    for group in groups:
        lines += [f"{group.title.capitalize()}:\n", *judge_all(group_precisions(group))]
        lines += [*(judge_set(name, data) for name, data in group.found.items()), ""]
    return "\n".join([*lines, "Both together:\n" if len(groups) > 1 else "", explain(groups)])


def write(folder: Path, groups: Sequence[Group], command: str) -> str:
    """Write page and figure; the page's summary for the terminal."""
    found = {name: data for group in groups for name, data in group.found.items()}
    figures = draw(found, folder / "ablation-precision")
    tables = [f"### {name}\n\n{result_table(data)}" for name, data in found.items()]
    summary = summarize(groups)
    sections = [
        "Figure 1 and Appendix E.3 of the paper: Huffman tree or clustering, mean or TF-IDF, no "
        "regularisation or L2.",
        "## What the records show",
        summary,
        "## What each part adds",
        "Mean over the four pairs of variants that differ in this part alone, P@1 / P@3 / P@5.",
        gain_table(groups),
        "## Test rows",
        *describe_spread(found),
        *(f"![P@1 of the eight variants]({name})" for name in figures if name.endswith(".png")),
        *tables,
        "## The paper's own sets (published, P@1 / P@3 / P@5)",
        "Other data sets than ours, so only the order of the variants can be compared.",
        published_table(),
        "## How it was done",
        *describe_method(groups),
        *(section for group in groups for section in describe_choices(group)),
    ]
    write_page(folder / "ablation.md", "Ablation", command, sections)
    return "\n\n".join([*tables, summary, gain_table(groups)])
