"""Which words of a text its features are in, and that no share is lost on the way from one to the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import labeltree
from labeltree.config import Config
from labeltree.explain.row import Word
from labeltree.explain.segments import segments
from labeltree.features.places import word_spans
from labeltree.features.text import TextFeatures
from labeltree.reference.text import lower_case, split_line

TEXTS = [
    "Bread bread, and sourdough-bread.",
    "a café für Böden",
    "パンを焼く the oven",
    "knife",
    "of the bread oven",
]
LABELS = [["baking"], ["café"], ["baking", "japan"], ["tools"], ["baking"]]
ALPHABET = st.text(alphabet="abÄé ,.-_パンを9\t\n\0​İ", max_size=30)


def model(**parameters: Any) -> labeltree.Model:
    return labeltree.train(TEXTS * 3, LABELS * 3, min_rows=1, **parameters)


@given(text=st.one_of(ALPHABET, st.text(max_size=30)), tokens=st.sampled_from(["words", "spaces"]))
@example(text="", tokens="words")
@example(text="パ", tokens="words")
@example(text="aパンb パン", tokens="words")
def test_words_are_where_the_reference_cuts_them(text: str, tokens: str) -> None:
    config = Config(tokens=tokens)
    start, end = word_spans(text, config)
    words = [text[s:e].encode() for s, e in zip(start, end, strict=True)]
    expected = split_line(text.replace("\0", " ").encode(), config, labels_in_text=False).words
    assert [lower_case(word) for word in words] == expected


def test_weights_beside_words_are_no_part_of_them() -> None:
    start, end = word_spans("one:0.5 a:b:2", Config(weighted_words=True, char_weight=0.0, pair_weight=0.0))
    assert list(zip(start.tolist(), end.tolist(), strict=True)) == [(0, 3), (8, 11)]


@pytest.mark.parametrize("parameters", [{}, {"word_ngrams": 3}, {"strongest": 2}, {"tokens": "spaces"}])
def test_every_feature_of_a_text_is_in_some_of_its_words(parameters: dict[str, Any]) -> None:
    trained = model(**parameters)
    features = trained.features
    assert isinstance(features, TextFeatures)
    for text in [*TEXTS, "unknown breads bread oven"]:
        row = features.single(text)
        assert all(map(np.array_equal, row, features.given_rows([text])))
        places = features.places(text)
        assert set(row.indices.tolist()) <= set(places.column.tolist())
        words = [text[s:e].lower() for s, e in zip(places.start, places.end, strict=True)]
        for column, first, n in zip(places.column, places.first_word, places.n_words, strict=True):
            name = features.feature_name(int(column))
            if not name.startswith("bucket"):
                assert name.strip("*") in " ".join(words[first : first + n]), (text, name)


@pytest.mark.parametrize("parameters", [{}, {"word_ngrams": 2}, {"row_norm": "mean"}, {"lowercase": False}])
def test_words_have_all_of_the_shares(parameters: dict[str, Any]) -> None:
    trained = model(**parameters)
    for text in TEXTS:
        label = trained.explain(text, k=1).labels[0]
        total = pytest.approx(label.total)
        assert sum(word.share for word in label.words) == total
        assert sum(term.share for term in label.terms) == total
        assert sum(feature.share for feature in label.features) == total
        assert [word.text for word in label.words] == [text[word.start : word.end] for word in label.words]


def test_a_word_that_is_there_twice_is_one_term() -> None:
    label = model().explain(TEXTS[0], "baking").labels[0]
    of_bread = [word.share for word in label.words if word.text.lower() == "bread"]
    assert len(of_bread) == 3
    assert dict(label.terms)["bread"] == pytest.approx(sum(of_bread))


@given(text=ALPHABET)
def test_segments_are_the_text_and_have_all_shares(text: str) -> None:
    start, end = word_spans(text, Config())
    spans = zip(start.tolist(), end.tolist(), strict=True)
    words = [Word(text[s:e], s, e, float(number + 1)) for number, (s, e) in enumerate(spans)]
    pieces = list(segments(text, words))
    assert "".join(piece.text for piece in pieces) == text
    assert sum(piece.share for piece in pieces) == pytest.approx(sum(word.share for word in words))


@pytest.mark.parametrize("parameters", [{}, {"strongest": 2}, {"pair_weight": 0.0}, {"char_weight": 0.0}])
def test_a_short_text_has_the_places_of_any_text(parameters: dict[str, Any]) -> None:
    features = model(**parameters).features
    assert isinstance(features, TextFeatures)
    for text in [*TEXTS, "", "unknown breads bread oven", "of bread bread"]:
        quick = features.places(text)
        listed = features.listed_places(text, quick.start, quick.end)
        pairs = [
            sorted(zip(*(array.tolist() for array in places[2:]), strict=True)) for places in (quick, listed)
        ]
        assert pairs[0] == pairs[1]


def test_words_may_become_neighbours() -> None:
    features = model().features
    text = "of new the new new bread oven"
    distant = [place for place in zip(*features.places(text, 4)[2:], strict=True) if place[2] < 0]
    names = {(features.feature_name(int(column)), int(first), int(n)) for column, first, n in distant}
    assert names == {("of the", 0, -3), ("the bread", 2, -4), ("the oven", 2, -5)}
