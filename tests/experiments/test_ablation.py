"""The ablation: rows are weighted as said, the best values are used, and the page says what the runs show."""

from __future__ import annotations

import csv
import json
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labeltree
from experiments import ablation, ablation_method, ablation_page, ablation_tuning
from experiments.ablation import (
    DEFAULTS,
    PAPER_GRID,
    QUICK_GRID,
    QUICK_SCALES,
    SCALES,
    Rows,
    fit_and_judge,
    generated_files,
    points,
    prepare,
)
from experiments.ablation_records import (
    COMPONENTS,
    FIXED,
    FULL,
    VARIANTS,
    DataSet,
    Group,
    Outcome,
    Variant,
    best_variants,
    deviation,
    gain,
    precisions,
    published,
    ranked,
)
from experiments.ledger import Ledger
from experiments.plain import PLAIN
from experiments.writing import mean_and_deviation
from labeltree.config import Config
from labeltree.metrics import evaluate

KEY = {"tree": "kmeans", "lr": 1.0, "l2": 0.001, "epochs": 3, "dim": 8, "seed": 1}


def final(values: tuple[float, ...], **more: Any) -> dict[str, Any]:
    p_1, p_3, p_5 = values
    chosen = {"lr": 0.1, "l2": 0.0, "epochs": 20, "seed": 1, "dim": 500, "n_judged": 900, "input": "text"}
    chosen |= {"n_train": 1000, "n_labels": 150, "diverged": ""}
    return {**chosen, "p@1": p_1, "p@3": p_3, "p@5": p_5, "cpu_seconds": 1.0, **more}


def data_set(p_1: Callable[[Variant], float]) -> DataSet:
    """P@3 and P@5 are a half and a third of P@1."""
    outcomes = {}
    for variant in VARIANTS:
        run = final((p_1(variant), p_1(variant) / 2, p_1(variant) / 3), l2=0.001 * variant.has_l2)
        outcomes[variant] = Outcome([{**run, "dim": 100}], [run], [], [run])
    return outcomes


def additive(variant: Variant) -> float:
    return 60.0 + 6 * (variant.tree == "kmeans") + 3 * (variant.weights == "tf-idf") + 1.5 * variant.has_l2


def test_the_grid_is_the_papers() -> None:
    keys = [key for variant in VARIANTS for key in points("some", variant, SCALES["few labels"])]
    assert len(keys) == 4 * 9 + 4 * 27
    assert len({json.dumps(key) for key in keys}) == len(keys)
    assert Counter(key["l2"] for key in keys) == {0.0: 36, 0.001: 36, 0.002: 36, 0.003: 36}
    assert Counter(key["lr"] for key in keys) == dict.fromkeys((0.5, 0.1, 0.05), 48)
    assert Counter(key["epochs"] for key in keys) == dict.fromkeys((20, 30, 40), 48)


@pytest.mark.parametrize("weights", ["mean", "tf-idf"])
def test_texts_are_trained_on_as_labeltree_itself_does(tmp_path: Path, weights: str) -> None:
    train, test = generated_files(tmp_path, "words")
    found = fit_and_judge(prepare(train, test, weights), KEY, 1)
    given = {**FIXED, **KEY, "tf": "count", "idf": weights == "tf-idf", "row_norm": "mean"}
    model = labeltree.train(str(train), threads=1, config=Config(**PLAIN), **given)
    X, Y, _ = model.read(test)
    expected = evaluate(model.predict_arrays(X, 5)[0], Y, (1, 3, 5))
    assert {name: found[name] for name in ("p@1", "p@3", "p@5")} == pytest.approx(
        {name: 100 * expected[name] for name in ("p@1", "p@3", "p@5")}, abs=1e-3
    )
    assert (found["input"], found["n_train"], found["n_judged"]) == ("text", 700, 150)


