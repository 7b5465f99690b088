"""Neighbours: what kernels find is what the reference says, and what a model file keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from support.small_data import make_toy

import labeltree
from labeltree import cli
from labeltree.data.rows import LabelRows, SparseRows, pointers, take_rows
from labeltree.errors import CorruptedModelError, ParameterError
from labeltree.experts import neighbours_index
from labeltree.experts.neighbours import POWER, POWERS, NeighboursExpert
from labeltree.experts.neighbours_index import LENGTHS, build_index
from labeltree.kernels.neighbours.search import MOST_POSTINGS
from labeltree.query import make_query, query_all
from labeltree.reference import neighbours as reference
from labeltree.storage.container import read_model, write_model

TOY, TEST = make_toy(700, seed=2), make_toy(40, seed=3)


def random_rows(n_rows: int, n_columns: int, per_row: int, seed: int) -> SparseRows:
    """Columns of falling frequency; some values are below 0, some rows are empty, some are equal."""
    random = np.random.default_rng(seed)
    share = 1.0 / (np.arange(n_columns) + 1.0)
    lists = [
        np.sort(
            random.choice(n_columns, random.integers(0, 2 * per_row), replace=False, p=share / share.sum())
        )
        for _ in range(n_rows)
    ]
    lists[1::10] = lists[0::10][: len(lists[1::10])]
    indices = np.concatenate(lists).astype(np.int32)
    values = random.uniform(0.1, 3.0, len(indices)) * np.where(random.random(len(indices)) < 0.05, -1, 1)
    return SparseRows(pointers([len(each) for each in lists]), indices, values.astype(np.float32), n_columns)


def random_labels(n_rows: int, n_labels: int, seed: int) -> LabelRows:
    random = np.random.default_rng(seed)
    lists = [np.sort(random.choice(n_labels, random.integers(0, 5), replace=False)) for _ in range(n_rows)]
    return LabelRows(
        pointers([len(each) for each in lists]), np.concatenate(lists).astype(np.int32), n_labels
    )


def entries_of(expert: NeighboursExpert) -> reference.Entries:
    """What an index holds, read by the reference."""
    index, lists = expert.index, {}
    for kind, length, data, n_ids in (
        ("listed", index.column_lengths, index.column_lists, index.n_rows),
        ("rows", index.row_lengths, index.row_lists, len(index.frequent)),
    ):
        place, found = 0, {}
        for number, n in enumerate(LENGTHS[length].tolist()):
            if n:
                found[number], n_bytes = reference.decode_list(data[place:].tobytes(), n, n_ids)
                place += n_bytes
        lists[kind] = found
    frequent: dict[int, dict[int, int]] = {column: {} for column in index.frequent.tolist()}
    for row, columns in lists["rows"].items():
        for place, level in columns.items():
            frequent[int(index.frequent[place])][row] = level
    values = np.round(index.levels.astype(np.float64) * reference.ONE).astype(int).tolist()
    return reference.Entries(lists["listed"], frequent, values, expert.n_candidates)


def labels_of(Y: LabelRows) -> list[list[int]]:
    return [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(Y.n_rows)]


def compare(expert: NeighboursExpert, Y: LabelRows, weight: NDArray[np.float32], rows: SparseRows) -> int:
    """Every answer with the reference's; returns how many neighbours there were."""
    entries, labels, total = entries_of(expert), labels_of(Y), 0
    numbers, similarities = expert.similar_rows(rows[:3], expert.n_neighbours)
    lengths, ids, votes = expert.nonzero(rows[:3])
    starts = pointers(lengths)
    for i in range(rows.n_rows):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        expected = reference.find(entries, rows.indices[part], rows.values[part], weight, expert.n_neighbours)
        n = len(expected)
        assert numbers[i, :n].tolist() == [each.row for each in expected]
        assert (numbers[i, n:] == -1).all()
        shown = [min(1.0, each.similarity / reference.ONE) for each in expected]
        np.testing.assert_allclose(similarities[i, :n], shown, rtol=1e-6)
        of_labels = reference.vote(expected, labels, weight, expert.power)
        assert ids[starts[i] : starts[i + 1]].tolist() == list(of_labels)
        np.testing.assert_allclose(votes[starts[i] : starts[i + 1]], list(of_labels.values()), rtol=1e-5)
        total += n
    return total


