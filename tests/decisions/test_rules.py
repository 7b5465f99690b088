"""Rules: what they give is exact, whatever the experts; they are saved; and tuning finds what it should."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.searches import Case, cases
from support.small_data import N_LABELS, make_toy, write_fasttext

import labeltree
from labeltree import cli
from labeltree.data.rows import read_only
from labeltree.decisions.goals import RANKED_GOALS, SET_GOALS, parse_goal
from labeltree.decisions.rule import ExpectedRule, RankingRule, ThresholdRule
from labeltree.errors import CorruptedModelError, DataError, ParameterError
from labeltree.experts import weighted
from labeltree.kernels.search.weighted import KNOTS
from labeltree.model import Model
from labeltree.query import make_query
from labeltree.reference import search as reference

TRAIN, TEST, MORE = make_toy(300), make_toy(60, seed=4), make_toy(200, seed=5)
TREE = dict(arity=2, max_leaves=3)
MODELS: dict[str, dict[str, Any]] = {
    "one tree": dict(neighbours=0, calibrate=False, **TREE),
    "tree and neighbours": dict(neighbours=5, **TREE),
    "three trees": dict(trees=3, neighbours=5, **TREE),
    "both kinds": dict(nodes="both", dim=8, epochs=2, **TREE),
    "hsm": dict(link="hsm", neighbours=0, **TREE),
    "neighbours": dict(trees=0, neighbours=5),
    "all": dict(trees=2, neighbours=5, forest=3, **TREE),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS[request.param])


@pytest.fixture(autouse=True)
def few_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were many more labels than are looked at first."""
    monkeypatch.setattr(weighted, "_FIRST_PROBABLE", 2)
    monkeypatch.setattr(weighted, "_FIRST_SETS", 4)


@pytest.fixture(scope="module")
def one_tree() -> Model:
    return labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS["one tree"])


def random_rule(seed: int, k: int = 3) -> RankingRule:
    random = np.random.default_rng(seed)
    weight = random.choice([0.0, 0.5, 1.0, 5.0, 100.0], N_LABELS).astype(np.float32)
    return RankingRule("p@3", k, weight, random.normal(0, 0.2, N_LABELS).astype(np.float32))


