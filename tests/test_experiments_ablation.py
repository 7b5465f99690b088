"""The ablation: rows are weighted as said, the best values are used, and the page says what the runs show."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # experiments are not part of the package

import labeltree
from experiments import ablation, ablation_page, ablation_tuning
from experiments.ablation import PAPER_GRID, QUICK_GRID, Rows, fit_and_judge, generated_files, points, prepare
from experiments.ablation_records import (
    COMPONENTS,
    FIXED,
    FULL,
    VARIANTS,
    DataSet,
    Outcome,
    Variant,
    best_variants,
    gain,
    precisions,
    published,
    ranked,
)
from experiments.ledger import Ledger
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
        outcomes[variant] = Outcome([{**run, "dim": 100}], [], [run])
    return DataSet(outcomes, [])


def additive(variant: Variant) -> float:
    return 60.0 + 6 * (variant.tree == "kmeans") + 3 * (variant.weights == "tf-idf") + 1.5 * variant.has_l2


def test_the_grid_is_the_papers() -> None:
    keys = [key for variant in VARIANTS for key in points("some", variant, PAPER_GRID)]
    assert len(keys) == 4 * 9 + 4 * 27
    assert len({json.dumps(key) for key in keys}) == len(keys)
    assert Counter(key["l2"] for key in keys) == {0.0: 36, 0.001: 36, 0.002: 36, 0.003: 36}
    assert Counter(key["lr"] for key in keys) == dict.fromkeys((0.5, 0.1, 0.05), 48)
    assert Counter(key["epochs"] for key in keys) == dict.fromkeys((20, 30, 40), 48)
    checks = ablation.check_points("some", PAPER_GRID)
    assert Counter((key["dim"], key["epochs"], key["tree"], key["weights"]) for key in checks) == {
        (500, 30, "kmeans", "tf-idf"): 9
    }


@pytest.mark.parametrize("weights", ["mean", "tf-idf"])
def test_texts_are_trained_on_as_labeltree_itself_does(tmp_path: Path, weights: str) -> None:
    train, test = generated_files(tmp_path, "words")
    found = fit_and_judge(prepare(train, test, weights), KEY, 1)
    given = {**FIXED, **KEY, "tf": "count", "idf": weights == "tf-idf", "row_norm": "mean"}
    model = labeltree.train(str(train), threads=1, **given)
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


def test_final_runs_use_the_best_values_that_do_not_diverge(tmp_path: Path) -> None:
    tuning: list[dict[str, Any]] = [
        {**key, "p@1": 10 * key["lr"] + key["epochs"] / 100, "p@3": 0.0, "p@5": 0.0, "diverged": ""}
        for key in points("some", VARIANTS[0], PAPER_GRID)
    ]
    ran = []

    class Fake(ablation.Runner):
        def __init__(self) -> None: ...

        def __call__(self, key: Mapping[str, Any]) -> dict[str, Any]:
            ran.append(key)
            return final((1.0, 1.0, 1.0), diverged="no longer finite" if key["lr"] == 0.5 else "")

    outcome = ablation.finish(Ledger(tmp_path / "runs.jsonl"), Fake(), tuning, [1, 2], PAPER_GRID)
    tried = [(0.5, 40), (0.5, 30), (0.5, 20), (0.1, 40)]
    assert [(key["lr"], key["epochs"], key["seed"]) for key in ran] == [
        (*point, seed) for point in tried for seed in (1, 2)
    ]
    assert {(key["stage"], key["dim"]) for key in ran} == {("final", 500)}
    assert len(outcome.diverged) == 6
    assert len(outcome.final) == 2
    lines = ablation_tuning.describe_diverged("some", {VARIANTS[0]: outcome}, PAPER_GRID)
    assert len(lines) == 1
    assert "next best" in lines[0]


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
    results = {name: precisions(data) for name, data in (("first", on_top), ("second", behind))}
    lines = ablation_page.judge_all(results)
    assert "best P@1 on 1 of 2 sets (first); in the paper on 5 of 7" in lines[0]
    assert "by P@1, on 0 of 2 sets" in lines[3]  # 66 alone against 64.5
    assert "mean of these" in ablation_page.gain_table(results)


def test_check_tells_what_the_choice_of_the_smaller_dim_costs() -> None:
    def at(dim: int, p_1: float, lr: float) -> dict[str, Any]:
        return final((p_1, 0.0, 0.0), lr=lr, dim=dim, l2=0.001)

    small = [at(100, 30.0, 0.1), at(100, 33.0, 0.5), {**at(100, 90.0, 0.5), "epochs": 40}]
    outcomes = {FULL: Outcome(small, [], [])}
    line = ablation_tuning.describe_check(
        "some", DataSet(outcomes, [at(500, 36.0, 0.1), at(500, 27.0, 0.5)]), PAPER_GRID
    )
    assert "dim 100 chooses lr 0.5, L2 0.001, dim 500 chooses lr 0.1, L2 0.001" in line
    assert "scores 9.00, the best 12.00, the worst 9.00" in line


def test_what_more_epochs_do_is_told_with_and_without_l2() -> None:
    def tuned(variant: Variant) -> list[dict[str, Any]]:
        l2, change = (0.001, 6.0) if variant.has_l2 else (0.0, -3.0)
        runs = [final((50.0, 40.0, 30.0), lr=lr, l2=l2) for lr in (0.1, 0.5)]
        runs += [final((50.0 + change, 40.0, 30.0), lr=0.1, l2=l2, epochs=40)]
        return [*runs, final((0.0, 0.0, 0.0), lr=0.5, l2=l2, epochs=40, diverged="no longer finite")]

    data = DataSet({variant: Outcome(tuned(variant), [], []) for variant in VARIANTS}, [])
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
        tree = model.trees[0].tree
        assert len(set(tree.parent[tree.leaf_of_label])) == ablation_page.n_groups(n_labels)


def test_quick_runs_everything_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ablation.main(["--quick", "--output", str(tmp_path)])
    page = (tmp_path / "ablation.md").read_text()
    ledger = (tmp_path / "ablation.jsonl").read_text()
    n_tuned = sum(len(points("", variant, QUICK_GRID)) for variant in VARIANTS)
    n_checks = len(ablation.check_points("", QUICK_GRID))
    assert len(ledger.splitlines()) == 2 * (n_tuned + n_checks + len(VARIANTS))
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
    """The page's precisions are those of the final runs, which have the best tuned values."""
    for name in ("words", "numbers"):
        table = page.split(f"### {name}\n")[1].split("\n\n")[0].strip().splitlines()[2:]
        best = 0.0
        for variant, line in zip(VARIANTS, table, strict=True):
            cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
            own = [run for run in runs if (run["data"], run["tree"], run["weights"]) == (name, *variant[:2])]
            own = [run for run in own if (float(run["l2"]) > 0) == variant.has_l2]
            (last,) = (run for run in own if run["stage"] == "final")
            assert cells[:4] == [variant.title, *(f"{float(last[p]):.2f}" for p in ("p@1", "p@3", "p@5"))]
            tuned = [run for run in own if run["dim"] == str(QUICK_GRID.tuning_dim)]
            winner = max(tuned, key=lambda run: sum(float(run[p]) for p in ("p@1", "p@3", "p@5")))
            assert [winner[field] for field in ("lr", "l2", "epochs")] == [
                last[field] for field in ("lr", "l2", "epochs")
            ]
            assert last["dim"] == str(QUICK_GRID.final_dim)
            best = max(best, float(last["p@1"]))
        assert best > 25  # of 36 topics; a third of the words about one are of others
        assert f"**{best:.2f}**" in page.split(f"### {name}\n")[1]


def test_missing_data_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "nothing"))
    with pytest.raises(SystemExit, match="no data set"):
        ablation.main(["--output", str(tmp_path), "--data", "bibtex,delicious"])
    told = capsys.readouterr().err
    assert "bibtex: skipped" in told
    assert "delicious: skipped" in told
