"""The page of the scaling benchmark, from runs whose growth is known."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks are not part of the package

from benchmarks import scaling
from benchmarks.scaling_page import BEAM, bars, fit_exponent, sweep, table, write_page

OPTIONS = argparse.Namespace(
    labels=[10**4, 10**6], documents=[100, 500], fixed_labels=10**4, fixed_documents=500, features=1000,
    threads=0, quick=False, dim=None, epochs=None, seed=1,
)  # fmt: skip


def run(n_labels: int, n_documents: int = 500, batch: float = 10.0, beam: float = 10.0) -> dict[str, Any]:
    precisions = {f"{prefix}p@{k}": 0.5 / k for prefix in ("", "beam_") for k in (1, 3, 5)}
    return {
        "shape": {"n_labels": n_labels, "n_documents": n_documents}, "parameters": {},
        "train_cpu_seconds": n_labels / 1e3, "train_wall_seconds": 1.0, "stages": {"tree": {"cpu": 0.5}},
        "train_peak_bytes": 3_000_000, "idle_bytes": 1_000_000, "data_bytes": 500_000, "model_bytes": 500_000,
        "batch_microseconds": batch, "single_microseconds": batch, "single_microseconds_p99": 2 * batch,
        "beam_batch_microseconds": beam, "beam_single_microseconds": beam,
        "beam_single_microseconds_p99": 2 * beam, "load_seconds": 0.1, "depth_mean": 3.0, "load_average": 1.0,
        **precisions,
    }  # fmt: skip


def test_exponents_are_fitted() -> None:
    assert fit_exponent([10, 100, 1000], [3, 30, 300]) == pytest.approx(1.0)
    assert fit_exponent([10, 100], [8, 8]) == pytest.approx(0.0)
    assert math.isnan(fit_exponent([10], [3]))
    assert math.isnan(fit_exponent([10, 100], [0, 3]))


def test_bars_judge_each_search_by_itself() -> None:
    runs = [run(10**4), run(10**6, batch=31.0, beam=29.0)]
    lines = [line for line in bars(runs) if line.startswith("- ")]
    assert [line.split("(")[1].split(")")[0] for line in lines] == [
        "batch, exact", f"batch, beam {BEAM}", "single, exact", f"single, beam {BEAM}",
    ]  # fmt: skip
    assert ["MISSED" in line for line in lines] == [True, False, True, False]
    assert "3.10" in lines[0]
    assert "+9.5 µs" in lines[1]
    assert "does not have both" in bars(runs[:1])[0]


def test_table_has_a_cell_for_every_title() -> None:
    lines = table([run(10**4, batch=12.0, beam=7.0), run(10**6)], "labels")
    titles, cells = ([cell.strip() for cell in lines[i].split("|")[1:-1]] for i in (0, 2))
    row = dict(zip(titles, cells, strict=True))
    assert row["labels"] == "10,000"
    assert row["peak / (data + model)"] == "2.00"
    assert (row["batch µs/row"], row[f"batch µs/row beam {BEAM}"]) == ("12.0", "7.0")
    assert (row["single µs (p99)"], row[f"single µs beam {BEAM}"]) == ("12 (24)", "7 (14)")
    assert row[f"P@1/3/5 beam {BEAM}"] == "50.0/16.7/10.0"
    assert "training 1.00" in lines[-1]


def test_page_sweeps_one_axis_at_a_time() -> None:
    results = [run(10**6), run(10**4), run(10**4, 100)]
    assert [r["shape"]["n_labels"] for r in sweep(results, OPTIONS, "labels")] == [10**4, 10**6]
    assert [r["shape"]["n_documents"] for r in sweep(results, OPTIONS, "documents")] == [100, 500]
    page = write_page(results, OPTIONS, [Path("x.svg"), Path("x.png")])
    assert page.index("## Growing labels") < page.index("## Growing documents") < page.index("## Bars")
    assert "](x.svg)" in page
    assert "x.png" not in page


def test_runs_of_another_beam_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = scaling.plan_runs(OPTIONS)
    assert [(r["shape"]["n_labels"], r["shape"]["n_documents"]) for r in plan] == [
        (10**4, 100), (10**4, 500), (10**6, 500),
    ]  # fmt: skip
    without_beam = {name: value for name, value in plan[0].items() if name != "beam"}
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(without_beam) + "\n" + json.dumps(plan[1] | {"known": 1}) + "\n")
    monkeypatch.setattr(scaling, "measure", lambda run: run | {"known": 0})
    assert [result["known"] for result in scaling.find_results(plan[:2], path)] == [0, 1]
    assert [result["known"] for result in scaling.find_results(plan[:2], path)] == [0, 1]
    assert len(path.read_text().splitlines()) == 3  # the second time nothing was missing


def test_prediction_step_measures_both_searches(tmp_path: Path) -> None:
    import numpy as np

    import labeltree
    from benchmarks.generate import Shape, generate

    data = generate(Shape(300, 40, 200, 2, 10), 50)
    model = labeltree.train(data.X, scaling._indicator(data.Y), epochs=1, dim=8, threads=1)
    model.save(tmp_path / "model.labeltree")
    scaling._save_test(data, tmp_path / "test.npz")
    measured = scaling.predict_step({"beam": BEAM}, tmp_path)
    for prefix in ("", "beam_"):
        assert measured[f"{prefix}batch_microseconds"] > 0
        assert measured[f"{prefix}single_microseconds"] <= measured[f"{prefix}single_microseconds_p99"]
        assert 0 <= measured[f"{prefix}p@1"] <= 1
    assert measured["predict_peak_bytes"] > 10_000_000
    X, _ = scaling._load_test(tmp_path / "test.npz")
    assert np.array_equal(X.indices, data.X_test.indices)
