"""Blocks beside the words: which n-grams and pairs there are, their names and weights."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from labeltree.config import Config, make_config
from labeltree.data.memory import texts_to_block
from labeltree.errors import ParameterError
from labeltree.features import blocks
from labeltree.features.text import TextFeatures
from labeltree.kernels.text.blocks import mark_pairs
from labeltree.kernels.text.short import transform_text

NO_BLOCKS = {"char_weight": 0.0, "pair_weight": 0.0}


def fit(texts: list[str], **values: float) -> TextFeatures:
    """With the blocks that have a weight here, and no others."""
    return TextFeatures.fit([texts_to_block(texts)], make_config(NO_BLOCKS | values))[0]


def names(features: TextFeatures, block: int) -> list[str]:
    start, end = features.block_end[block - 1 : block + 1].tolist()
    return [features.feature_name(column) for column in range(start, end)]


def test_ngrams_have_spaces_around_words() -> None:
    features = fit(["über a", "a tie"], char_weight=1.0, min_rows=1)
    assert names(features, 1) == ["a", "übe*", "*über*", "*ber", "tie*", "*tie"]
    assert features.blocks[0].table.strings()[:2] == [" a ", " übe"]
    assert features.feature_name(0) == "a"


def test_ngrams_of_unknown_words_are_known() -> None:
    features = fit(["training trainer", "train", "other"], char_weight=0.5)
    row = features.transform_texts(["trains"])
    assert [features.feature_name(column) for column in row.indices] == ["tra*", "*trai*", "*rain*"]
    np.testing.assert_allclose(np.linalg.norm(row.values), 1.0, rtol=1e-6)


def test_pairs_are_of_known_words_next_to_each_other() -> None:
    texts = ["red wine here", "Red wine; there", "wine red", "red rare wine"]
    features = fit(texts, pair_weight=1.0, min_rows=1, min_count=2)
    assert names(features, 1) == ["red wine", "wine red"]
    assert len(fit(texts, pair_weight=1.0).blocks[0].table) == 1


@pytest.mark.parametrize("min_rows", [1, 2, 3])
def test_pairs_are_counted_exactly(min_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the marks of pairs that occur once let through."""
    monkeypatch.setattr(blocks, "BITS_PER_TOKEN", 1)
    generator = np.random.default_rng(7)
    texts = [" ".join(f"w{w}" for w in generator.zipf(1.2, 40) % 300) for _ in range(200)]
    features = fit(texts, pair_weight=0.4, min_rows=min_rows)
    rows = Counter(pair for text in texts for pair in dict.fromkeys(pairwise(text.split())))
    expected = [" ".join(pair) for pair, n in rows.most_common() if n >= min_rows]
    assert names(features, 1) == expected


def test_marks_tell_what_occurs_twice() -> None:
    keys = np.arange(100, dtype=np.uint64)
    once, twice = np.zeros(1 << 10, np.uint64), np.zeros(1 << 10, np.uint64)
    mark_pairs(keys, once, twice)
    n_false = int(np.bitwise_count(twice).sum()) if hasattr(np, "bitwise_count") else 0
    mark_pairs(keys[:10], once, twice)
    assert n_false <= 2
    assert 8 <= sum(bin(int(word)).count("1") for word in twice) <= 12


def test_blocks_have_norms_and_weights_of_their_own() -> None:
    features = fit(["one two three", "one two"], char_weight=0.7, pair_weight=0.4, row_norm="l2")
    rows = features.transform_texts(["one two", "three"])
    first, second = np.split(rows.values, rows.indptr[1:-1])
    of_block = np.searchsorted(features.block_end, rows.indices[: len(first)], "right")
    lengths = [np.linalg.norm(first[of_block == block]) for block in range(3)]
    np.testing.assert_allclose(lengths, np.array([1, 0.7, 0.4]) / np.linalg.norm([1, 0.7, 0.4]), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(second), 1.0, rtol=1e-6)


def test_the_strongest_of_a_block_are_kept() -> None:
    texts = ["tea tea coffee", "tea cake", "cake coffee", "tea"]
    features = fit(texts, char_weight=1.0, min_rows=1, strongest=2)
    row = features.transform_texts(["tea coffee tea"])
    assert [features.feature_name(column) for column in row.indices] == ["tea", "coffee", "tea*", "*tea"]
    np.testing.assert_allclose(np.linalg.norm(row.values), 1.0, rtol=1e-6)


def test_the_idf_of_unseen_rows_is_of_all_ngrams_not_of_the_kept_ones() -> None:
    texts = [f"word{k} common rare{k % 9}" for k in range(60)]
    values = NO_BLOCKS | {"char_weight": 0.7, "row_norm": "none", "tf": "binary"}
    held_out = np.array([3, 5])
    unseen = []
    for strongest in (0, 8):
        block = texts_to_block(texts)
        features, _, rows, _ = TextFeatures.fit([block], make_config({**values, "strongest": strongest}))
        part = features.as_unseen(rows, held_out)
        names_of = map(features.feature_name, part.indices)
        unseen.append(dict(zip(names_of, part.values.tolist(), strict=True)))
    everything, kept = unseen
    assert 0 < len(kept) < len(everything)
    assert kept == pytest.approx({name: everything[name] for name in kept}, rel=0.02)


def test_one_text_is_as_in_a_batch() -> None:
    features = fit(
        ["one two three", "one two", "über die brücke"], char_weight=0.7, pair_weight=0.4, min_rows=1
    )
    for text in ("one two bridge über", "", "x", "two two two die brücken"):
        buffer, encoded = features.short_text(text) or pytest.fail("there is no quick way")
        n = transform_text(buffer.table, encoded)
        expected = features.transform_texts([text])
        assert buffer.indices[:n].tolist() == expected.indices.tolist()
        assert buffer.values[:n].tobytes() == expected.values.tobytes()


@pytest.mark.parametrize("n_listed", [0, 1, 3])
def test_ngrams_are_the_same_whether_listed_or_cut(n_listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LISTED_WORDS", n_listed)
    texts = ["one two three", "one two", "über die brücke", "one brücken"]
    block = texts_to_block(texts)
    features, _, rows, _ = TextFeatures.fit([block], Config(char_weight=0.7, min_rows=1))
    again = features.transform_texts(texts)
    assert again.indices.tolist() == rows.indices.tolist()
    assert again.values.tobytes() == rows.values.tobytes()


def test_words_with_weights_have_no_blocks() -> None:
    config = Config(weighted_words=True, char_weight=1.0, pair_weight=1.0)
    features, _, rows, _ = TextFeatures.fit([texts_to_block(["one:1 two:2", "one:1 two:2"])], config)
    assert (features.blocks, rows.n_columns) == ((), 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"weighted_words": True, "char_weight": 2},
            "char_weight=2 has no effect where weighted_words is yes",
        ),
        (
            {"char_weight": 0.0, "char_ngrams": 3},
            "char_ngrams=3 has no effect where char_weight is 0.0: .* char_weight=above 0",
        ),
        (
            NO_BLOCKS | {"min_rows": 3},
            "min_rows=3 has no effect .* char_weight=above 0, or pair_weight=above 0",
        ),
    ],
)
def test_what_has_no_effect_is_told(values: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_config(values)