@pytest.mark.parametrize("mean_postings", [0, 30, 10**9])
@pytest.mark.parametrize("n_neighbours", [1, 7, 400])
def test_it_finds_what_the_reference_finds(
    mean_postings: int, n_neighbours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours_index, "MEAN_POSTINGS", mean_postings)
    X, Y = random_rows(300, 200, 12, 1), random_labels(300, 40, 2)
    weight = np.random.default_rng(3).choice([0.0, 1.0, 2.5], 300).astype(np.float32)
    expert = NeighboursExpert.build(X, Y, weight, n_neighbours)
    assert (len(expert.index.frequent) > 0) == (mean_postings < 10**9)
    found = compare(expert, Y, weight, random_rows(60, 200, 12, 4))
    assert (found > 0) == (mean_postings > 0)


@pytest.mark.parametrize("mean_postings", [30, 10**9])
def test_what_rows_have_in_common_is_what_the_reference_says(
    mean_postings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours_index, "MEAN_POSTINGS", mean_postings)
    X, Y = random_rows(300, 200, 12, 1), random_labels(300, 40, 2)
    expert = NeighboursExpert.build(X, Y, np.ones(300, np.float32), 9)
    rows, entries = random_rows(20, 200, 12, 4), entries_of(expert)
    for i in range(rows.n_rows):
        one = take_rows(rows[:3], np.array([i]))
        told = expert.explain(one, [3])[0]
        found = told.similar_rows
        expected = reference.shared(entries, one[1], one[2], found.rows.tolist())
        np.testing.assert_allclose(found.similarity, expected.sum(axis=1) / reference.ONE)
        np.testing.assert_allclose(found.shared, expected / expected.sum(axis=1, keepdims=True))
        neighbours = reference.find(entries, one[1], one[2], np.ones(300), 9)
        assert expected.sum(axis=1).tolist() == [each.similarity for each in neighbours]
        labels = np.array([3 in found.labels_of(place) for place in range(len(found.rows))])
        assert found.has_label.tolist() == labels.tolist()
        of_label = labels, np.ones(len(labels)), expert.power, float(expert.frequency[3])
        if len(labels):
            probability, shares = reference.share_votes(expected, *of_label)
            assert told.probability == pytest.approx(probability)
            np.testing.assert_allclose(told.shares, shares, atol=1e-9)


@pytest.mark.parametrize("mean_postings", [30, 10**9])
def test_rows_beside_the_neighbours_are_those_that_come_next(
    mean_postings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours_index, "MEAN_POSTINGS", mean_postings)
    X, Y = random_rows(300, 200, 12, 1), random_labels(300, 40, 2)
    expert = NeighboursExpert.build(X, Y, np.ones(300, np.float32), 9)
    rows, entries = random_rows(20, 200, 12, 4), entries_of(expert)
    for i in range(rows.n_rows):
        one = take_rows(rows[:3], np.array([i]))
        compared = expert.compare(one, 40)
        assert compared.n_voters == min(9, len(compared.rows))
        assert len(set(compared.rows.tolist())) == len(compared.rows) <= 40
        expected = reference.shared(entries, one[1], one[2], compared.rows.tolist())
        np.testing.assert_array_equal(compared.shared[:, : len(compared.rows)].T, expected)
        if not len(expert.index.frequent):
            nearest = reference.find(entries, one[1], one[2], np.ones(300), 40)
            assert sorted(expected.sum(axis=1).tolist()) == sorted(each.similarity for each in nearest)


