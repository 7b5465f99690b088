"""HSM against PLT: both get the same rows and settings, and the page says where PLT is not above, and why."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labeltree
from experiments import hsm_vs_plt, hsm_vs_plt_page, hsm_vs_plt_tables
from experiments.hsm_vs_plt import (
    Rows,
    config_of,
    fit_and_judge,
    generated_files,
    judge,
    keep_one,
    read,
    run_set,
)
from experiments.hsm_vs_plt_records import (
    KINDS,
    LINKS,
    METRICS,
    DataSet,
    Lead,
    cases,
    lead,
    records_of,
)
from experiments.ledger import Ledger
from experiments.published import hsm_vs_plt as published
from labeltree.data.rows import LabelRows
from labeltree.metrics import evaluate


def run(
    link: str, values: tuple[float, ...], seed: int = 1, kind: str = "dense", **more: Any
) -> dict[str, Any]:
    """All rows, those with one label and those with more have the same precisions, unless given."""
    settings = next(dict(known.settings) for known in KINDS if known.name == kind)
    found: dict[str, Any] = {"kind": kind, "link": link, "seed": seed, "settings": settings}
    for name, value in zip(METRICS, values, strict=True):
        found |= {name: value, f"{name}, one label": value, f"{name}, more labels": value}
    about = {"n_train": 100, "n_judged": 50, "n_one": 10, "n_labels": 7, "labels_per_row": 2.0}
    return {**found, **about, "mean_top_probability": 50.0, "cpu_seconds": 1.0, "diverged": "", **more}


def pair(hsm: float, plt: float, **more: Any) -> list[dict[str, Any]]:
    """Both links with each kind of nodes, these precisions everywhere."""
    values = {"hsm": hsm, "plt": plt}
    return [run(link, (values[link],) * 3, kind=kind.name, **more) for kind in KINDS for link in LINKS]


def test_published_figures_favour_plt_throughout() -> None:
    found = published()
    assert len(found) == 6
    assert found["EUR-Lex"]["sparse"] == ((56.98, 46.99, 39.09), (74.55, 60.60, 50.05))
    assert found["Amazon-670K"]["dense"].plt == (26.18, 22.76, 20.29)
    for models in found.values():
        for hsm, plt in models.values():
            assert all(a < b for a, b in zip(hsm, plt, strict=True))


def test_runs_are_those_of_labeltree_itself(tmp_path: Path) -> None:
    train, test = generated_files(tmp_path, "dependent")
    rows = read(train, test)
    for kind in KINDS:
        for link in LINKS:
            key = {"settings": kind.settings, "link": link, "seed": 2}
            found = fit_and_judge(rows, key, 1)
            model = labeltree.train(str(train), threads=1, config=config_of(key))
            X, Y, _ = model.read(test)
            expected = evaluate(model.predict_arrays(X, 5)[0], Y, (1, 3, 5))
            # Rows are scaled to length 1 once more, which may move their last bit.
            assert [found[name] for name in METRICS] == pytest.approx(
                [100 * expected[name] for name in METRICS], abs=1.0
            )
            assert (found["n_train"], found["n_judged"], found["n_labels"]) == (700, 300, 18)
            assert found["n_one"] + found["n_more"] == 300


def test_one_label_of_each_row_is_kept() -> None:
    Y = LabelRows(np.array([0, 3, 3, 4, 6]), np.array([1, 4, 6, 2, 0, 5], np.int32), 7)
    seen: list[set[int]] = [set() for _ in range(4)]
    for seed in range(40):
        kept = keep_one(Y, seed)
        assert np.diff(kept.indptr).tolist() == [1, 0, 1, 1]
        for row in (0, 2, 3):
            seen[row].add(int(kept.indices[kept.indptr[row]]))
    assert seen == [{1, 4, 6}, set(), {2}, {0, 5}]


def test_rows_are_judged_by_their_number_of_labels() -> None:
    Y = LabelRows(np.array([0, 1, 3, 3, 4]), np.array([0, 1, 2, 3], np.int32), 5)
    ids = np.array([[0, 1, 2, 3, 4], [2, 1, 0, 3, 4], [0, 1, 2, 3, 4], [0, 3, 1, 2, 4]])
    probabilities = np.full((4, 5), 0.25)
    found = judge(ids, probabilities, Y)
    assert (found["p@1"], found["p@1, one label"], found["p@1, more labels"]) == (50.0, 50.0, 100.0)
    assert found["p@3"] == pytest.approx(100 * (1 + 2 + 0 + 1) / 12, abs=1e-3)
    assert found["p@3, one label"] == pytest.approx(100 / 3, abs=1e-3)
    assert (found["n_one"], found["n_more"], found["labels_per_row"]) == (2, 1, 1.0)
    assert found["mean_top_probability"] == 25.0
    only_one = judge(ids[:1], probabilities[:1], LabelRows(np.array([0, 1]), np.array([0], np.int32), 5))
    assert (only_one["p@1, one label"], only_one["p@1, more labels"]) == (100.0, None)


def test_divergence_is_a_result(tmp_path: Path) -> None:
    rows = read(*generated_files(tmp_path, "dependent"))
    key = {"settings": {"nodes": "dense", "optimizer": "sgd", "lr": 1e9}, "link": "plt", "seed": 1}
    found = fit_and_judge(rows, key, 1)
    assert "no longer finite" in found["diverged"]
    assert [found[name] for name in METRICS] == [0.0, 0.0, 0.0]


def test_differences_are_taken_seed_by_seed() -> None:
    runs = [run("hsm", (50.0 + seed, 30.0, 20.0), seed) for seed in (1, 2, 3)]
    runs += [run("plt", (52.0 + 2 * seed, 30.0, 19.0), seed) for seed in (3, 1, 2)]
    assert lead(runs, "dense", "p@1") == Lead(4.0, 1.0)  # 3, 4, 5
    assert str(lead(runs, "dense", "p@1")) == "+4.00 ± 1.00"
    assert [lead(runs, "dense", name).is_exception for name in METRICS] == [False, True, True]  # type: ignore[union-attr]
    assert lead(runs, "sparse", "p@1") is None
    assert lead([run("hsm", (1.0, 1.0, 1.0)), run("plt", (3.0, 1.0, 1.0))], "dense", "p@1") == Lead(2.0, None)
    assert not Lead(0.3, 0.4).is_clear
    assert Lead(-0.5, 0.4).is_clear
    assert len(cases({"some": pair(1.0, 2.0)})) == 9


def test_each_link_gets_the_value_that_did_best_on_held_out_rows(tmp_path: Path) -> None:
    ran = []

    class Fake(hsm_vs_plt.Runner):
        def __init__(self) -> None: ...

        def __call__(self, key: Mapping[str, Any]) -> dict[str, Any]:
            ran.append(key)
            kind = next(kind for kind in KINDS if kind.name == key["kind"])
            value = key["settings"][kind.tuned]
            sign = 1 if key["link"] == "hsm" else -1  # HSM gains by larger values, PLT by smaller ones
            best = 50.0 + sign * value / 100
            return dict.fromkeys(METRICS, best)

    found = run_set(Ledger(tmp_path / "runs.jsonl"), Fake(), "some", [1, 2])
    for kind in KINDS:
        for link, expected in (("hsm", max(kind.values)), ("plt", min(kind.values))):
            tuned = [r for r in found.tuned if (r["kind"], r["link"]) == (kind.name, link)]
            assert [r["seed"] for r in tuned] == [1, 2]
            assert {r["settings"][kind.tuned] for r in tuned} == {expected}
            same = [r for r in found.same if (r["kind"], r["link"]) == (kind.name, link)]
            assert [r["settings"] for r in same] == [dict(kind.settings)] * 2
    judged = {(key["stage"], key["seed"]) for key in ran}
    assert judged == {("test", 1), ("test", 2), ("held-out", 1), ("one label", 1)}
    keys = [json.dumps(key, sort_keys=True) for key in ran]
    assert len(set(keys)) == len(keys) == len(records_of(found))  # what is the same is not run again


def data_set(same: tuple[float, float], tuned: tuple[float, float], **more: Any) -> DataSet:
    return DataSet(pair(*same, **more), pair(*same), pair(*tuned), pair(40.0, 40.0))


def test_exceptions_are_listed_with_what_was_measured() -> None:
    settings = data_set((50.0, 49.0), (50.0, 51.0))
    lines = hsm_vs_plt_page.judge_exceptions(
        {"first": settings, "fine": data_set((1.0, 2.0), (1.0, 2.0))}, False
    )
    assert lines[0] == (
        "PLT is not above HSM in 9 of 18 comparisons, 6 of them at P@3 or P@5, "
        "where the paper leads us to expect none."
    )
    assert len(lines) == 10
    assert "**first, dense nodes, P@1**, PLT - HSM = -1.00" in lines[1]
    assert "With tuned values the difference is +1.00, so it depends on the settings." in lines[1]
    assert "one label PLT - HSM is -1.00, on rows with more -1.00" in lines[1]
    assert "comes from rows with one label" not in lines[1]
    assert hsm_vs_plt_page.judge_exceptions({"first": settings}, True) == [
        "No exception: PLT is above HSM in all 9 comparisons."
    ]
    assert "above HSM in 36 of 36" in hsm_vs_plt_page.judge_paper()
    counts = hsm_vs_plt_page.judge_counts({"first": settings.same, "fine": pair(1.0, 2.0)})
    assert "dense nodes: PLT is above HSM at P@1 on 1 of 2 sets (0 clearly)" in counts[0]


def test_a_set_may_be_run_with_the_same_settings_only(tmp_path: Path) -> None:
    class Fake(hsm_vs_plt.Runner):
        def __init__(self) -> None: ...

        def __call__(self, key: Mapping[str, Any]) -> dict[str, Any]:
            assert key["stage"] == "test"
            return {**run(key["link"], (50.0, 40.0, 30.0 + (key["link"] == "plt"))), **key}

    few = run_set(Ledger(tmp_path / "runs.jsonl"), Fake(), "few", [1, 2], same_only=True)
    assert len(few.same) == len(records_of(few)) == 2 * len(KINDS) * len(LINKS)
    hsm_vs_plt_page.write(tmp_path, {"all": data_set((50.0, 51.0), (50.0, 51.0)), "few": few}, "command")
    page = (tmp_path / "hsm_vs_plt.md").read_text()
    assert page.count("Not run: few.") == 2
    assert "**few, dense nodes, P@3**, PLT - HSM = +0.00" in page


def test_an_exception_may_come_from_rows_with_one_label() -> None:
    records = data_set((50.0, 49.0), (50.0, 49.5))
    for record in records.same:
        plt = record["link"] == "plt"
        record |= {"p@1, one label": 60.0 - 4 * plt, "p@1, more labels": 45.0 + plt}
    (case, *_) = cases({"some": records.same})
    said = " ".join(hsm_vs_plt_page.explain(case, records, False))
    assert "is -4.00, on rows with more +1.00. So it comes from rows with one label" in said
    assert "With tuned values the difference is -0.50, too." in said
    spread = [*pair(50.0, 49.9), *pair(50.0, 50.05, seed=2)]
    (case, *_) = cases({"some": spread})
    assert "no difference is shown" in hsm_vs_plt_page.explain(case, records._replace(same=spread), False)[0]


def test_one_label_rows_are_compared() -> None:
    records = data_set((50.0, 51.0), (50.0, 51.0))
    line = hsm_vs_plt_page.judge_one_label({"some": records})
    assert "dense nodes at most 0.00" in line
    worse = records._replace(one_label=pair(40.0, 39.75))
    assert "dense nodes at most 0.25" in hsm_vs_plt_page.judge_one_label({"some": records, "other": worse})
    (case, *_) = cases({"other": pair(50.0, 49.0)})
    said = " ".join(hsm_vs_plt_page.explain(case, worse, False))
    assert "Where one label of each row is kept it is -0.25" in said


def test_the_better_link_is_bold() -> None:
    kind = KINDS[0]
    table = hsm_vs_plt_tables.result_table({"a": pair(50.0, 51.0), "b": pair(50.0, 49.0)}, kind)
    first, second = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:])
    assert first[:4] == ["a", "50.00", "**51.00**", "+1.00"]
    assert second[:4] == ["b", "**50.00**", "49.00", "-1.00"]
    rows = hsm_vs_plt_tables.groups_table({"a": data_set((50.0, 51.0), (50.0, 51.0))}).splitlines()[2]
    assert [cell.strip() for cell in rows.split("|")[1:6]] == ["a", "2.00", "10 (20.0 %)", "+1.00", "+1.00"]


@pytest.mark.slow
def test_quick_shows_the_papers_point_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hsm_vs_plt.main(["--quick", "--output", str(tmp_path)])
    page, ledger = (tmp_path / "hsm_vs_plt.md").read_text(), (tmp_path / "hsm_vs_plt.jsonl").read_text()
    assert "`python -m experiments.hsm_vs_plt --quick`" in page
    with (tmp_path / "hsm_vs_plt.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == len(ledger.splitlines())
    for kind in KINDS:
        means = {}
        for data in ("dependent", "multi-class"):
            for link in LINKS:
                own = [r for r in runs if (r["data"], r["kind"], r["link"]) == (data, kind.name, link)]
                own = [r for r in own if r["stage"] == "test" and json.loads(r["settings"]) == kind.settings]
                assert [r["seed"] for r in own] == ["1", "2"]
                means[data, link] = sum(float(r["p@1"]) for r in own) / 2
        # The likeliest label has probability 0.6, the likeliest pick 0.4.
        assert means["dependent", "plt"] > means["dependent", "hsm"] + 3
        assert means["multi-class", "plt"] == pytest.approx(means["multi-class", "hsm"], abs=1.0)
        table = page.split(f"### {kind.title}\n\n")[1].split("\n\n")[0].splitlines()[2:]
        for line, data in zip(table, ("dependent", "multi-class"), strict=True):
            cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
            assert cells[0] == data
            assert cells[1].startswith(f"{means[data, 'hsm']:.2f} ±")
            assert cells[2].startswith(f"{means[data, 'plt']:.2f} ±")
    alike = [r for r in runs if (r["stage"], r["kind"]) == ("one label", "sparse")]
    by_link = {(r["data"], r["link"]): [r[name] for name in METRICS] for r in alike}
    for data in ("dependent", "multi-class"):
        assert by_link[data, "hsm"] == by_link[data, "plt"]  # the same problem, solved in the same steps

    def refuse(*_: Any) -> Rows:
        raise AssertionError("nothing is left to run, so no data is needed")

    monkeypatch.setattr(hsm_vs_plt, "read", refuse)
    (tmp_path / "hsm_vs_plt.md").unlink()
    hsm_vs_plt.main(["--quick", "--output", str(tmp_path)])
    assert (tmp_path / "hsm_vs_plt.md").read_text() == page
    assert (tmp_path / "hsm_vs_plt.jsonl").read_text() == ledger
    capsys.readouterr()


def test_missing_data_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "nothing"))
    with pytest.raises(SystemExit, match="no data set"):
        hsm_vs_plt.main(["--output", str(tmp_path), "--data", "bibtex"])
    assert "bibtex: skipped" in capsys.readouterr().err