@pytest.mark.parametrize("seed", range(4))
def test_ranking_is_exact(model: Model, seed: int) -> None:
    rule = random_rule(seed)
    marginals = model.probability(TEST.texts, model.label_names).astype(np.float64)
    values = np.array([reference.weighted(row, *rule.arrays, *rule.wanted) for row in marginals])
    exact = rule.weight * marginals + rule.summand
    for k in (1, 3, 20):
        ids, probabilities = model.predict_arrays(TEST.texts, k, rule=rule, search="exact")
        for row, own, p in zip(range(len(ids)), ids, probabilities, strict=True):
            n = int(np.count_nonzero(own >= 0))
            best = np.argsort(-values[row], kind="stable")[:k]
            best = best[(values[row, best] > -np.inf) & (exact[row, best] > 0.0)]
            assert abs(n - len(best)) <= np.count_nonzero(np.abs(exact[row]) < 1e-6)
            n = min(n, len(best))
            np.testing.assert_allclose(values[row, own[:n]], values[row, best[:n]], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(p[:n], marginals[row, own[:n]], rtol=1e-5, atol=1e-7)
            assert (own[n + 1 :] == -1).all()
    usual = model.predict(TEST.texts, rule=rule)
    assert max(len(row) for row in usual) == 3
    allowed = model.label_names[2:7]
    masked = model.predict(TEST.texts, 2, rule=rule, allowed=allowed)
    for row, worth, labels in zip(values, exact, masked, strict=True):
        order = sorted(range(2, 7), key=lambda label: -row[label])[:2]
        wanted = [label for label in order if row[label] > -np.inf and worth[label] > 0.0]
        np.testing.assert_allclose(
            [row[model.label_names.index(name)] for name, _ in labels], row[wanted], rtol=1e-5, atol=1e-6
        )


@settings(max_examples=100)
@given(cases(), st.integers(1, 5), st.integers(0, 999))
def test_the_kernel_agrees_with_the_reference(case: Case, k: int, seed: int) -> None:
    tree, random = case.search, np.random.default_rng(seed)
    n_labels, n_rows = case.tree.n_labels, len(case.features)
    weight = random.choice([0.0, 1.0, 3.0], n_labels).astype(np.float32)
    summand = random.choice([-0.5, 0.0, 0.1], n_labels).astype(np.float32)
    share, total = 0.75, 1.0
    indptr = np.concatenate([[0], np.cumsum(random.integers(0, n_labels + 1, n_rows))])
    voted = [np.sort(random.permutation(n_labels)[:n]) for n in np.diff(indptr).tolist()]
    lists = indptr, np.concatenate(voted).astype(np.int32), random.uniform(0.01, 0.25, int(indptr[-1]))
    shape = n_rows, k
    out = np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.float32)
    is_exact, is_filled = np.empty(n_rows, np.bool_), bool(random.choice([False, True]))
    least = 0.0 if is_filled else float(random.choice([-np.inf, 0.0]))
    lowest = float(random.choice([0.0, 0.1, 0.3]))
    bounds = [case.tree.most_below(weight * np.float32(p) + summand) for p in KNOTS]
    given = [*case.arrays, *lists, weight, summand, np.stack(bounds, axis=1)]
    how = share, total, read_only(np.empty(0, np.float64)), np.float32(lowest), np.float32(least), is_filled
    tree._plain.weighted(tree.table, *map(read_only, given), *how, k, 1 << 31, *out, is_exact)
    assert is_exact.all()
    for row in range(n_rows):
        marginals = share * np.array(case.marginals(row))
        marginals[voted[row]] += lists[2][indptr[row] : indptr[row + 1]]
        ids, values, probabilities = (each[row] for each in out)
        n = int(np.count_nonzero(ids >= 0))
        wanted = reference.weighted(marginals, weight, summand, lowest, least, is_filled)
        tolerance = dict(rtol=case.close["rtol"], atol=1e-5 + 3 * case.close["rtol"])
        exact = weight * marginals + summand
        if np.isclose(marginals, lowest, **tolerance).any() or np.isclose(exact, least, **tolerance).any():
            continue  # rounding decides on which side of a limit a label is
        best = [value for value in sorted(wanted.tolist(), reverse=True)[:k] if value > -np.inf]
        assert n == len(best)
        np.testing.assert_allclose(_even(values[:n], is_filled), _even(best, is_filled), **tolerance)
        assert len({*ids[:n].tolist()}) == n
        np.testing.assert_allclose(_even(wanted[ids[:n]], is_filled), _even(best, is_filled), **tolerance)
        np.testing.assert_allclose(marginals[ids[:n]], probabilities[:n], **tolerance)
        assert (ids[n:] == -1).all()


def _even(values: Any, is_filled: bool) -> NDArray[np.float64]:
    """Where labels that fill a row have -1 / P: P - 1, which is as far off as P is."""
    values = np.asarray(values, np.float64)
    return np.where(values < 0.0, -1.0 / np.minimum(values, -1e-9) - 1.0, values) if is_filled else values


@pytest.mark.parametrize("at_least", [0, 1])
def test_thresholds_are_exact(model: Model, at_least: int) -> None:
    threshold = np.random.default_rng(1).uniform(0.05, 0.9, N_LABELS).astype(np.float32)
    rule = ThresholdRule("macro-f1", threshold, at_least)
    marginals = model.probability(TEST.texts, model.label_names)
    for row, labels in zip(marginals, model.predict(TEST.texts, rule=rule), strict=True):
        wanted = {
            name for name, p, least in zip(model.label_names, row, threshold, strict=True) if p >= least
        }
        if not wanted and at_least:
            wanted = {model.label_names[int(np.argmax(row))]}
        assert {name for name, _ in labels} == wanted
        assert [p for _, p in labels] == sorted((p for _, p in labels), reverse=True)
    assert max(len(row) for row in model.predict(TEST.texts, 1, rule=rule)) == 1