@pytest.mark.parametrize("power", [1, 3, 10])
def test_a_file_says_by_which_power_rows_count(power: int) -> None:
    X, Y = random_rows(300, 200, 12, 1), random_labels(300, 40, 2)
    weight = np.ones(300, np.float32)
    expert = NeighboursExpert(build_index(X, Y, weight), 40, 7, power)
    assert compare(expert, Y, weight, random_rows(60, 200, 12, 4)) > 0
    assert expert.metadata() == {"power": expert.without(np.arange(3)).power} == {"power": power}


def test_variants_are_scored_at_once() -> None:
    X, Y = random_rows(300, 200, 12, 1), random_labels(300, 40, 2)
    expert = NeighboursExpert.build(X, Y, np.ones(300, np.float32), 7)
    assert expert.power == POWER
    assert [variant.power for variant in expert.variants] == list(POWERS)
    asked = random_rows(60, 200, 12, 4)[:3]
    labels = np.arange(61) * 40, np.tile(np.arange(-1, 39, dtype=np.int32), 60)
    found = expert.score_variants(asked, labels)
    for own, variant in zip(found, expert.variants, strict=True):
        assert own.tobytes() == variant.score(asked, labels, query_all()).tobytes()
    assert len({own.tobytes() for own in found}) == len(POWERS)


def test_long_lists_are_read_strongest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours_index, "MEAN_POSTINGS", 10**9)
    monkeypatch.setattr(neighbours_index, "BYTES_PER_ENTRY", 10)
    random = np.random.default_rng(0)
    dense = random.uniform(0.1, 1.0, (4000, 12)) * (random.random((4000, 12)) < 0.9)
    rows = csr_matrix(dense.astype(np.float32))
    X = SparseRows(rows.indptr.astype(np.int64), rows.indices, rows.data, 12)
    Y, weight = random_labels(4000, 5, 1), np.ones(4000, np.float32)
    expert = NeighboursExpert.build(X, Y, weight, 20)
    assert LENGTHS[expert.index.column_lengths].sum() > MOST_POSTINGS
    few = SparseRows(X.indptr[:6], X.indices, X.values, 12)
    assert compare(expert, Y, weight, few) == 100


def test_equal_rows_are_the_nearest() -> None:
    X, Y = random_rows(500, 300, 20, 5), random_labels(500, 10, 6)
    expert = NeighboursExpert.build(X, Y, np.ones(500, np.float32), 5)
    numbers, similarities = expert.similar_rows(X[:3], 2)
    for i in range(0, 100, 10):
        if X.indptr[i + 1] - X.indptr[i] > 10:
            assert set(numbers[i].tolist()) <= {i, i + 1} or similarities[i, 0] > 0.8


def test_rows_of_weight_0_are_no_neighbours_and_those_left_out_neither() -> None:
    X, Y = random_rows(200, 50, 8, 7), random_labels(200, 10, 8)
    half = np.arange(200) % 2
    expert = NeighboursExpert.build(X, Y, half.astype(np.float32), 10)
    numbers, _ = expert.similar_rows(X[:3], 10)
    assert (numbers[numbers >= 0] % 2 == 1).all()
    left = NeighboursExpert.build(X, Y, np.ones(200, np.float32), 10).without(np.flatnonzero(half == 0))
    numbers, _ = left.similar_rows(X[:3], 10)
    assert (numbers[numbers >= 0] % 2 == 1).all()
    assert (numbers >= 0).any()


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_hardly_any_rows(n_rows: int) -> None:
    X, Y = random_rows(30, 10, 3, 9), random_labels(n_rows, 3, 1) if n_rows else None
    none = SparseRows(X.indptr[: n_rows + 1], X.indices[: X.indptr[n_rows]], X.values[: X.indptr[n_rows]], 10)
    Y = Y or LabelRows(np.zeros(1, np.int64), np.empty(0, np.int32), 3)
    expert = NeighboursExpert.build(none, Y, np.ones(n_rows, np.float32), 4)
    compare(expert, Y, np.ones(n_rows, np.float32), X)


