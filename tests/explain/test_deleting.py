"""Words that a label hangs on: found by asking the model again, in order of how far it falls."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import labeltree
from labeltree.errors import DataError, ParameterError
from labeltree.explain.deleting import find_deletions
from labeltree.explain.row import Word

TEXTS = ["bread oven flour", "soup pot", "bread knife", "soup oven", "the pot"] * 8
LABELS = [["baking"], ["cooking"], ["baking", "tools"], ["cooking"], ["tools"]] * 8
TEXT = "Bread, the oven and bread"


@pytest.fixture(scope="module")
def model() -> labeltree.Model:
    return labeltree.train(TEXTS, LABELS, min_rows=1)


def by_hand(model: labeltree.Model, text: str, label: str) -> float:
    return float(model.probability([text], [label])[0, 0])


def test_the_first_word_is_the_one_without_which_it_falls_most(model: labeltree.Model) -> None:
    found = model.explain(TEXT, "baking", deletions=2).labels[0]
    assert found.deletions[0].word == "bread"
    assert found.deletions[0].probability == by_hand(model, ", the oven and ", "baking")
    assert found.deletions[0].probability < found.probability
    falling = [deletion.probability for deletion in found.deletions]
    assert falling == sorted(falling, reverse=True)
    assert f"{falling[0]:.3g} without bread" in str(found)
    assert found.to_dict()["deletions"][0] == {"word": "bread", "probability": falling[0]}
    assert json.dumps(found.to_dict())


def test_every_label_has_its_own(model: labeltree.Model) -> None:
    explained = model.explain("bread and soup", deletions=1)
    words = {found.label: [each.word for each in found.deletions or ()] for found in explained.labels}
    assert words["baking"] == ["bread"]
    assert words["cooking"] == ["soup"]
    assert "without bread" in explained.to_html()


def test_none_unless_asked_for(model: labeltree.Model) -> None:
    found = model.explain(TEXT, "baking").labels[0]
    assert found.deletions is None
    assert "deletions" not in found.to_dict()


def test_a_label_that_hangs_on_no_word_says_so(model: labeltree.Model) -> None:
    explained = model.explain("quite unknown", "baking", deletions=2)
    assert explained.to_dict()["labels"][0]["deletions"] == []
    assert "it hangs on no word" in repr(explained)
    assert "it hangs on no word" in explained.to_html()


def test_words_are_deleted_one_after_another_until_nothing_falls() -> None:
    text = "a b c"
    words = [Word("a", 0, 1, 0.1), Word("b", 2, 3, 0.3), Word("c", 4, 5, -0.2)]
    asked: list[list[str]] = []

    def probabilities(texts: list[str]) -> list[float]:
        asked.append(texts)
        return [0.9 if "a" in each else 0.2 if "b" in each else 0.5 for each in texts]

    found = find_deletions(text, words, 5, probabilities)
    assert [tuple(each) for each in found] == [("a", 0.2)]
    assert asked == [["a b c"], ["a  c", " b c"], ["  c"]], "c speaks against it"


@pytest.mark.parametrize("text", ["", "unknown words only"])
def test_a_text_without_words_hangs_on_none(model: labeltree.Model, text: str) -> None:
    assert all(found.deletions == [] for found in model.explain(text, deletions=3).labels)


@pytest.mark.parametrize("n", [-1, 1.5, "2", None.__class__])
def test_what_is_no_number_is_refused(model: labeltree.Model, n: Any) -> None:
    with pytest.raises(ParameterError, match="deletions must be a number of words"):
        model.explain(TEXT, deletions=n)


def test_words_of_a_vector_cannot_be_deleted() -> None:
    vectors = labeltree.train(np.eye(4), [["a"], ["b"], ["a"], ["b"]])
    with pytest.raises(DataError, match="X must be a text"):
        vectors.explain(np.eye(4)[0], deletions=1)


RECIPES = [
    "bake the bread in the oven",
    "boil soup in a pot",
    "knead bread dough for the oven",
    "cut soup greens",
]
KINDS = [["baking"], ["cooking"], ["baking", "dough"], ["cooking"]]


def without(text: str, words: set[str]) -> str:
    return " ".join("" if word in words else word for word in text.split())


@pytest.mark.parametrize(
    "parameters", [{}, {"strongest": 3}, {"trees": 2}, {"nodes": "dense"}, {"row_norm": "mean"}]
)
def test_an_estimate_is_what_trees_say_of_the_text_without_the_words(parameters: dict[str, Any]) -> None:
    """Also of pairs of words that become neighbours, and n-grams that others leave room for."""
    trained = labeltree.train(RECIPES * 9, KINDS * 9, min_rows=1, neighbours=0, **parameters)
    for text in [*RECIPES, "bread in dough for the soup pot", "the the oven bread bread"]:
        for label in ("baking", "cooking"):
            gone = set[str]()
            for found in trained.explain(text, label).labels[0].strongest(4):
                gone.add(found.word)
                expected = by_hand(trained, without(text, gone), label)
                assert found.probability == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_an_estimate_with_neighbours_is_near(model: labeltree.Model) -> None:
    gone = set[str]()
    for found in model.explain(TEXT.lower(), "baking").labels[0].strongest(2):
        gone.add(found.word)
        assert found.probability == pytest.approx(
            by_hand(model, without("bread the oven and bread", gone), "baking"), abs=0.02
        )
    assert "bread" in gone


@pytest.mark.parametrize("parameters", [{"link": "hsm"}, {"forest": 2}, {"word_ngrams": 2}])
def test_where_nothing_can_be_estimated_the_model_is_asked(parameters: dict[str, Any]) -> None:
    trained = labeltree.train(TEXTS, [[labels[0]] for labels in LABELS], min_rows=1, **parameters)
    label = trained.explain(TEXT, "baking", deletions=2).labels[0]
    assert label.strongest(2) == label.deletions
    assert label.deletions[0].probability == by_hand(trained, ", the oven and ", "baking")


def test_words_of_scripts_without_spaces_are_asked_for() -> None:
    trained = labeltree.train(
        ["パンを焼く oven", "スープ pot"] * 9, [["baking"], ["cooking"]] * 9, min_rows=1
    )
    label = trained.explain("パンを焼く pot", "baking", deletions=1).labels[0]
    assert label.strongest(1) == label.deletions != []


def test_a_vector_has_no_strongest_words() -> None:
    vectors = labeltree.train(np.eye(4), [["a"], ["b"], ["a"], ["b"]])
    assert vectors.explain(np.eye(4)[0]).labels[0].strongest() == []
    with pytest.raises(ParameterError, match="must be a number of words"):
        vectors.explain(np.eye(4)[0]).labels[0].strongest(-1)
