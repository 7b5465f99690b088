"""The scaling benchmark: what it measures again, and its page, from runs whose growth is known."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scaling import __main__ as main
from benchmarks.scaling import growth, steps
from benchmarks.scaling.growth_page import (
    PREDICTED,
    bars,
    describe_command,
    fit_exponent,
    near_bar,
    summarize,
    sweep,
    table,
    write_section,
)
from benchmarks.scaling.page import write_page
from benchmarks.scaling.steps import AUTO, BEAM, SEARCHES

OPTIONS = argparse.Namespace(
    labels=[10**4, 10**6], documents=[100, 500], fixed_labels=10**4, fixed_documents=500, features=1000,
    nodes="sparse", threads=0, quick=False, dim=None, epochs=None, seed=1, rounds=3, rewrite=False,
)  # fmt: skip
ORIGIN = {"fingerprint": "f1", "machine": "an abacus, 7 cores", "cpus": 5}
OF_TRAINING = {
    "train_wall_seconds": 1.0, "stages": {"tree": {"cpu": 0.5, "peak_bytes": 2_000_000}},
    "train_peak_bytes": 3_500_000, "idle_bytes": 1_000_000, "data_bytes": 500_000, "model_bytes": 500_000,
    "depth_mean": 3.0, "load_average": 1.0,
}  # fmt: skip


def prediction(batch: float = 10.0, beam: float = 10.0) -> dict[str, float]:
    times = {
        f"{prefix}{what}_microseconds{end}": value * (2 if end else 1)
        for prefix, value in (("", batch), ("auto_", beam), ("beam_", beam))
        for what, end in (("batch", ""), ("single", ""), ("single", "_p99"))
    }
    precisions = {f"{prefix}p@{k}": 0.5 / k for prefix in ("", "auto_", "beam_") for k in (1, 3, 5)}
    return {**times, **precisions, "load_seconds": 0.1}


def run(n_labels: int, n_documents: int = 500, batch: float = 10.0, beam: float = 10.0) -> dict[str, Any]:
    measured = prediction(batch, beam)
    return {
        "shape": {
            "n_labels": n_labels, "n_documents": n_documents, "n_features": 1000, "labels_per_document": 4,
            "features_per_document": 75,
        },
        "nodes": "sparse", "parameters": {}, "threads": 0, **ORIGIN, **OF_TRAINING,
        "train_cpu_seconds": n_labels / 1e3,
        "parameter_bytes": 400_000, **measured, "spread": {name: (v, v) for name, v in measured.items()},
        "n_rounds": 3,
    }  # fmt: skip


def with_memory(result: dict[str, Any], beyond: int, parameter_bytes: int) -> dict[str, Any]:
    peak = result["idle_bytes"] + result["data_bytes"] + beyond
    return {**result, "train_peak_bytes": peak, "parameter_bytes": parameter_bytes}


def test_exponents_are_fitted() -> None:
    assert fit_exponent([10, 100, 1000], [3, 30, 300]) == pytest.approx(1.0)
    assert fit_exponent([10, 100], [8, 8]) == pytest.approx(0.0)
    assert math.isnan(fit_exponent([10], [3]))
    assert math.isnan(fit_exponent([10, 100], [0, 3]))


def test_bars_judge_each_search_by_itself() -> None:
    runs = [run(10**4), run(10**6, batch=31.0, beam=29.0)]
    lines = [line for line in bars(runs) if line.startswith("- prediction")]
    judged = {line.split("(")[1].split(")")[0]: line for line in lines}
    assert len(judged) == 2 * len(SEARCHES)
    for what in ("batch", "single"):
        assert "3.10, bar 3: MISSED" in judged[f"{what}, exact"]
        assert "2.90, bar 3: reached (+9.5 µs" in judged[f"{what}, beam {BEAM}"]
    assert "does not have both" in bars(runs[:1])[0]


def test_a_budget_may_cost_a_tenth_of_a_point() -> None:
    few, many = run(10**4), run(10**6)
    many |= {"p@1": 0.5, "p@3": 0.4, "p@5": 0.3, "auto_p@1": 0.4991, "auto_p@3": 0.4, "auto_p@5": 0.3009}
    assert "exact, most over all sizes: -0.09/+0.00/+0.09, bar 0.1: reached" in near_bar([few, many])
    many["auto_p@3"] = 0.3989
    assert near_bar([few, many]).endswith("MISSED")
    assert (near_bar([few, many]) in bars([few, many])) == (AUTO in SEARCHES)


def test_bars_say_why_exact_search_misses() -> None:
    few, missing, reaching = run(10**4), run(10**6, batch=31.0), run(10**6, batch=29.0, beam=31.0)
    missing["shape"]["n_documents"] = 675_000
    assert "With 2.7 examples per label" in "".join(bars([few, missing]))
    assert "examples per label" not in "".join(bars([few, reaching]))


def test_memory_may_grow_as_the_parameters_do() -> None:
    few = with_memory(run(10**4), 10_000_000, 2_000_000)
    middle = with_memory(run(10**5), 20_000_000, 3_000_000)
    many = with_memory(run(10**6), 90_000_000, 20_000_000)
    lines = [line for line in bars([few, middle, many]) if line.startswith("- memory")]
    assert ["9.00, bar 10.00" in lines[0], "4.50, bar 6.67" in lines[1]] == [True, True]
    assert all(line.endswith("reached") for line in lines)
    many = with_memory(many, 120_000_000, 20_000_000)
    lines = [line for line in bars([few, middle, many]) if line.startswith("- memory")]
    assert [line.rpartition(" ")[2] for line in lines] == ["MISSED", "reached"]
    page = "".join(bars([with_memory(few, 4, 2), with_memory(many, 40, 20)]))  # 10^5 labels were not measured
    assert page.count("- memory") == 1
    assert "parameters ^ 1.00" in page


def test_table_has_a_cell_for_every_title() -> None:
    first = run(10**4, batch=12.0, beam=7.0)
    first["spread"]["batch_microseconds"] = (11.5, 15.0)
    lines = table([first, run(10**6)], "labels")
    titles, cells = ([cell.strip() for cell in lines[i].split("|")[1:-1]] for i in (0, 2))
    row = dict(zip(titles, cells, strict=True))
    assert row["labels"] == "10,000"
    assert row["peak MB (up to the tree)"] == "2 (1)"
    assert row["(peak - data) / parameters"] == "5.0"
    assert row["batch µs/row"] == "12.0 [11.5..15.0]"
    assert row[f"batch µs/row beam {BEAM}"] == "7.0 [7.0..7.0]"
    assert row["single µs (p99)"] == "12 [12..12] (24)"
    assert row[f"single µs beam {BEAM} (p99)"] == "7 [7..7] (14)"
    assert row[f"P@1/3/5 beam {BEAM}"] == "50.0/16.7/10.0"
    assert "training 1.00" in lines[-1]


def test_page_sweeps_one_axis_at_a_time() -> None:
    results = [run(10**6), run(10**4), run(10**4, 100)]
    assert [r["shape"]["n_labels"] for r in sweep(results, OPTIONS, "labels")] == [10**4, 10**6]
    assert [r["shape"]["n_documents"] for r in sweep(results, OPTIONS, "documents")] == [100, 500]
    page = "\n".join(write_section(results, OPTIONS, Path("there/x.svg"), "the command"))
    assert page.index(": growing labels") < page.index(": growing documents") < page.index("### Bars")
    assert "](there/x.svg)" in page
    assert "`the command`" in page
    assert "an abacus, 7 cores; 5 CPUs" in page  # those of the runs, not of this process


def test_command_has_the_options_that_matter() -> None:
    parser = main.make_parser(is_quick=False)
    given = ["--labels", "1e4,1e6", "--fixed-documents", "1e5", "--output", "/somewhere", "--threads", "2"]
    command = describe_command(parser.parse_args(given), parser.parse_args([]))
    assert command == (
        "python -m benchmarks.scaling --labels 10000,1000000 --fixed-documents 100000 --threads 2"
    )
    quick = main.make_parser(is_quick=True)
    options = quick.parse_args(["--quick", "--page", "there.md", "--seed", "1", "--dim", "8"])
    assert describe_command(options, quick.parse_args([])) == "python -m benchmarks.scaling --quick --dim 8"


class Laboratory:
    """Instead of processes: counts what is measured, and gives each round other times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[tuple[str, int, int]] = []  # step, round, labels
        self.fails_at = 10**9
        monkeypatch.setattr(growth, "start_process", self.start)

    def start(self, step: dict[str, Any], folder: Path) -> dict[str, Any]:
        if len(self.started) == self.fails_at:
            raise KeyboardInterrupt
        self.started.append((step["step"], step["round"], step["shape"]["n_labels"]))
        folder.mkdir(parents=True, exist_ok=True)
        if step["step"] == "train":
            (folder / growth.MODEL).touch()
            return {**OF_TRAINING, "train_cpu_seconds": 1.0, "parameter_bytes": 400_000}
        return prediction(batch=(30.0, 10.0, 11.0)[step["round"] - 1])


