"""Text features: kernels against the plain reference, errors, round trips."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeltree.config import Config, make_config
from labeltree.data.bad_lines import BadLines
from labeltree.data.rows import Block, LabelRows, SparseRows
from labeltree.errors import CorruptedModelError, DataError
from labeltree.features import splitting
from labeltree.features.counting import Tokens, weighed_rows
from labeltree.features.short_text import SHORT_TEXT
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.kernels.sorting import MOST_COLUMNS_RANKED, MOST_RANKED
from labeltree.kernels.text.counts import unite_labels
from labeltree.kernels.text.rows import NORM_NONE, TF_COUNT, Weighing
from labeltree.kernels.text.short import transform_text
from labeltree.reference import text as reference

# Few distinct words, so that they repeat; long, accented, malformed and awkward ones among them.
WORDS = [
    b"a",
    b"B",
    b"the",
    b"The",
    b"abcdefgh",
    b"ABCDEFGHi",
    b"x" * 17,
    b"__label__",
    b":",
    b"1:2",
    b"!\x01",
]
WORDS += ["Éclair", "ÜBER-alles", "ΣΊΣΥΦΟΣ", "İstanbul", "Kelvin", "Ⱥ" * 9, "🙂A", "ß", "\u13a0"]
WORDS += [
    "don't",
    "3.11",
    "snake_case",
    "naïve-Bayes",
    "Python入門",
    "データベース、",
    "ภาษาไทย",
    "𠮷野",
    "हिन्दी",
]
WORDS += ["x\N{EN DASH}Y", "a__label__x", "…", "\N{MATHEMATICAL BOLD CAPITAL A}b", "Ⱥ漢", "漢", "漢字a字"]
WORDS += [b"\xff\xfeA", b"\xe2\x82", b"\xed\xa0\x80Z", b"\xc0\x80"]
tokens = st.sampled_from([word.encode() if isinstance(word, str) else word for word in WORDS])
labels = st.sampled_from([b"__label__x", b"__label__y:1", "__label__Ä".encode(), b"__label__long-label-name"])
spaces = st.sampled_from([b" ", b"\t", b"  ", b"\0", b"\v\f", b"\r"])
lines = st.lists(st.tuples(st.one_of(tokens, tokens, labels), spaces).map(b"".join), max_size=12).map(
    b"".join
)


ONLY_WORDS: dict[str, Any] = {"char_weight": 0.0, "pair_weight": 0.0}


def make_block(texts: Sequence[bytes], label_lists: Sequence[Sequence[bytes]] | None = None) -> Block:
    """Texts back to back, so that words end where the next text begins."""
    flat = [label for row in label_lists or [] for label in row]
    ends = np.cumsum([len(piece) for piece in [*texts, *flat]], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    n = len(texts)
    return Block(
        source="test.txt",
        buffer=np.frombuffer(b"".join([*texts, *flat]), np.uint8),
        text_start=starts[:n].copy(),
        text_end=ends[:n].copy(),
        label_start=starts[n:].copy(),
        label_end=ends[n:].copy(),
        label_indptr=np.cumsum([0, *(map(len, label_lists or [[]] * n))], dtype=np.int64),
        line=np.arange(1, n + 1),
        labels_in_text=label_lists is None,
    )


def as_dicts(rows: SparseRows) -> list[dict[int, float]]:
    edges = rows.indptr.tolist()
    pairs = list(zip(rows.indices.tolist(), rows.values.tolist(), strict=True))
    return [dict(pairs[start:end]) for start, end in pairwise(edges)]


def as_lists(rows: LabelRows) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.indices, rows.indptr[1:-1])] if rows.n_rows else []


def assert_same_rows(rows: SparseRows, expected: list[dict[int, float]]) -> None:
    assert rows.n_rows == len(expected)
    for row, expected_row in zip(as_dicts(rows), expected, strict=True):
        assert list(row) == list(expected_row)  # sorted, each once
        np.testing.assert_allclose(list(row.values()), list(expected_row.values()), rtol=2e-6)


def equal_rows(first: SparseRows, second: SparseRows) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


settings_grid = st.fixed_dictionaries(
    {
        "tokens": st.sampled_from(["words", "spaces"]),
        "lowercase": st.booleans(),
        "min_count": st.integers(1, 3),
        "word_ngrams": st.integers(1, 4),
        "ngram_buckets": st.sampled_from([1, 7, 1000]),
        "char_weight": st.sampled_from([0.0, 0.0, 0.7]),
        "char_ngrams": st.integers(2, 5),
        "pair_weight": st.sampled_from([0.0, 0.0, 0.4]),
        "min_rows": st.integers(1, 2),
        "strongest": st.sampled_from([0, 0, 3]),
        "tf": st.sampled_from(["log", "count", "binary"]),
        "idf": st.booleans(),
        "row_norm": st.sampled_from(["l2", "mean", "none"]),
    }
)


def split_all(texts: Sequence[bytes], config: Any) -> tuple[list[bytes], list[reference.Line]]:
    """The good texts and their reference lines."""
    good, split = [], []
    for text in texts:
        try:
            split.append(reference.split_line(text, config, labels_in_text=True))
        except ValueError:
            continue
        good.append(text)
    return good, split


@given(st.lists(lines, max_size=8), st.lists(lines, max_size=4), settings_grid)
@settings(max_examples=300)
def test_fit_and_transform_agree_with_reference(
    train: list[bytes], test: list[bytes], values: dict[str, Any]
) -> None:
    config = Config(**values)
    bad_lines = BadLines(skip=True)
    features, table, rows, label_rows = TextFeatures.fit([make_block(train)], config, bad_lines)
    good, split = split_all(train, config)
    assert bad_lines.skipped == len(train) - len(good)
    expected = reference.fit_lines(split, config)
    ngrams = [part for block in expected.blocks for part in block if isinstance(part, bytes)]
    valid = [is_utf8(string) for string in [*expected.words, *ngrams]]
    assert features.words.strings() == [word.decode() for word in expected.words if is_utf8(word)]
    assert [name.encode() for name in table.strings()] == expected.labels
    assert as_lists(label_rows) == expected.label_rows
    if all(valid):
        np.testing.assert_allclose(features.idf, expected.idf, rtol=1e-6)
        assert_same_rows(rows, expected.rows)
        good_test, split_test = split_all(test, config)
        rows, label_rows = features.transform([make_block(good_test)], table)
        counts = [reference.count_line(line, expected, config) for line in split_test]
        assert_same_rows(rows, [reference.weigh_row(row, expected, config) for row in counts])
        assert as_lists(label_rows) == [reference.label_row(line, expected.labels) for line in split_test]


def is_utf8(word: bytes) -> bool:
    return word.decode("utf-8", "replace").encode() == word


def one_row(features: TextFeatures, text: str) -> SparseRows | None:
    """The row of a short text by the quick way."""
    short = features.short_text(text)
    if short is None:
        return None
    buffer, encoded = short
    n = transform_text(buffer.table, encoded)
    if n < 0:
        return None
    return SparseRows(np.array([0, n]), buffer.indices[:n], buffer.values[:n], features.n_columns)


@given(st.lists(lines, min_size=1, max_size=6), settings_grid)
@settings(max_examples=60)
def test_one_row_is_as_in_a_batch(texts: list[bytes], values: dict[str, Any]) -> None:
    config = Config(**values)
    features, _, _, _ = TextFeatures.fit([make_block(texts, [[]] * len(texts))], config)
    strings = [text.decode("utf-8", "replace") for text in texts]
    batch = features.transform_texts([*strings, "twice"])
    for k, string in enumerate(strings):
        row = slice(batch.indptr[k], batch.indptr[k + 1])
        for single in (one_row(features, string), features.transform_texts([string])):
            assert single.indices.tolist() == batch.indices[row].tolist()
            assert single.values.tobytes() == batch.values[row].tobytes()
            assert single.n_columns == features.n_columns


@pytest.mark.parametrize("kind", ["words", "spaces"])
def test_every_character_is_cut_and_lower_cased_as_in_reference(kind: str) -> None:
    # Not those that a newer Python knows and the frozen table does not.
    codes = [*range(1, 0x11000), *range(0x1F000, 0x1F700), *range(0x20000, 0x20100)]
    characters = [
        chr(code) for code in codes if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs")
    ]
    texts = [f"{c} x{c}yz".encode() for c in characters]
    config = make_config({"tokens": kind})
    features, _, _, _ = TextFeatures.fit([make_block(texts, [[]] * len(texts))], config)
    words = [word for text in texts for word in reference.split_line(text, config, False).words]
    assert set(features.words.strings()) == {word.decode() for word in words}


def test_batches_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    texts = [
        b"__label__%d " % (k % 7) + b" ".join(b"w%d" % w for w in generator.zipf(1.3, 30) % 900)
        for k in range(300)
    ]
    blocks = {"char_weight": 0.7, "pair_weight": 0.4}
    config = make_config({"word_ngrams": 2, "ngram_buckets": 5000, **blocks})
    features, table, rows, label_rows = TextFeatures.fit([make_block(texts)], config)
    monkeypatch.setattr(splitting, "BATCH_BYTES", 100)
    parts = [make_block(texts[:1]), make_block([]), make_block(texts[1:200]), make_block(texts[200:])]
    others, other_table, other_rows, other_labels = TextFeatures.fit(iter(parts), config)
    assert equal_rows(rows, other_rows)
    assert as_lists(label_rows) == as_lists(other_labels)
    assert table.strings() == other_table.strings()
    assert all(np.array_equal(a, others.tensors()[name]) for name, a in features.tensors().items())
    assert equal_rows(features.transform(parts, table)[0], rows)


def test_label_spans_and_unknown_labels() -> None:
    block = make_block([b"a b", b"__label__no c", b""], [[b"two words", b"X", b"X"], [], [b"x"]])
    features, table, rows, label_rows = TextFeatures.fit([block], make_config({"tokens": "spaces"}))
    assert table.strings() == ["two words", "X", "x"]
    assert as_lists(label_rows) == [[0, 1], [], [2]]
    assert len(features.words) == 4  # the word with the prefix is a word here
    assert rows.indptr.tolist() == [0, 2, 4, 4]
    test = make_block([b""], [[b"new", b"X", b"other", b"new"]])
    assert as_lists(features.transform([test], table)[1]) == [[-1, -1, 1]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ruby-spdx-licenses: SPDX license list", "ruby spdx licenses spdx license list"),
        ("Don't use C++ 3.11 (snake_case).", "don t use c 3 11 snake case"),
        ("see https://example.org/a?b=1", "see https example org a b 1"),
        ("Straßen\N{EN DASH}Übersicht, na\u0308ive", "straßen übersicht na\u0308ive"),
        ("Python入門:データ 漢", "python 入門 デー ータ 漢"),
        ("한국어 हिन्दी", "한국어 हिन्दी"),
        ("... -- 🙂", ""),
    ],
)
def test_what_words_are(text: str, words: str) -> None:
    features, _, _, _ = TextFeatures.fit([make_block([text.encode()])], make_config())
    assert set(features.words.strings()) == set(words.split())
    expected = reference.split_line(text.encode(), Config(), True).words
    assert [word.decode() for word in expected] == words.split()


def test_labels_end_at_white_space_only_and_begin_after_it() -> None:
    block = make_block([b"a,__label__no __label__C++/x;y b.c", b"__label__d"])
    features, table, _, _ = TextFeatures.fit([block], make_config())
    assert table.strings() == ["C++/x;y", "d"]
    assert features.words.strings() == ["a", "label", "no", "b", "c"]


def test_known_weights() -> None:
    config = make_config({"row_norm": "none"} | ONLY_WORDS)
    features, _, rows, _ = TextFeatures.fit([make_block([b"a a b", b"a"])], config)
    assert features.words.strings() == ["a", "b"]
    np.testing.assert_allclose(features.idf, 1 + np.log([3 / 3, 3 / 2]), rtol=1e-6)
    np.testing.assert_allclose(rows.values, [1 + np.log(2), 1 + np.log(1.5), 1], rtol=1e-6)


WEIGHTED = make_config({"weighted_words": True})
numbers = st.floats(0, 2.0**59, width=32).map(repr) | st.sampled_from(
    ["0", "1.", ".5", "007", "1E2", "2e-3", "1e+1"]
)


@given(st.lists(st.tuples(st.sampled_from(["a", "b:c", "Ö", "long-word-here"]), numbers), max_size=10))
def test_weighted_words_agree_with_reference(pairs: list[tuple[str, str]]) -> None:
    text = " ".join(f"{word}:{number}" for word, number in pairs).encode()
    config = make_config({"weighted_words": True, "row_norm": "none"})
    features, _, rows, _ = TextFeatures.fit([make_block([text, b"a:1 __label__a:b"])], config)
    split = [reference.split_line(line, config, True) for line in (text, b"a:1 __label__a:b")]
    assert_same_rows(rows, reference.fit_lines(split, config).rows)
    assert equal_rows(one_row(features, text.decode()), features.transform_texts([text.decode()]))


@pytest.mark.parametrize(
    "token", ["word", "word:", ":1", "w:-1", "w:nan", "w:inf", "w:1e19", "w:1e", "w:1x", "w:."]
)
def test_bad_weights_name_the_line(token: str) -> None:
    block = make_block([b"fine:1", f"fine:2 {token} fine:1".encode()])
    with pytest.raises(
        DataError, match=r"test\.txt, line 2: a word without a usable weight at byte 8"
    ) as error:
        TextFeatures.fit([block], WEIGHTED)
    assert repr(token) in str(error.value)
    bad_lines = BadLines(skip=True)
    features, _, rows, _ = TextFeatures.fit([block], WEIGHTED, bad_lines)
    assert (bad_lines.skipped, rows.n_rows) == (1, 1)
    with pytest.raises(DataError, match="a word without a usable weight"):
        features.transform_texts([token])
    assert one_row(features, token) is None


def test_an_empty_label_names_the_line() -> None:
    block = make_block([b"__label__a b", b"c __label__ d"])
    with pytest.raises(DataError, match=r"test\.txt, line 2: a label is empty at byte 12.*label prefix"):
        TextFeatures.fit([block], make_config())
    bad_lines = BadLines(skip=True)
    features, table, rows, label_rows = TextFeatures.fit([block], make_config(), bad_lines)
    assert features.words.strings() == ["b"]  # nothing of the bad line is learned
    assert (bad_lines.skipped, rows.n_rows, label_rows.n_rows, len(table)) == (1, 1, 1, 1)


def test_no_rows_and_no_words() -> None:
    for blocks in ([], [make_block([])], [make_block([b"", b" \0 "])]):
        features, table, rows, label_rows = TextFeatures.fit(blocks, make_config())
        assert (features.n_columns, len(table), len(rows.indices)) == (0, 0, 0)
        assert rows.n_rows == label_rows.n_rows
        assert features.transform_texts(["anything"]).indptr.tolist() == [0, 0]
        assert TextFeatures.from_tensors(features.tensors(), features.config).n_columns == 0


def test_a_long_row_and_a_long_word() -> None:
    text = b"x" * 100_000 + b" " + b" ".join(b"%d" % k for k in range(60_000))
    features, _, rows, _ = TextFeatures.fit([make_block([b"y", text, b"z"])], make_config())
    assert features.n_columns == 60_003
    assert np.diff(rows.indptr).tolist() == [1, 60_001, 1]
    assert equal_rows(features.transform([make_block([b"y", text, b"z"])], StringTable())[0], rows)


def test_hashes_stay_what_saved_models_expect() -> None:
    config = make_config({"word_ngrams": 3, "ngram_buckets": 1 << 20})
    words = [b"one", b"two", b"three"]
    assert reference.hash_word(b"labeltree") == 0x3D656CC8F80CB2FD
    assert reference.ngram_buckets(words, config) == [918015, 870658, 125906]
    features, _, _, _ = TextFeatures.fit([make_block([b" ".join(words)])], config)
    assert np.flatnonzero(features.column_of_bucket >= 0).tolist() == sorted([918015, 870658, 125906])


@given(st.lists(lines, min_size=2, max_size=8), settings_grid, st.integers(1, 7))
@settings(max_examples=100)
def test_held_out_rows_are_as_unseen(texts: list[bytes], values: dict[str, Any], n: int) -> None:
    """As features of the other rows alone would make them; with min_count 1, else rows count, not words."""
    config = Config(**values | {"min_count": 1, "strongest": 0})
    texts = [text.decode("utf-8", "ignore").encode() for text in texts]
    texts, _ = split_all(texts, config)
    held_out = np.arange(min(n, len(texts)), dtype=np.int64)
    features, _, rows, _ = TextFeatures.fit([make_block(texts)], config)
    others, _, _, _ = TextFeatures.fit([make_block(texts[len(held_out) :])], config)
    expected, _ = others.transform([make_block(texts[: len(held_out)])], StringTable())
    unseen = features.as_unseen(rows, held_out)
    assert unseen.n_columns == rows.n_columns
    found = [named(row, features) for row in as_dicts(unseen)]
    for row, other in zip(found, [named(row, others) for row in as_dicts(expected)], strict=True):
        assert row == pytest.approx(other, rel=1e-5)


def named(row: dict[int, float], features: TextFeatures) -> dict[tuple[int, str], float]:
    """By block and name instead of columns."""
    blocks = np.searchsorted(features.block_end, list(row), "right").tolist()
    names = [features.feature_name(column) for column in row]
    return dict(zip(zip(blocks, names, strict=True), row.values(), strict=True))


def test_words_of_too_few_other_rows_are_unseen() -> None:
    texts = [b"one two", b"one two three", b"one three", b"one"]
    config = make_config({"min_count": 2} | ONLY_WORDS)
    features, _, rows, _ = TextFeatures.fit([make_block(texts)], config)
    before = rows.values.copy()
    unseen = features.as_unseen(rows, np.array([0, 2]))
    assert [features.words[c] for c in unseen.indices] == ["one", "one"]
    assert unseen.values.tolist() == [1.0, 1.0]
    assert rows.values.tobytes() == before.tobytes()


def fitted(**values: Any) -> TextFeatures:
    block = make_block([b"__label__x one two three two", b"one four", b"two three five"])
    return TextFeatures.fit([block], make_config(values))[0]


BLOCKS = {"char_weight": 0.7, "pair_weight": 0.4, "min_rows": 1}


@pytest.mark.parametrize(
    "values", [{}, {"word_ngrams": 2, "ngram_buckets": 50}, BLOCKS, {"pair_weight": 1.0}]
)
def test_tensors_round_trip(values: dict[str, Any]) -> None:
    features = fitted(**values)
    again = TextFeatures.from_tensors(features.tensors(), features.config)
    texts = ["one two three unknown", "", "FIVE four"]
    assert equal_rows(features.transform_texts(texts), again.transform_texts(texts))
    assert all(name.startswith("features.") for name in features.tensors())


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("idf", None, "features.idf is missing"),
        ("idf", np.ones(3, np.float32), "features.idf is not"),
        ("idf", np.full(9, np.nan, np.float32), "features.idf is not"),
        ("idf", np.ones(9), "features.idf should be a list of float32"),
        ("idf", np.ones((3, 3), np.float32), "features.idf should be a list of float32"),
        ("bucket_row", np.full(49, -1, np.int32), "features.bucket_row has 49 entries"),
        ("bucket_row", np.full(50, 5, np.int32), "features.bucket_row does not number"),
        ("bucket_row", np.full(50, -2, np.int32), "features.bucket_row does not number"),
        ("words", np.zeros(0, np.uint8), "features.words: offsets"),
        ("ngrams", None, "features.ngrams is missing"),
        ("ngrams", np.full(1, 255, np.uint8), "features.ngrams: offsets"),
        ("ngram_offsets", np.arange(5), "features.ngrams: offsets"),
        ("pairs", None, "features.pairs is missing"),
        ("pairs", np.zeros(3, np.int32), "features.pairs is not two of 5 words"),
        ("pairs", np.array([0, 5], np.int32), "features.pairs is not two of 5 words"),
        ("pairs", np.array([-1, 0], np.int32), "features.pairs is not two of 5 words"),
        ("pairs", np.array([0, 1, 0, 1], np.int32), "features.pairs: string 1 is the same as string 0"),
        ("pairs", np.array([0, 1], np.int32), "features.idf is not"),
    ],
)
def test_corrupted_tensors_are_refused(name: str, tensor: np.ndarray | None, message: str) -> None:
    features = fitted(word_ngrams=2, ngram_buckets=50, **BLOCKS)
    tensors: dict[str, Any] = features.tensors() | {f"features.{name}": tensor}
    tensors = {key: value for key, value in tensors.items() if value is not None}
    with pytest.raises(CorruptedModelError, match=message):
        TextFeatures.from_tensors(tensors, features.config)


def test_text_that_has_no_utf8_form_is_an_error() -> None:
    with pytest.raises(DataError):
        fitted().transform_texts(["\ud800"])
    assert one_row(fitted(), "\ud800") is None


def test_the_quick_way_leaves_long_texts_to_the_other() -> None:
    text = "one two " * (SHORT_TEXT // 8)
    assert equal_rows(one_row(fitted(), text), fitted().transform_texts([text]))
    assert one_row(fitted(), text + "x") is None


@pytest.mark.parametrize("n", [0, 1, *(MOST_COLUMNS_RANKED + k for k in (-1, 0, 1)), 1000])
@pytest.mark.parametrize("strongest", [0, 30])
def test_rows_of_any_length_are_sorted_and_united(n: int, strongest: int) -> None:
    random = np.random.default_rng(n)
    n_columns = 4 * n + 8
    words = random.integers(-1, n_columns, n).astype(np.int32)  # -1 is unknown
    words[: n // 4] = words[n - n // 4 :]
    idf = random.integers(1, 5, n_columns).astype(np.float32)  # many are equal
    one, most = np.ones(1, np.float32), np.array([strongest])
    weighing = Weighing(idf, TF_COUNT, NORM_NONE, np.array([n_columns]), one, most)
    rows = weighed_rows([Tokens(words, one[:0], np.array([n]))], weighing)
    columns, counts = np.unique(words[words >= 0], return_counts=True)
    weights = counts * idf[columns]
    kept = np.sort(np.argsort(-weights, kind="stable")[: strongest or None])
    assert np.array_equal(rows.indices, columns[kept])
    assert np.array_equal(rows.values, weights[kept])


@pytest.mark.parametrize("n", [0, 1, MOST_RANKED - 1, MOST_RANKED, MOST_RANKED + 1, 1000])
def test_labels_of_any_number_are_sorted_and_united(n: int) -> None:
    random = np.random.default_rng(n)
    ids = random.integers(-(2**31), 2**31 - 1, n, np.int32, endpoint=True)
    ids[: n // 4] = ids[n - n // 4 :]
    end, labels = np.empty(1, np.int64), np.empty(n, np.int32)
    unite_labels(ids, np.array([n]), np.empty(n, np.int64), end, labels)
    assert np.array_equal(labels[: end[0]], np.maximum(np.unique(ids), -1))


def test_threads_do_not_disturb_each_other() -> None:
    features = fitted()
    texts = ["one two three", "four five five one", "", "two"]
    expected = [features.transform_texts([text]) for text in texts]

    def are_equal(text: str, row: SparseRows) -> bool:
        return all(equal_rows(one_row(features, text), row) for _ in range(300))

    with ThreadPoolExecutor(len(texts)) as pool:
        assert all(pool.map(are_equal, texts, expected))
