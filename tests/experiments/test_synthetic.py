"""The synthetic experiment: its distributions, the exact nodes, the tests and bars, and the whole command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments import generators, synthetic, synthetic_compare, synthetic_exact, synthetic_readings
from experiments.generators import KINDS, Reading, generate
from labeltree.trees.shapes import build_complete

READINGS = (
    Reading(),
    Reading(noise=1.5),
    Reading(instances="sphere", weights="ball", offset=True, mixed="noise", noise=0.5),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
def test_labels_are_drawn_from_the_marginals(kind: str, reading: Reading) -> None:
    sample = generate(kind, reading, 20_000, 5)
    assert sample.X.shape == (20_000, 3)
    assert sample.Y.shape == sample.marginals.shape == (20_000, 32)
    # In each of ten groups of pairs of like marginal as many labels as these say, up to chance.
    order = np.argsort(sample.marginals.ravel())
    for group in np.array_split(order, 10):
        expected = sample.marginals.ravel()[group]
        deviation = np.sqrt((expected * (1 - expected)).sum())
        # Dependent labels of a row vary together, at most all of them.
        together = 1.0 if kind != "dependent" else np.sqrt(32)
        assert abs(sample.Y.ravel()[group].sum() - expected.sum()) < 4.5 * together * deviation + 1


def test_multi_class_rows_have_one_label_and_dependent_ones_are_dependent() -> None:
    assert (generate("multi-class", Reading(), 500, 1).Y.sum(axis=1) == 1).all()
    for kind, is_dependent in (("independent", False), ("dependent", True)):
        sample = generate(kind, Reading(noise=1.5), 20_000, 2)
        residual = sample.Y - sample.marginals
        correlations = np.corrcoef(residual.T)[np.triu_indices(32, 1)]
        assert (np.abs(correlations).max() > 0.2) == is_dependent


def test_seeds_make_the_draws() -> None:
    first, again, other = (generate("independent", Reading(), 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.Y, again.Y)
    assert not np.array_equal(first.X, other.X)
    # Readings of the noise are compared on the same points.
    quiet, loud = (generate("dependent", Reading(noise=noise), 100, 1) for noise in (0.25, 1.5))
    assert np.array_equal(quiet.X, loud.X)
    assert quiet.marginals.max(axis=1).mean() > loud.marginals.max(axis=1).mean()


def test_points_have_the_shape_they_are_called_by() -> None:
    random = np.random.default_rng(1)
    radius = {
        shape: np.linalg.norm(generators.draw_points(random, 20_000, 3, shape), axis=1)
        for shape in ("ball", "sphere", "radius", "cube")
    }
    assert np.allclose(radius["sphere"], 1.0)
    assert radius["ball"].mean() == pytest.approx(3 / 4, abs=0.01)
    assert radius["radius"].mean() == pytest.approx(1 / 2, abs=0.01)
    assert np.square(radius["cube"]).mean() == pytest.approx(1.0, abs=0.02)
    with pytest.raises(ValueError, match="torus"):
        generators.draw_points(random, 1, 3, "torus")


def test_best_precision_of_the_literal_reading() -> None:
    """What the text taken literally allows at most (uniform ball and sphere, d = 3, m = 32)."""
    for kind, low, high in (("multi-class", 33, 37), ("independent", 66.3, 67.3), ("dependent", 98, 99.7)):
        found = [generators.best_precision(generate(kind, Reading(), 4000, s).marginals) for s in range(8)]
        assert low < np.mean(found) < high, kind


def test_noise_reaching_a_precision_reaches_it() -> None:
    noise = generators.noise_reaching(71.68, Reading(), range(4), 2000)
    found = [
        generators.best_precision(generate("dependent", Reading(noise=noise), 2000, seed).marginals)
        for seed in range(4)
    ]
    assert np.mean(found) == pytest.approx(71.68, abs=0.5)
    assert 1.2 < noise < 1.8


def test_exact_nodes_are_at_the_minimum() -> None:
    random = np.random.default_rng(3)
    X = np.column_stack([random.normal(size=(300, 2)), np.ones(300)])
    positive, negative = random.random(300), random.random(300) * (random.random(300) < 0.5)
    weights = synthetic_exact.minimise(X, positive, negative, 5.0)
    assert weights is not None
    chance = 1 / (1 + np.exp(-(X @ weights)))
    gradient = 5.0 * X.T @ ((positive + negative) * chance - positive) + weights
    assert np.abs(gradient).max() < 1e-6
    assert synthetic_exact.minimise(X, positive, 0 * negative, 5.0) is None


def test_exact_trees_agree_on_one_label_per_row_and_hsm_is_pick_one_label() -> None:
    """On multi-class data the links are one; where x says nothing, HSM gives the mean shares of 1/s."""
    train, test = synthetic.halves(generate("multi-class", Reading(), 2000, 4))
    tree = build_complete(train.Y.sum(axis=0), 2)
    hsm, plt = (
        synthetic_exact.predict_exactly(tree, train.X, train.Y, 1.0, link, test.X) for link in ("hsm", "plt")
    )
    assert np.allclose(hsm, plt, atol=1e-6)
    assert np.allclose(np.exp(hsm).sum(axis=1), 1.0)

    Y = generate("dependent", Reading(noise=1.5), 1000, 4).Y
    nothing = np.zeros((1000, 3), np.float32)
    hsm, plt = (
        np.exp(synthetic_exact.predict_exactly(tree, nothing, Y, 1e6, link, nothing[:1]))[0]
        for link in ("hsm", "plt")
    )
    assert np.allclose(plt, Y.mean(axis=0), atol=1e-4)
    has_any = Y.any(axis=1)
    assert np.allclose(hsm, (Y[has_any] / Y[has_any].sum(axis=1, keepdims=True)).mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("link", ["hsm", "plt"])
def test_labeltree_trains_what_the_exact_nodes_are(link: str) -> None:
    train, test = synthetic.halves(generate("dependent", Reading(noise=0.5), 4000, 6))
    model = synthetic.train_tree(train, link, 1.0, 1, 1)
    exact = synthetic_exact.predict_exactly(model.label_trees[0], train.X, train.Y, 1.0, link, test.X)
    top = synthetic.top_of_model(model, test.X, 1)
    assert np.mean(top.label == exact.argmax(axis=1)) > 0.95
    found = model.predict_arrays(test.X, 32, threads=1)[0]
    assert np.array_equal(np.sort(found, axis=1)[0], np.arange(32))  # ids are the columns of Y


def test_tops_that_differ_clearly_are_counted() -> None:
    labels, gap = np.array([1, 2, 3, 4]), np.array([0.5, 0.5, 1e-7, 0.5])
    hsm = synthetic.Top(labels, gap)
    plt = synthetic.Top(np.array([1, 9, 9, 9]), np.array([0.5, 1e-7, 1e-7, 0.5]))
    assert synthetic.compare_tops(hsm, plt) == {"differing": 3, "clearly_differing": 2}
    assert synthetic.compare_tops(hsm, hsm) == {"differing": 0, "clearly_differing": 0}


def test_paired_tests_are_those_of_scipy() -> None:
    first, second = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.25, 3.0, 4.75, 6.0, 5.875]
    mean, t_test, sign, wilcoxon = synthetic_compare.paired_tests(first, second)
    assert mean == pytest.approx(0.395833, abs=1e-6)
    assert t_test == pytest.approx(stats.ttest_rel(second, first).pvalue)
    assert sign == pytest.approx(0.375)  # 4 of 5 that differ: 2 (5 + 1) / 32
    assert wilcoxon == pytest.approx(2 * 2 / 32)  # only -0.125 is negative, of rank 1
    assert synthetic_compare.paired_tests(first, first) == (0.0, None, None, None)


def _runs(kind: str, noise: float, plt: list[float], hsm: list[float], clear: int = 0) -> list[dict]:
    return [
        {"kind": kind, "noise": noise, "seed": i, "n_rows": 10, "plt": p, "hsm": h}
        | {"differing": clear, "clearly_differing": clear}
        for i, (p, h) in enumerate(zip(plt, hsm, strict=True))
    ]


def test_bars_are_reached_only_by_what_they_ask_for() -> None:
    noise = np.random.default_rng(2).normal(0, 0.05, 50)
    flat = [66.0] * 50

    def reached(runs: list[dict]) -> bool:
        (bar,) = synthetic_compare.bars(synthetic_compare.compare(runs))
        return bar.is_reached

    centred = list(66.0 + noise - noise.mean())
    assert reached(_runs("multi-class", 0.25, flat, flat))
    assert not reached(_runs("multi-class", 0.25, flat, flat, clear=1))
    assert reached(_runs("independent", 0.25, centred, flat))
    assert not reached(_runs("independent", 0.25, [value + 0.05 for value in centred], flat))  # significant
    assert not reached(
        _runs("independent", 0.25, list(66.2 + 20 * (noise - noise.mean())), flat)
    )  # too large
    better = [value + 1 for value in centred]
    assert reached(_runs("dependent", 1.5, better, flat))
    assert not reached(_runs("dependent", 1.5, flat, better))
    assert not reached(_runs("dependent", 1.5, better[:4], flat[:4]))  # not certain enough


def test_the_closest_reading_is_found() -> None:
    def record(reading: str, kind: str, plt: float, mixed: str = "scores") -> dict:
        fixed = {"noise": 0.25, "seed": 1, "n_rows": 10, "best": plt, "hsm": plt}
        return {"reading": reading, "kind": kind, "mixed": mixed, "plt": plt} | fixed

    records = [
        record("a", "multi-class", 21.0), record("b", "multi-class", 30.0),
        record("a", "independent", 67.0), record("b", "independent", 68.0),
        record("a", "dependent", 99.0), record("a", "dependent", 28.3, "noise"),
        record("b", "dependent", 75.0),
    ]  # fmt: skip
    tried = synthetic_readings.tried_readings(records)
    assert [t.is_loss for t in tried] == [False, False, True, True, False, False, False]
    assert [round(t.distance, 2) for t in tried] == [0.9, 8.1, 0.42, 0.58, 27.32, 43.38, 3.32]
    whole = synthetic_readings.whole_readings(tried)
    assert [(w.geometry, round(w.distance, 2)) for w in whole] == [("b", 12.0), ("a", 28.64), ("a", 44.7)]


@pytest.mark.slow
def test_quick_writes_everything_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--runs", "2", "--draws", "1", "--output", str(tmp_path)]
    synthetic.main(arguments)
    printed = capsys.readouterr().out
    page = (tmp_path / "synthetic.md").read_text(encoding="utf-8")
    with (tmp_path / "synthetic.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    assert [(run["kind"], run["noise"], run["seed"]) for run in runs] == [
        (kind, str(noise), str(seed)) for kind, noise in synthetic.DISTRIBUTIONS for seed in (1, 2)
    ]
    for run in runs:
        best, hsm, plt = float(run["best"]), float(run["hsm"]), float(run["plt"])
        assert best - 15 < min(hsm, plt) <= max(hsm, plt) < best + 6  # above only by chance
        assert float(run["as_exact_plt"]) > 90
        if run["kind"] == "multi-class":
            assert (hsm, run["clearly_differing"]) == (plt, "0")
    mean = np.mean([float(run["plt"]) for run in runs if run["kind"] == "independent"])
    (row,) = (line for line in page.splitlines() if line.startswith("| independent ") and "labeltree" in line)
    assert f"| {mean:.2f} ±" in row
    assert "21.90 ± 2.74" in page
    assert "9.80e-14" in printed
    assert str(tmp_path) not in page

    ledger = tmp_path / "synthetic.jsonl"
    entries = ledger.read_text(encoding="utf-8").splitlines()
    assert len(entries) == 8 + len(synthetic_readings.reading_keys(1, 1, 1.0, 2))
    last = json.loads(entries[-1])["key"]
    ledger.write_text("".join(f"{entry}\n" for entry in entries[:-1]), encoding="utf-8")
    synthetic.main(arguments)
    resumed = ledger.read_text(encoding="utf-8").splitlines()
    assert resumed[:-1] == entries[:-1]  # only the missing run was made again
    assert json.loads(resumed[-1])["key"] == last
