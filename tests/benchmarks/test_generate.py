"""The benchmarks' generator: the statistics asked for, the same rows in any pieces, labels to be learned."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.generate import PUBLISHED, TEST, DataSet, Shape, draw_rows, generate
from labeltree.data.rows import SparseRows

SMALL = Shape(
    n_documents=2_000, n_labels=300, n_features=4_000, labels_per_document=4, features_per_document=30
)


@pytest.fixture(scope="module")
def small() -> DataSet:
    return generate(SMALL, n_test=500)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_statistics(name: str) -> None:
    """Documents and labels are scaled down together, which keeps points per label."""
    whole = PUBLISHED[name]
    share = max(1, whole.n_documents // 3_000)
    shape = whole._replace(n_documents=whole.n_documents // share, n_labels=whole.n_labels // share)
    X, Y, _, Y_test = generate(shape, n_test=1_000)
    assert X.n_rows == Y.n_rows == shape.n_documents
    assert X.n_columns == shape.n_features
    assert len(Y.indices) / Y.n_rows == pytest.approx(shape.labels_per_document, rel=0.1)
    assert len(Y_test.indices) / Y_test.n_rows == pytest.approx(shape.labels_per_document, rel=0.15)
    assert len(X.indices) / X.n_rows == pytest.approx(shape.features_per_document, rel=0.05)


def test_rows_are_canonical(small: DataSet) -> None:
    for rows, n_columns in ((small.X, SMALL.n_features), (small.Y, SMALL.n_labels)):
        for i in range(rows.n_rows):
            ids = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
            assert len(ids) > 0
            assert np.all(np.diff(ids) > 0)
            assert ids[0] >= 0
            assert ids[-1] < n_columns
    assert np.all(np.isfinite(small.X.values))
    assert np.all(small.X.values > 0)


@pytest.mark.parametrize(("n_documents", "n_labels"), [(2_000, 300), (1_000, 1_000), (600, 1_003), (400, 7)])
def test_every_label_has_a_training_document(n_documents: int, n_labels: int) -> None:
    Y = generate(SMALL._replace(n_documents=n_documents, n_labels=n_labels)).Y
    assert set(Y.indices.tolist()) == set(range(n_labels))


def test_more_labels_than_places_for_them() -> None:
    Y = generate(SMALL._replace(n_documents=100, n_labels=5_000)).Y
    assert len(Y.indices) / Y.n_rows == pytest.approx(SMALL.labels_per_document, rel=0.2)


def test_frequencies_fall_as_a_power_law() -> None:
    Y = generate(SMALL._replace(n_documents=20_000, n_labels=1_000)).Y
    counts = np.bincount(Y.indices, minlength=1_000)
    # Means over ranks that double: noise of single labels does not matter.
    means = [counts[start : 2 * start].mean() for start in (4, 8, 16, 32, 64, 128, 256)]
    slope = np.polyfit(np.arange(len(means)) * np.log(2), np.log(means), 1)[0]
    assert -1.1 < slope < -0.5
    assert counts[:10].sum() > 10 * counts[-10:].sum()


def test_rows_do_not_depend_on_how_they_are_cut() -> None:
    whole, labels = draw_rows(SMALL, np.arange(300))
    piece, piece_labels = draw_rows(SMALL, np.arange(100, 200))
    part = slice(whole.indptr[100], whole.indptr[200])
    np.testing.assert_array_equal(piece.indices, whole.indices[part])
    np.testing.assert_array_equal(piece.values, whole.values[part])
    part = slice(labels.indptr[100], labels.indptr[200])
    np.testing.assert_array_equal(piece_labels.indices, labels.indices[part])


def test_seed_and_part_change_the_documents() -> None:
    first = _sample()
    assert first == _sample()
    assert first != _sample(seed=2)
    assert first != _sample(part=TEST)


def _sample(part: int = 0, seed: int = 1) -> list[int]:
    return draw_rows(SMALL, np.arange(20), part=part, seed=seed)[0].indices.tolist()


def test_rare_words_weigh_more(small: DataSet) -> None:
    n_with_word = np.bincount(small.X.indices, minlength=SMALL.n_features)
    lightest = np.full(SMALL.n_features, np.inf)  # the weight of a word that occurs once in the row
    np.minimum.at(lightest, small.X.indices, small.X.values)
    common, rare = (
        int(np.argmax(n_with_word)),
        int(np.flatnonzero(n_with_word == n_with_word[n_with_word > 0].min())[0]),
    )
    assert lightest[common] < 0.5 * lightest[rare]
    n_rows = SMALL.n_documents
    assert lightest[common] == pytest.approx(np.log((1 + n_rows) / (1 + n_with_word[common])) + 1, rel=1e-5)


def test_labels_can_be_told_from_words_of_new_documents(small: DataSet) -> None:
    """A label's mean training row is nearest to test rows that have it, far more often than chance."""
    means = np.zeros((SMALL.n_labels, SMALL.n_features))
    X, X_test = _dense(small.X), _dense(small.X_test)
    for i in range(small.Y.n_rows):
        means[small.Y.indices[small.Y.indptr[i] : small.Y.indptr[i + 1]]] += X[i]
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    best = np.argmax(X_test @ means.T, axis=1)
    Y = small.Y_test
    hits = [best[i] in Y.indices[Y.indptr[i] : Y.indptr[i + 1]] for i in range(Y.n_rows)]
    frequent = np.bincount(small.Y.indices).argmax()
    chance = np.mean([frequent in Y.indices[Y.indptr[i] : Y.indptr[i + 1]] for i in range(Y.n_rows)])
    assert np.mean(hits) > 0.5 > 2 * chance


def _dense(rows: SparseRows) -> np.ndarray:
    out = np.zeros((rows.n_rows, rows.n_columns))
    out[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.indices] = rows.values
    return out