@pytest.fixture
def laboratory(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    return Laboratory(monkeypatch)


def planned(origin: dict[str, Any] = ORIGIN, rounds: int = 3, **options: Any) -> list[dict[str, Any]]:
    runs = growth.plan_runs(argparse.Namespace(**{**vars(OPTIONS), **options}), origin)
    return growth.plan_steps(runs[1:], rounds)  # the two with 500 documents


def test_all_sizes_are_trained_then_predicted_in_rounds() -> None:
    runs = growth.plan_runs(OPTIONS, ORIGIN)
    assert [(r["shape"]["n_labels"], r["shape"]["n_documents"]) for r in runs] == [
        (10**4, 100), (10**4, 500), (10**6, 500),
    ]  # fmt: skip
    steps = [(step["step"], step["round"], step["shape"]["n_labels"]) for step in planned(rounds=2)]
    assert steps == [
        ("train", 0, 10**4), ("train", 0, 10**6), ("predict", 1, 10**4), ("predict", 1, 10**6),
        ("predict", 2, 10**4), ("predict", 2, 10**6),
    ]  # fmt: skip


def test_second_start_measures_nothing(tmp_path: Path, laboratory: Laboratory) -> None:
    first = growth.measure_missing(planned(), tmp_path)
    assert len(laboratory.started) == len(first) == 8
    assert not (tmp_path / "models").exists()
    assert growth.measure_missing(planned(), tmp_path) == first
    assert len(laboratory.started) == 8
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 8


@pytest.mark.parametrize(
    "changed", [{"fingerprint": "f2"}, {"machine": "a slide rule"}, {"cpus": 1}], ids=lambda c: next(iter(c))
)
def test_steps_of_another_origin_are_measured_again(
    tmp_path: Path, laboratory: Laboratory, changed: dict[str, Any]
) -> None:
    growth.measure_missing(planned(), tmp_path)
    found = growth.measure_missing(planned({**ORIGIN, **changed}), tmp_path)
    assert len(laboratory.started) == 16
    assert all(record.items() >= changed.items() for record in found)


@pytest.mark.parametrize(
    "changed", [{"nodes": "dense"}, {"dim": 8}, {"threads": 1}, {"seed": 2}], ids=lambda c: next(iter(c))
)
def test_steps_of_other_options_are_measured_again(
    tmp_path: Path, laboratory: Laboratory, changed: dict[str, Any]
) -> None:
    growth.measure_missing(planned(), tmp_path)
    growth.measure_missing(planned(**changed), tmp_path)
    assert len(laboratory.started) == 16


@pytest.mark.parametrize("fails_at", range(8))
def test_interrupted_measurement_goes_on_where_it_stopped(
    tmp_path: Path, laboratory: Laboratory, fails_at: int
) -> None:
    laboratory.fails_at = fails_at
    with pytest.raises(KeyboardInterrupt):
        growth.measure_missing(planned(), tmp_path)
    laboratory.fails_at = 10**9
    assert len(growth.measure_missing(planned(), tmp_path)) == 8
    expected = [(step["step"], step["round"], step["shape"]["n_labels"]) for step in planned()]
    assert laboratory.started == expected  # nothing twice: the models were still there


def test_further_rounds_train_again_what_was_cleared_away(tmp_path: Path, laboratory: Laboratory) -> None:
    growth.measure_missing(planned(rounds=2), tmp_path)
    laboratory.started.clear()
    assert len(growth.measure_missing(planned(rounds=3), tmp_path)) == 8
    assert laboratory.started == [
        ("train", 0, 10**4), ("predict", 3, 10**4), ("train", 0, 10**6), ("predict", 3, 10**6),
    ]  # fmt: skip


def test_page_has_medians_and_spread_of_the_rounds(tmp_path: Path, laboratory: Laboratory) -> None:
    results = summarize(growth.measure_missing(planned(), tmp_path))
    assert [result["shape"]["n_labels"] for result in results] == [10**4, 10**6]
    assert [result["batch_microseconds"] for result in results] == [11.0, 11.0]
    assert results[0]["spread"]["batch_microseconds"] == (10.0, 30.0)
    page = "\n".join(write_section(results, OPTIONS, None, "the command"))
    assert "| 11.0 [10.0..30.0] |" in page
    assert "| 11 [10..30] (22) |" in page
    assert "in 3 rounds" in page
    assert "(batch, exact) at 10^6 labels / at 10^4: 1.00" in page


def test_page_is_written_from_what_is_kept_beside_it(
    tmp_path: Path, laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "find_origin", lambda: ORIGIN)
    folder = tmp_path / "kept"
    folder.mkdir()
    assert "Growth" not in write_page(folder)
    for nodes in ("dense", "sparse"):
        options = argparse.Namespace(**{**vars(OPTIONS), "output": tmp_path / "output", "nodes": nodes})
        growth.keep_growth(options, OPTIONS, folder)
    (folder / "dense.svg").touch()  # what draws it may be missing here
    assert str(tmp_path) not in "".join(file.read_text() for file in folder.glob("*.jsonl"))
    page = write_page(folder)
    assert page.index("## Growth of sparse nodes") < page.index("## Growth of dense nodes")
    assert "`python -m benchmarks.scaling --nodes dense`" in page
    assert "](kept/dense.svg)" in page


def test_step_during_which_the_source_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = planned(growth.find_origin())[0]
    done = subprocess.CompletedProcess([], 0, stdout='noise\n{"measured": 1}\n', stderr="")
    monkeypatch.setattr(growth.subprocess, "run", lambda *_, **__: done)
    assert growth.start_process(step, tmp_path)["measured"] == 1
    with pytest.raises(RuntimeError, match="source changed"):
        growth.start_process({**step, "fingerprint": "another"}, tmp_path)
    done.returncode, done.stderr = 1, "out of luck"
    with pytest.raises(RuntimeError, match="10,000 labels, 500 documents failed: out of luck"):
        growth.start_process(step, tmp_path)


def test_steps_leave_and_find_the_model(tmp_path: Path) -> None:
    import numpy as np

    from benchmarks.generate import Shape, generate

    shape = Shape(300, 40, 200, 2, 10)
    step = {
        "shape": shape._asdict(), "nodes": "dense", "parameters": {"dim": 8, "epochs": 1}, "threads": 1,
        "seed": 1, "n_test": 50, "beam": BEAM,
    }  # fmt: skip
    trained = steps.train_step(step, tmp_path)
    assert trained["train_peak_bytes"] >= trained["stages"]["tree"]["peak_bytes"] >= trained["idle_bytes"]
    assert trained["parameter_bytes"] > (200 + 40) * 8
    measured = steps.predict_step(step, tmp_path)
    assert set(PREDICTED) <= measured.keys()
    for prefix in (search.prefix for search in SEARCHES):
        assert measured[f"{prefix}batch_microseconds"] > 0
        assert measured[f"{prefix}single_microseconds"] <= measured[f"{prefix}single_microseconds_p99"]
        assert 0 <= measured[f"{prefix}p@1"] <= 1
    assert measured["predict_peak_bytes"] > 10_000_000
    assert json.loads(json.dumps({**trained, **measured})) == {**trained, **measured}
    X, _ = steps.load_test(tmp_path / steps.TEST_ROWS)
    assert np.array_equal(X.indices, generate(shape, 50).X_test.indices)