def test_columns_of_numbers_are_weighted_like_words(tmp_path: Path) -> None:
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("3 3 2\n0 0:2 1:1\n1 0:1\n0,1 0:1 2:4\n")
    test.write_text("1 3 2\n1 1:3 2:1\n")
    idf = 1 + np.log(4 / np.array([4, 2, 2]))
    for weights, factor in (("mean", np.ones(3)), ("tf-idf", idf)):
        rows = prepare(train, test, weights)
        first = np.array([2.0, 1.0]) * factor[:2]
        assert rows.X.values[:2] == pytest.approx(first / first.sum())
        assert rows.X.values[2] == pytest.approx(1.0)
        judged = np.array([3.0, 1.0]) * factor[1:]
        assert rows.judged_X.values == pytest.approx(judged / judged.sum())
        assert rows.input == "vectors"


def test_divergence_is_a_result(tmp_path: Path) -> None:
    rows = prepare(*generated_files(tmp_path, "words"), "mean")
    found = fit_and_judge(rows, {**KEY, "lr": 1e9, "l2": 0.0}, 1)
    assert (found["p@1"], found["p@3"], found["p@5"]) == (0.0, 0.0, 0.0)
    assert "no longer finite" in found["diverged"]
    assert fit_and_judge(rows, KEY, 1)["diverged"] == ""


Judge = Callable[[Mapping[str, Any]], float]  # all three precisions of a run, below 0 if it diverges