def test_rows_of_thousands_of_labels() -> None:
    """More than there is room for at first."""
    X = random_rows(40, 10, 4, 1)
    Y = LabelRows(np.arange(41, dtype=np.int64) * 3000, np.tile(np.arange(3000, dtype=np.int32), 40), 3000)
    expert = NeighboursExpert.build(X, Y, np.ones(40, np.float32), 10)
    lengths, _, votes = expert.nonzero(X[:3])
    assert set(lengths.tolist()) == {0, 3000}
    np.testing.assert_allclose(votes, 1.0, rtol=1e-6)


def test_lists_answer_every_question() -> None:
    X, Y = random_rows(200, 50, 8, 7), random_labels(200, 12, 8)
    expert = NeighboursExpert.build(X, Y, np.ones(200, np.float32), 10)
    rows = random_rows(30, 50, 8, 9)
    lengths, ids, votes = expert.nonzero(rows[:3])
    dense = np.zeros((30, 12), np.float32)
    dense[np.repeat(np.arange(30), lengths), ids] = votes
    for k, threshold in ((1, 0.0), (12, 0.0), (4, 0.2)):
        best, probabilities = np.empty((30, k), np.int32), np.empty((30, k), np.float32)
        expert.topk(rows[:3], make_query(k, threshold), best, probabilities)
        expected = np.argsort(-dense, axis=1, kind="stable")[:, :k]
        values = np.take_along_axis(dense, expected, axis=1)
        assert best.tolist() == np.where(values >= threshold, expected, -1).tolist()
        assert probabilities.tolist() == np.where(values >= threshold, values, 0).tolist()
    for threshold in (0.0, 0.3):
        n_above, _, found = expert.above(rows[:3], query_all(threshold))
        assert n_above.tolist() == (dense >= threshold).sum(axis=1).tolist()
        assert found.tolist() == dense[dense >= threshold].tolist()
    asked = pointers(np.full(30, 13)), np.tile(np.arange(-1, 12, dtype=np.int32), 30)
    scores = expert.score(rows[:3], asked, query_all()).reshape(30, 13)
    assert scores.tolist() == np.pad(dense, ((0, 0), (1, 0))).tolist()


@pytest.mark.parametrize("per_row", [5, 40, 300])
def test_the_index_is_small(per_row: int) -> None:
    X = random_rows(3000, 5000, per_row, per_row)
    index = build_index(X, random_labels(3000, 5, 1), np.ones(3000, np.float32))
    assert index.index_bytes <= max(1.5 * len(X.indices), 1 << 16)
    assert np.count_nonzero(index.column_lengths) > 500


@pytest.fixture(scope="module")
def model() -> labeltree.Model:
    return labeltree.train(TOY.texts, TOY.Y, neighbours=20)


def test_a_model_knows_what_is_similar(model: labeltree.Model) -> None:
    assert repr(model).endswith("1 tree, neighbours>")
    (first, *_), *_ = model.neighbours(TOY.texts[:1], 3)
    assert first[1] > 0.9
    assert TOY.texts[first[0]].split()[-2:] == TOY.texts[0].split()[-2:]
    assert model.neighbours(["", "unheard"]) == [[], []]
    with pytest.raises(ParameterError, match="n must be a whole number of at least 1, but is 0"):
        model.neighbours(TOY.texts, 0)
    plain = labeltree.train(TOY.texts[:50], TOY.Y[:50], neighbours=0)
    with pytest.raises(ParameterError, match="no neighbours"):
        plain.neighbours(TOY.texts)