def test_a_label_for_every_row_may_be_unproven(one_tree: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its search ends early; the answer then says so."""
    monkeypatch.setattr("labeltree.query._BUDGET", 1)
    monkeypatch.setattr("labeltree.query._BUDGET_PER_LABEL", 0)
    plain = one_tree.predict_arrays(TEST.texts, 1, rule="none", return_exact=True)
    assert not plain[2].all()
    never = ThresholdRule("instance-f1", np.full(N_LABELS, 2.0, np.float32), 1)
    hardly = ExpectedRule("instance-f1", np.full(N_LABELS, 1e-3, np.float32), np.zeros(N_LABELS, np.float32))
    for rule in (never, hardly):
        found = one_tree.predict_arrays(TEST.texts, 1, rule=rule, return_exact=True)
        assert all(map(np.array_equal, found, plain))
    assert one_tree.predict_arrays(TEST.texts, 1, rule=never, return_exact=True, search="exact")[2].all()


def test_more_labels_than_there_are_take_no_memory(one_tree: Model) -> None:
    mask = one_tree.mask(allowed=one_tree.label_names[:3])
    for query, n_most in ((make_query(10**9), N_LABELS), (make_query(10**9)._replace(mask=mask), 3)):
        ids, _, _ = one_tree.best(TEST.texts, one_tree.ruled(query, random_rule(0)))
        assert ids.shape == (60, n_most)


def test_a_threshold_beside_a_rule_is_refused(
    one_tree: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sets are those of the rule: it would have no effect."""
    with pytest.raises(ParameterError, match=r"threshold=0.3 has no effect by the model's rule"):
        one_tree.test(TEST.texts, TEST.Y, rule=random_rule(0), threshold=0.3)
    assert one_tree.test(TEST.texts, TEST.Y).threshold == 0.5
    tuned, data = copy.copy(one_tree), tmp_path / "data.txt"
    tuned.rule = random_rule(0)
    tuned.save(tmp_path / "m")
    data.write_text(write_fasttext(TEST))
    asked = ["test", str(tmp_path / "m"), str(data), "--threshold", "0.3"]
    assert cli.main(asked) == 2
    assert "threshold=0.3 has no effect" in capsys.readouterr().err
    assert cli.main([*asked, "--rule", "none"]) == 0


def test_the_expected_f1_is_the_best(model: Model) -> None:
    """Of all numbers of labels that a row may get, surest first."""
    random = np.random.default_rng(2)
    weight = random.uniform(0.7, 1.2, N_LABELS).astype(np.float32)
    rule = ExpectedRule("instance-f1", weight, np.full(N_LABELS, -0.01, np.float32))
    marginals = model.probability(TEST.texts, model.label_names).astype(np.float64)
    shares = np.clip(weight * marginals - 0.01, 0.0, 1.0)
    shares[(shares <= 0.05) | (marginals < 0.05)] = 0.0
    found = model.predict(TEST.texts, rule=rule)
    for row, labels in zip(shares, found, strict=True):
        order = np.sort(row)[::-1]
        whole = order.sum() + order[order < 0.1].sum()
        expected = np.cumsum(order) / (np.arange(1, N_LABELS + 1) + whole)
        own = sum(row[model.label_names.index(name)] for name, _ in labels) / (len(labels) + whole)
        assert own == pytest.approx(expected.max(), rel=1e-5)
    assert [row[:1] for row in found] == model.predict(TEST.texts, 1, rule=rule)
    order = np.argsort(-marginals, axis=1)
    chosen = rule.choose(order, np.take_along_axis(marginals, order, 1))
    assert chosen.sum(axis=1).tolist() == [len(row) for row in found]


def test_threads_with_other_masks_do_not_mix(one_tree: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule is asked for all labels and for a mask's at once, and searches each in its own ensemble."""
    made = list[Any]()

    class Search:
        def __init__(self, ensemble: Any, *_: Any) -> None:
            self.ensemble = weakref.proxy(ensemble)
            made.append(ensemble.allowed is None)

    class Slow(RankingRule):
        def __setattr__(self, name: str, value: Any) -> None:
            """Another thread goes on after each change."""
            super().__setattr__(name, value)
            time.sleep(0)

    monkeypatch.setattr("labeltree.decisions.rule.WeightedSearch", Search)
    whole, query = one_tree._ensemble, make_query(3)
    masked = one_tree.mask(allowed=one_tree.label_names[2:7]).restrict(whole)
    rule, wrong, begin = Slow("p@3", 3, *random_rule(0).arrays), list[int](), threading.Barrier(2)

    def ask(ensemble: Any) -> None:
        begin.wait()
        found = [rule._found_in(ensemble, query).ensemble for _ in range(2_000)]  # type: ignore[attr-defined]
        wrong.append(sum(each.allowed is not ensemble.allowed for each in found))

    threads = [threading.Thread(target=ask, args=(each,)) for each in (whole, masked)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == [0, 0]
    assert sorted(made) == [False, True]  # each once


def test_what_an_ensemble_keeps_for_rules_is_bounded(one_tree: Model) -> None:
    """And goes with it, without waiting for the collector."""
    mask = one_tree.mask(allowed=one_tree.label_names[2:7])
    wanted = one_tree.predict(TEST.texts, rule=random_rule(0), allowed=mask)
    for seed in range(10):
        one_tree.predict(TEST.texts, rule=random_rule(seed), allowed=mask)
    kept = mask.restrict(one_tree._ensemble)._kept
    assert len(kept) == 4
    assert one_tree.predict(TEST.texts, rule=random_rule(0), allowed=mask) == wanted
    searches = [weakref.ref(each) for each in kept.values()]
    gc.disable()
    try:
        del mask, kept
        assert [each() for each in searches] == [None] * 4
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "measure",
    [*SET_GOALS, *(f"{key}@2" for key in RANKED_GOALS), "0.5*p@2 + 0.5*macro-f1@2", "precision>=0.8"],
)
def test_every_measure_can_be_tuned(measure: str, one_tree: Model, tmp_path: Path) -> None:
    tuned = one_tree.tune(MORE.texts, MORE.Y, measure=measure)
    again = one_tree.tune(MORE.texts, MORE.Y, measure=measure, threads=2)
    assert all(map(np.array_equal, tuned.rule.arrays, again.rule.arrays))
    assert len(tuned.lines()) > 4
    model = labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS["one tree"])
    model.rule = tuned.rule
    model.save(tmp_path / "m")
    loaded = labeltree.load(tmp_path / "m")
    assert loaded.inspect()["rule"] == parse_goal(measure).text
    assert loaded.predict(TEST.texts) == model.predict(TEST.texts)
    assert loaded.predict(TEST.texts, 2, rule="none") == one_tree.predict(TEST.texts, 2)
    measures = loaded.test(TEST.texts, TEST.Y, k=2)
    assert measures.lines()[0].split()[-1] == "rule"
    assert (
        loaded.test(TEST.texts, TEST.Y, k=2, rule="none")["p@2"]
        == one_tree.test(TEST.texts, TEST.Y, k=2)["p@2"]
    )


def test_rules_do_what_they_are_for(one_tree: Model) -> None:
    """On rows that they were not fitted to; nothing is lost by what cannot help."""
    plain = one_tree.test(TEST.texts, TEST.Y, k=2)
    for measure in ("micro-f1", "macro-f1", "instance-f1"):
        rule = one_tree.tune(MORE.texts, MORE.Y, measure=measure).rule
        assert one_tree.test(TEST.texts, TEST.Y, k=2, rule=rule)[measure] >= plain[measure] - 0.02
    rule = one_tree.tune(MORE.texts, MORE.Y, measure="p@2").rule
    assert one_tree.test(TEST.texts, TEST.Y, k=2, rule=rule)["p@2"] >= plain["p@2"] - 0.02
    rule = one_tree.tune(MORE.texts, MORE.Y, measure="precision>=0.9").rule
    assert one_tree.test(TEST.texts, TEST.Y, k=2, rule=rule)["micro-precision"] > 0.85


@pytest.mark.parametrize(
    ("measure", "k", "message"),
    [
        ("nothing", None, "measure 'nothing' is not known; give micro-f1"),
        ("", None, "is not known"),
        (None, None, "is not known"),
        ("coverage", None, "cannot be had without k"),
        ("hamming@5", None, "cannot be had at k"),
        ("micro-f1+macro-f1", None, "cannot be had without k"),
        ("p@1+p@2", None, "the same k"),
        ("0*p@3", None, "all its parts count 0"),
        ("p@99999999", None, "at most 10"),
        ("precision>=1.5", None, "above 0 and at most 1"),
        ("precision>=0.9", 5, "has no k"),
        (f"precision>=0.{'0' * 300}1", None, "above 0 and at most 1|longer than 200 characters"),
        ("p", -3, "k must be a whole number of at least 1, or None, but is -3"),
        ("p", 0, "k must be"),
        ("p", 2.5, "k must be"),
        ("p", True, "k must be"),
        ("p", np.bool_(True), "k must be"),
        ("p", "5", "k must be"),
        ("p@2", 3, "measure 'p@2', but k is 3"),
        ("p@2+psp", 3, "but k is 3"),
        (f"{'9' * 400}*p@5", None, "a factor is above 1e"),
        ("+".join(f"0.000123456*{key}@1000000" for key in RANKED_GOALS), None, "longer than 200 characters"),
    ],
)
def test_unknown_measures_are_refused(measure: Any, k: int | None, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_goal(measure, k)


def test_measures_are_read() -> None:
    assert parse_goal("P", 3) == parse_goal("p@3") == parse_goal("p@3", 3) == parse_goal("p", np.int64(3))
    assert type(parse_goal("p", np.int64(3)).k) is int
    assert parse_goal("p@5+p@5") == parse_goal("2*p@5")
    assert parse_goal("micro-f1 + micro-f1").text == "2*micro-f1"
    assert parse_goal("0.5*p@5+psp@5+0.5*p@5").terms == ((1.0, "p"), (1.0, "psp"))


def test_bad_rules_are_refused(one_tree: Model) -> None:
    small = RankingRule("p@3", 3, np.ones(3, np.float32), np.zeros(3, np.float32))
    with pytest.raises(ParameterError, match="the rule is of a model of 3 labels, but this has 12"):
        one_tree.predict(TEST.texts, rule=small)
    with pytest.raises(ParameterError, match="rule must be one of model, none"):
        one_tree.predict(TEST.texts, rule="other")
    with pytest.raises(ParameterError, match="search=beam"):
        one_tree.predict(TEST.texts, rule=random_rule(0), search="beam")
    with pytest.raises(ParameterError, match="a mask for all rows"):
        one_tree.predict(TEST.texts, rule=random_rule(0), allowed=[[]] * 60)
    with pytest.raises(ParameterError, match="rule must be a Rule"):
        one_tree.rule = "p@3"  # type: ignore[assignment]
    with pytest.raises(DataError, match="no rows to tune on"):
        one_tree.tune([], [], measure="p@3")
    with pytest.raises(DataError, match="1 row cannot be tuned on"):
        one_tree.tune(TEST.texts[:1], [["topic-0"]], measure="p@3")
    with pytest.raises(DataError, match="no row has a label"):
        one_tree.tune(TEST.texts, [[]] * 60, measure="micro-f1")
    with pytest.raises(DataError, match="no label is among the model's"):
        one_tree.tune(TEST.texts, [["other"]] * 60, measure="micro-f1")
    with pytest.raises(ParameterError, match="no threshold has a precision"):
        one_tree.tune(TEST.texts, [["topic-0"]] * 60, measure="precision>=0.999")


def test_a_rule_is_of_its_models_labels(one_tree: Model) -> None:
    turned = labeltree.train(TRAIN.texts[::-1], TRAIN.Y[::-1], **MODELS["one tree"])
    rule = one_tree.tune(MORE.texts, MORE.Y, measure="macro-f1").rule
    labeltree.train(TRAIN.texts, TRAIN.Y, **MODELS["one tree"]).rule = rule
    assert turned.label_names != one_tree.label_names
    with pytest.raises(ParameterError, match="whose labels are others"):
        turned.rule = rule
    with pytest.raises(ParameterError, match="whose labels are others"):
        turned.predict(TEST.texts, rule=rule)


def test_a_rule_that_does_not_help_is_told(one_tree: Model) -> None:
    tuned = one_tree.tune(MORE.texts, MORE.Y, measure="0.8*p@2+0.2*macro-f1@2")
    assert tuned.lines()[1].startswith("0.8*p@2+0.2*macro-f1@2")
    assert tuned._replace(tuned=tuned.plain).notices() == []
    worse = {key: 0.9 * value for key, value in tuned.plain.items()}
    assert "less 0.8*p@2+0.2*macro-f1@2 than without it" in tuned._replace(tuned=worse).notices()[0]
    precise = tuned._replace(goal=parse_goal("precision>=0.9"))
    assert "a precision of 80.0%" in precise._replace(tuned={"micro-precision": 0.8}).notices()[0]
    assert precise._replace(tuned={"micro-precision": 0.95}).notices() == []


@pytest.mark.parametrize(
    "change",
    [
        dict(kind="other"), dict(k=-1), dict(k="3"), dict(measure=7), dict(measure="x" * 300),
    ],
)  # fmt: skip
def test_files_with_other_rules_are_refused(change: dict[str, Any]) -> None:
    from labeltree.decisions.rule import rule_from_saved

    rule = random_rule(0)
    assert rule_from_saved(None, {}, N_LABELS) is None
    kept = rule_from_saved(rule.metadata(), rule.tensors(), N_LABELS)
    assert kept is not None
    assert all(map(np.array_equal, kept.arrays, rule.arrays))
    with pytest.raises(CorruptedModelError, match="rule"):
        rule_from_saved({**rule.metadata(), **change}, rule.tensors(), N_LABELS)
    with pytest.raises(CorruptedModelError):
        rule_from_saved(rule.metadata(), rule.tensors(), N_LABELS + 1)


def test_the_command(one_tree: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, data, out = (tmp_path / name for name in ("m", "more.txt", "tuned"))
    one_tree.save(path)
    data.write_text(write_fasttext(MORE))
    assert cli.main(["tune", str(path), str(data), "--for", "macro-recall", "-k", "2", "-o", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-3:] == ["top", "2", "macro-recall@2"]
    rule = one_tree.tune(data, measure="macro-recall@2").rule
    assert cli.main(["predict", str(out), str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {len(line.split("\t")) for line in lines} == {4}
    loaded = labeltree.load(out)
    assert loaded.rule is not None
    assert all(map(np.array_equal, loaded.rule.arrays, rule.arrays))
    for options in (["--rule", "none"], ["--rule", "none", "-k", "5"]):
        assert cli.main(["predict", str(out), str(data), *options]) == 0
        plain = capsys.readouterr().out
        assert cli.main(["predict", str(path), str(data)]) == 0
        assert capsys.readouterr().out == plain
    assert cli.main(["test", str(out), str(data)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-1] == "rule"
    data.write_text("")
    assert cli.main(["tune", str(path), str(data), "--for", "p@3", "-o", str(out)]) == 1
    assert "no rows to tune on" in capsys.readouterr().err
    assert cli.main(["tune", str(path), str(data), "--for", "what", "-o", str(out)]) == 2