class Fake:
    """Runs nothing: results are what ``judge`` says, and keys are kept."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.ran = judge, list[Mapping[str, Any]]()

    def __call__(self, key: Mapping[str, Any]) -> dict[str, Any]:
        self.ran.append(key)
        value = self.judge(key)
        names = ("p@1", "p@3", "p@5")
        about = {"input": "text", "n_train": 1000, "n_judged": 900, "n_labels": 150}
        return {
            **dict.fromkeys(names, max(value, 0.0)),
            "diverged": "not finite" if value < 0 else "",
            **about,
        }


def outcome_of(folder: Path, judge: Judge, variant: Variant = FULL) -> tuple[Outcome, Fake]:
    ledger, fake = Ledger(folder / "runs.jsonl"), Fake(judge)
    scale = SCALES["few labels"]
    tuned = ablation.tune(ledger, fake, "some", variant, scale)
    return ablation.finish(ledger, fake, tuned, [1, 2, 3], scale), fake


def large_steps_at_first(key: Mapping[str, Any]) -> float:
    """At dim 100 the larger the step the better, at dim 500 the smaller; best L2 and epochs by step size."""
    order = PAPER_GRID.lr.index(key["lr"])
    liked = (PAPER_GRID.l2[order], PAPER_GRID.epochs[2 - order])
    step = order if key["dim"] == 100 else 2 - order
    return 40.0 + 3 * step + (key["l2"] == liked[0]) + (key["epochs"] == liked[1])


def test_finalists_are_the_best_of_each_step_size_at_the_final_dim(tmp_path: Path) -> None:
    outcome, fake = outcome_of(tmp_path, large_steps_at_first)
    assert Counter((key["stage"], key["dim"], key["seed"]) for key in fake.ran) == {
        ("tune", 100, 1): 27,
        ("tune", 500, 1): 3,
        **{("final", 500, seed): 1 for seed in (1, 2, 3)},
    }
    points_of_finalists = [(run["lr"], run["l2"], run["epochs"]) for run in outcome.finalists]
    assert points_of_finalists == [(0.5, 0.003, 20), (0.1, 0.002, 30), (0.05, 0.001, 40)]  # best at 100 first
    # A key has the fields of the grid's, so that the ledger finds what it holds.
    assert all(key.keys() == fake.ran[0].keys() for key in fake.ran)


def test_the_final_run_takes_the_step_size_best_at_the_final_dim(tmp_path: Path) -> None:
    outcome, _ = outcome_of(tmp_path, large_steps_at_first)
    assert [(run["lr"], run["l2"], run["epochs"]) for run in outcome.final] == [(0.05, 0.001, 40)] * 3
    assert outcome.given_up == []
    look = ablation_tuning.second_look(outcome)
    assert str(look) == "0.5 -> 0.05 (+6.00)"


def test_points_that_diverge_when_tuned_are_no_finalists(tmp_path: Path) -> None:
    def judge(key: Mapping[str, Any]) -> float:
        if key["dim"] == 100 and (key["lr"] == 0.5 or key["epochs"] == 40):
            return -1.0
        return 0.0  # as low as what diverged: the score alone does not tell

    outcome, fake = outcome_of(tmp_path, judge)
    assert [(run["lr"], run["epochs"]) for run in outcome.finalists] == [(0.05, 20), (0.1, 20)]
    assert not any(key["lr"] == 0.5 for key in fake.ran if key["dim"] == 500)


def test_a_finalist_that_diverges_is_not_used(tmp_path: Path) -> None:
    def judge(key: Mapping[str, Any]) -> float:
        if key["dim"] == 100:
            return float(key["lr"])
        return -1.0 if key["lr"] == 0.5 else 0.0  # no better score, and yet it can be used

    outcome, fake = outcome_of(tmp_path, judge)
    assert {key["lr"] for key in fake.ran if key["stage"] == "final"} == {0.1}
    assert {run["lr"] for run in outcome.final} == {0.1}
    assert str(ablation_tuning.second_look(outcome)) == "0.5 -> 0.1 (diverged)"
    (line,) = ablation_tuning.describe_diverged("some", {FULL: outcome}, PAPER_GRID)
    assert "diverged at dim 500 on nine tenths of the rows: lr 0.5, L2 0.001, 20 epochs." in line


def test_if_a_seed_diverges_the_next_finalist_is_used(tmp_path: Path) -> None:
    def judge(key: Mapping[str, Any]) -> float:
        if (key["stage"], key["lr"], key["seed"]) == ("final", 0.5, 2):
            return -1.0
        return 40.0 + key["lr"]

    outcome, fake = outcome_of(tmp_path, judge)
    finals = [(key["lr"], key["seed"]) for key in fake.ran if key["stage"] == "final"]
    assert finals == [(lr, seed) for lr in (0.5, 0.1) for seed in (1, 2, 3)]
    assert [(run["lr"], run["seed"]) for run in outcome.given_up] == finals[:3]
    assert [(run["lr"], run["seed"]) for run in outcome.final] == finals[3:]
    (line,) = ablation_tuning.describe_diverged("some", {FULL: outcome}, PAPER_GRID)
    assert "on all training rows: lr 0.5, L2 0.001, 20 epochs; the next best finalist" in line


@pytest.mark.parametrize("where", ["anywhere", "in the final runs"])
def test_if_all_diverge_the_best_is_the_result(tmp_path: Path, where: str) -> None:
    def judge(key: Mapping[str, Any]) -> float:
        diverges = where == "anywhere" or (key["stage"] == "final" and key["seed"] > 1)
        return -1.0 if diverges else 40.0 + key["lr"]

    outcome, fake = outcome_of(tmp_path, judge)
    assert [run["seed"] for run in outcome.final] == [1, 2, 3]
    assert {run["lr"] for run in outcome.final} == {0.05 if where == "anywhere" else 0.5}
    assert len(outcome.given_up) == 6
    assert sum(map(len, outcome)) == len(fake.ran)  # every run is kept once
    lines = ablation_tuning.describe_diverged("some", {FULL: outcome}, PAPER_GRID)
    assert "no finalist is left" in lines[-1]
    assert not any("the next best" in line for line in lines)
    n_diverged = 27 if where == "anywhere" else 0
    assert f"| {n_diverged} of 27" in ablation_tuning.tuning_table({FULL: outcome}, PAPER_GRID)


def test_nothing_runs_twice_and_recorded_finalists_are_reused(tmp_path: Path) -> None:
    first, before = outcome_of(tmp_path, large_steps_at_first)
    again, after = outcome_of(tmp_path, large_steps_at_first)
    assert after.ran == []
    assert again == first
    assert len({json.dumps(key, sort_keys=True) for key in before.ran}) == len(before.ran)
    # The seed is that of tuning and the stage "tune", as the records that other versions left.
    key = {**points("some", FULL, SCALES["few labels"])[0], "lr": 0.05, "l2": 0.001, "epochs": 40, "dim": 500}
    assert Ledger(tmp_path / "runs.jsonl").find(key) is not None


def test_the_second_look_is_told_for_every_set_and_variant() -> None:
    def look(*runs: tuple[float, float]) -> Outcome:
        """Finalists by step size and P@1, below 0 if diverged."""
        return Outcome(
            [], [final((max(p, 0.0), 0.0, 0.0), lr=lr, diverged="-" * (p < 0)) for lr, p in runs], [], []
        )

    same = dict.fromkeys(VARIANTS, look((0.1, 36.0), (0.5, 33.0), (0.05, 36.0)))
    changed = {**same, VARIANTS[0]: look((0.5, 30.0), (0.1, 36.0)), FULL: look((0.5, 30.0), (0.05, 39.0))}
    diverged = {**same, VARIANTS[1]: look((0.5, -1.0), (0.1, 60.0))}
    found = {"one": same, "two": changed, "three": diverged}
    said, _, table = ablation_tuning.describe_second_look(found, PAPER_GRID)
    assert "Dim 500 prefers another step size than dim 100 for 3 of 24 tuned variants" in said
    assert "gained is at most 3.00 (two, clustering + TF-IDF + L2)" in said
    assert "1 times the choice of dim 100 diverges" in said
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert cells[0] == ["variant", "one", "two", "three"]
    assert cells[2] == ["Huffman", "0.1", "0.5 -> 0.1 (+2.00)", "0.1"]
    assert cells[3] == ["Huffman + L2", "0.1", "0.1", "0.5 -> 0.1 (diverged)"]
    assert cells[-1] == [FULL.title, "0.1", "0.5 -> 0.05 (+3.00)", "0.1"]
    said, *_ = ablation_tuning.describe_second_look({"one": same}, PAPER_GRID)
    assert said == "Dim 500 prefers another step size than dim 100 for 0 of 8 tuned variants."


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_deviations_are_shown_if_there_are_several_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_seeds: int
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    data = {
        variant: outcome._replace(
            final=[{**outcome.final[0], "seed": seed, "p@1": 60.0 + 2 * seed} for seed in range(n_seeds)]
        )
        for variant, outcome in data_set(additive).items()
    }
    drawn: list[Any] = []

    def keep(figure: Any, _: Path) -> list[str]:
        drawn.append(figure)
        return []

    monkeypatch.setattr(ablation_page, "save_figure", keep)
    ablation_page.draw({"some": data}, tmp_path / "bars")
    (axes,) = drawn[0].axes
    spreads = [bars.errorbar for bars in axes.containers if hasattr(bars, "errorbar")]
    assert [spread is not None for spread in spreads] == [n_seeds > 1] * 2
    pyplot.close(drawn[0])
    assert deviation(data, FULL, 0) == (2.0 if n_seeds > 1 else 0.0)
    assert ("| 62.00 ± 2.00" in ablation_page.result_table(data).replace("**", "")) == (n_seeds > 1)
    assert bool(ablation_page.describe_spread({"some": data})) == (n_seeds > 1)


def test_of_equals_the_first_is_chosen() -> None:
    records = [final((50.0, 30.0, 10.0), epochs=n) for n in (20, 30)] + [final((50.0, 30.0, 10.3), epochs=40)]
    assert [record["epochs"] for record in ranked(records)] == [40, 20, 30]


def test_gains_are_means_over_pairs() -> None:
    found = precisions(data_set(additive))
    assert [gain(found, component, 0) for component in COMPONENTS] == pytest.approx([6, 3, 1.5])
    assert [gain(found, component, 1) for component in COMPONENTS] == pytest.approx([3, 1.5, 0.75])
    assert best_variants(found, 0) == [FULL]
    of_lshtc = published()["WikiLSHTC-325K"]  # differences of the bars in the paper's Figure 1
    assert gain(of_lshtc, COMPONENTS[0], 0) == pytest.approx(
        (34.39 + 54.95 + 39.66 + 58.73 - 36.23 - 41.10 - 38.28 - 42.83) / 4
    )


def test_published_figures_are_in_the_order_of_the_variants() -> None:
    found = published()
    assert len(found) == 7
    assert all(len(values) == 3 for figures in found.values() for values in figures.values())
    assert found["WikiLSHTC-325K"][FULL] == (58.73, 39.24, 29.26)
    assert found["Amazon-670K"][Variant("huffman", "tf-idf", False)][0] == 29.70
    assert found["Wiki-500K"][Variant("kmeans", "mean", True)][0] == 56.04
    assert found["Wiki-30K"][Variant("huffman", "tf-idf", True)][0] == 85.23


def test_the_page_says_where_the_full_variant_is_on_top_and_where_not() -> None:
    on_top, behind = data_set(additive), data_set(lambda v: additive(v) - 5 * (v == FULL))
    line = ablation_page.judge_set("first", on_top)
    assert "at P@1 on top, ahead of clustering + TF-IDF (+1.50)" in line
    assert "not" not in line
    assert "900 test rows has a standard error of 1.52" in line  # sqrt(.705 * .295 / 900)
    line = ablation_page.judge_set("second", behind)
    assert "at P@1 **not** on top, behind clustering + TF-IDF (-3.50)" in line
    level = data_set(lambda v: 50.0)
    assert "at P@1 level with Huffman (+0.00)" in ablation_page.judge_set("third", level)
    nearly = data_set(lambda v: 50.0 - 0.003 * (v == FULL))
    assert "at P@1 level with Huffman (+0.00)" in ablation_page.judge_set("fourth", nearly)
    results = {name: precisions(data) for name, data in (("first", on_top), ("second", behind))}
    lines = ablation_page.judge_all(results)
    assert "best P@1 on 1 of 2 sets (first); in the paper on 5 of 7" in lines[0]
    assert "by P@1, on 0 of 2 sets" in lines[3]  # 66 alone against 64.5
    groups = [Group("few labels", SCALES["few labels"], {"first": on_top, "second": behind})]
    assert "mean of these, few labels" in ablation_page.gain_table(groups)


@pytest.mark.parametrize(
    ("tops", "verdict"), [((), "refuted"), (("a",), "partly confirmed"), (("a", "b"), "confirmed")]
)
def test_sets_of_many_labels_judge_the_papers_order(tops: tuple[str, ...], verdict: str) -> None:
    on_top, behind = data_set(additive), data_set(lambda v: additive(v) - 5 * (v == FULL))
    few = Group("few labels", SCALES["few labels"], {"small": behind})
    many = {name: on_top if name in tops else behind for name in ("a", "b")}
    said = ablation_page.explain([few, Group("many labels", SCALES["many labels"], many)])
    assert f"**{verdict}** where there are many labels: on {len(tops)} of 2 sets" in said
    assert "With 150 to 150 labels, which clustering halves into 2 to 2 groups" in said
    assert "not tested" in ablation_page.explain([few])


def test_a_sample_is_part_of_what_a_run_is_known_by() -> None:
    for variant in VARIANTS:
        assert all(key["rows"] == 20_000 for key in points("some", variant, SCALES["many labels"]))
        assert not any("rows" in key for key in points("some", variant, SCALES["few labels"]))


def test_the_final_run_on_many_labels_is_one_on_a_larger_sample(tmp_path: Path) -> None:
    ledger, fake, scale = Ledger(tmp_path / "runs.jsonl"), Fake(lambda key: 40.0), SCALES["many labels"]
    tuned = ablation.tune(ledger, fake, "some", FULL, scale)
    ablation.finish(ledger, fake, tuned, [1, 2, 3], scale)
    assert [(key["seed"], key["rows"]) for key in fake.ran if key["stage"] == "final"] == [(1, 50_000)]


def test_what_more_epochs_do_is_told_with_and_without_l2() -> None:
    def tuned(variant: Variant) -> list[dict[str, Any]]:
        l2, change = (0.001, 6.0) if variant.has_l2 else (0.0, -3.0)
        runs = [final((50.0, 40.0, 30.0), lr=lr, l2=l2) for lr in (0.1, 0.5)]
        runs += [final((50.0 + change, 40.0, 30.0), lr=0.1, l2=l2, epochs=40)]
        return [*runs, final((0.0, 0.0, 0.0), lr=0.5, l2=l2, epochs=40, diverged="no longer finite")]

    data = {variant: Outcome(tuned(variant), [], [], []) for variant in VARIANTS}
    line = ablation_tuning.describe_epochs({"some": data}, PAPER_GRID)
    assert "From 20 to 40 epochs" in line
    assert "without L2 by -1.00 on average (higher at 0 of 4 points)" in line
    assert "with L2 by +2.00 on average (higher at 4 of 4 points)" in line


def test_number_of_groups_is_that_of_the_tree() -> None:
    rng = np.random.default_rng(1)
    for n_labels in (90, 101, 250):
        Y = np.eye(n_labels, dtype=np.float32)
        X = rng.random((n_labels, 5), dtype=np.float32)
        model = labeltree.train(X, Y, **{**FIXED, "epochs": 1, "dim": 2, "tree": "kmeans"}, threads=1)
        tree = model.experts[0].tree
        assert len(set(tree.parent[tree.leaf_of_label])) == ablation_method.n_groups(n_labels)


@pytest.mark.slow
def test_quick_runs_everything_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ablation.main(["--quick", "--output", str(tmp_path)])
    page = (tmp_path / "ablation.md").read_text()
    ledger = (tmp_path / "ablation.jsonl").read_text()
    n_tuned = sum(len(points("", variant, QUICK_SCALES["few labels"])) for variant in VARIANTS)
    n_seeds = len(DEFAULTS.quick_seeds.split(","))
    assert len(ledger.splitlines()) == 2 * (n_tuned + len(VARIANTS) * (len(QUICK_GRID.lr) + n_seeds))
    assert "`python -m experiments.ablation --quick`" in page
    with (tmp_path / "ablation.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == len(ledger.splitlines())
    check_tables(page, runs)

    def refuse(*_: Any) -> Rows:
        raise AssertionError("nothing is left to run, so no data is needed")

    monkeypatch.setattr(ablation, "prepare", refuse)
    (tmp_path / "ablation.md").unlink()
    ablation.main(["--quick", "--output", str(tmp_path)])
    assert (tmp_path / "ablation.md").read_text() == page
    assert (tmp_path / "ablation.jsonl").read_text() == ledger
    assert "What the records show" in page
    capsys.readouterr()


def check_tables(page: str, runs: list[dict[str, str]]) -> None:
    """The page's precisions are those of the final runs, whose values are the finalists' best."""
    metrics = ("p@1", "p@3", "p@5")
    for name in ("words", "numbers"):
        table = page.split(f"### {name}\n")[1].split("\n\n")[0].strip().splitlines()[2:]
        best = 0.0
        for variant, line in zip(VARIANTS, table, strict=True):
            cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
            own = [run for run in runs if (run["data"], run["tree"], run["weights"]) == (name, *variant[:2])]
            own = [run for run in own if (float(run["l2"]) > 0) == variant.has_l2]
            last = [run for run in own if run["stage"] == "final"]
            assert [run["seed"] for run in last] == DEFAULTS.quick_seeds.split(",")
            assert cells[:4] == [
                variant.title,
                *(mean_and_deviation(float(r[p]) for r in last) for p in metrics),
            ]
            again = [run for run in own if (run["stage"], run["dim"]) == ("tune", str(QUICK_GRID.final_dim))]
            assert {float(run["lr"]) for run in again} == set(QUICK_GRID.lr)
            winner = max(again, key=lambda run: sum(float(run[p]) for p in metrics))
            fields = ("lr", "l2", "epochs", "dim")
            assert all(
                [winner[field] for field in fields] == [run[field] for field in fields] for run in last
            )
            best = max(best, statistics.fmean(float(run["p@1"]) for run in last))
        assert best > 25  # of 36 topics; a third of the words about one are of others
        assert f"**{best:.2f} ±" in page.split(f"### {name}\n")[1]


def test_missing_data_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "nothing"))
    with pytest.raises(SystemExit, match="no data set"):
        ablation.main(["--output", str(tmp_path), "--data", "bibtex,delicious"])
    told = capsys.readouterr().err
    assert "bibtex: skipped" in told
    assert "delicious: skipped" in told