def test_dense_vectors_have_none() -> None:
    X = np.random.default_rng(0).uniform(0.1, 1.0, (MOST_POSTINGS, 2)).astype(np.float32)
    model = labeltree.train(X, [["a"], ["b"]] * (len(X) // 2), neighbours=5, max_iterations=1)
    assert [expert.kind for expert in model.experts] == ["tree"]


def test_it_says_what_it_holds(model: labeltree.Model) -> None:
    (facts,) = model.inspect()["neighbours"]
    assert facts["n_indexed_rows"] == 700
    assert facts["n_neighbours"] == 20
    assert 0 < facts["index_bytes"] < 1 << 16


def test_threads_change_nothing(model: labeltree.Model, tmp_path: Path) -> None:
    for threads in (1, 2):
        labeltree.train(TOY.texts, TOY.Y, neighbours=20, threads=threads).save(tmp_path / f"{threads}")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    again = labeltree.load(tmp_path / "1")
    assert again.predict(TOY.texts, threads=2) == model.predict(TOY.texts, threads=1)
    assert again.neighbours(TOY.texts, threads=2) == model.neighbours(TOY.texts, threads=1)
    assert again.predict(TEST.texts[:1]) == model.predict(TEST.texts)[:1]


def change(name: str, how: Callable[[NDArray], NDArray]) -> Callable[[dict[str, NDArray], dict], None]:
    def forge(tensors: dict[str, NDArray], metadata: dict[str, Any]) -> None:
        full = f"neighbours.1.{name}"
        tensors[full] = np.ascontiguousarray(how(tensors[full].copy()))

    return forge


def put(place: int, value: Any) -> Callable[[NDArray], NDArray]:
    def how(array: NDArray) -> NDArray:
        array[place] = value
        return array

    return how


def with_power(value: Any) -> Callable[[dict[str, NDArray], dict[str, Any]], None]:
    def forge(tensors: dict[str, NDArray], metadata: dict[str, Any]) -> None:
        metadata["experts"][-1]["power"] = value

    return forge


FORGED = {
    "power 0": with_power(0),
    "power of votes that vanish": with_power(1000),
    "power in words": with_power("four"),
    "no power": with_power(None),
    "fewer lists": change("column_lengths", lambda array: array[:-1]),
    "another length": change("column_lengths", lambda array: array + np.uint8(1)),
    "too long a list": change("column_lengths", put(0, 255)),
    "lists cut": change("column_lists", lambda array: array[:-1]),
    "other bits": change("column_lists", lambda array: array * np.uint8(0)),
    "lists of rows": change("row_lengths", lambda array: np.append(array, np.uint8(1))),
    "frequent unsorted": change("frequent", lambda array: np.array([5, 5], np.int32)),
    "frequent beyond": change("frequent", lambda array: np.array([1 << 20], np.int32)),
    "levels": change("levels", put(0, np.nan)),
    "large levels": change("levels", put(15, 2.0)),
    "few levels": change("levels", lambda array: array[:-1]),
    "label beyond": change("labels", put(0, 1000)),
    "label below 0": change("labels", put(0, -1)),
    "labels cut": change("labels", lambda array: array[:-1]),
    "labels unsorted": change("label_start", put(5, 1 << 40)),
    "no rows": change("label_start", lambda array: array[:0]),
    "weights": change("weight", lambda array: np.array([1.0], np.float32)),
    "weights below 0": change("weight", lambda array: np.full(700, -1.0, np.float32)),
    "another type": change("labels", lambda array: array.astype(np.int64)),
    "no neighbours": lambda tensors, metadata: metadata["config"].update(neighbours=0),
    "nothing": lambda tensors, metadata: tensors.pop("neighbours.1.levels"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(name: str, model: labeltree.Model, tmp_path: Path) -> None:
    path = tmp_path / "model"
    model.save(path)
    tensors, metadata = read_model(path)
    FORGED[name](tensors, metadata)
    write_model(path, tensors, metadata)
    with pytest.raises(CorruptedModelError, match="neighbours"):
        labeltree.load(path)


def test_the_command(model: labeltree.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.save(tmp_path / "model")
    (tmp_path / "texts").write_text("\n".join(TOY.texts[:2]) + "\n")
    command = ["neighbours", str(tmp_path / "model"), str(tmp_path / "texts"), "-n", "2"]
    assert cli.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split("\t")) for line in lines] == [4, 4]
    assert cli.main([*command, "--json"]) == 0
    found = [json.loads(line)["neighbours"] for line in capsys.readouterr().out.splitlines()]
    expected = model.neighbours(TOY.texts[:2], 2)
    assert [[each["row"] for each in row] for row in found] == [[n for n, _ in row] for row in expected]
    assert lines[0].split("\t")[0] == str(found[0][0]["row"])
