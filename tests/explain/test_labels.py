"""Labels found by a part of their names, and what a model knows of one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labeltree
from labeltree.errors import DataError, ParameterError
from labeltree.explain import labels
from labeltree.explain.labels import LabelSearch, reliability_of
from labeltree.features.strings import StringTable

NAMES = ["Bread", "bread baking", "Sourdough bread", "Straße", "ÉTÉ", "a\nb", "a\0b", "knives", "İstanbul"]


def search_of(names: list[str]) -> LabelSearch:
    return LabelSearch(StringTable.from_strings(names), np.arange(1, len(names) + 1))


def found_by(search: LabelSearch, part: str) -> list[str]:
    return search.names_of(search.find(part))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("bread", ["Bread", "bread baking", "Sourdough bread"]),  # itself, then beginnings, then parts
        ("BREAD b", ["bread baking"]),
        ("strasse", ["Straße"]),
        ("été", ["ÉTÉ"]),
        ("\n", ["a\nb"]),
        ("\0", ["a\0b"]),
        ("nothing", []),
        ("d\0s", []),  # no name goes on into the next
    ],
)
def test_parts_of_names_are_found_in_any_case(part: str, expected: list[str]) -> None:
    assert found_by(search_of(NAMES), part) == expected


def test_an_empty_part_is_in_all_names_the_most_frequent_first() -> None:
    assert found_by(search_of(NAMES), "") == NAMES[::-1]


@given(
    names=st.sets(st.text(alphabet="aAbß \0\n", max_size=4), min_size=1, max_size=8),
    part=st.text("aAbß", max_size=2),
)
def test_all_names_with_a_part_are_found(names: set[str], part: str) -> None:
    listed = sorted(names)
    expected = {name for name in listed if part.casefold() in name.casefold()}
    assert set(found_by(search_of(listed), part)) == expected


@given(
    names=st.lists(st.text(alphabet="ab ", min_size=1, max_size=4), min_size=1, max_size=8, unique=True),
    part=st.text("ab", max_size=2),
    n=st.integers(0, 9),
)
def test_the_first_labels_are_the_first_of_all(names: list[str], part: str, n: int) -> None:
    search = search_of(names)
    found = search.find(part).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_FEW_FOUND", 0)  # by arrays, as where many names have a part
        assert search.find(part).tolist() == found
    first, n_found = search.first(part, n)
    assert (first.tolist(), n_found) == (found[:n], len(found))


def test_names_with_every_control_character_are_found_too() -> None:
    names = ["".join(map(chr, (*range(32), 127))), "other"]
    assert set(found_by(search_of(names), "other")) == {"other"}


def test_near_names_are_told() -> None:
    search = search_of(NAMES)
    assert search.near("bred")[0] == "Bread"
    assert search.near("knifes") == ["knives"]
    assert search.near("xyz") == []
    assert search.near("") == []


@pytest.fixture(scope="module")
def model() -> labeltree.Model:
    words = {"bread": "flour yeast", "cake": "sugar icing", "soup": "broth pot", "rare": "odd"}
    texts = [words[name] for name in ("bread", "cake", "soup") for _ in range(10)] + ["odd pot"]
    labels = [[name] for name in ("bread", "cake", "soup") for _ in range(10)] + [["rare"]]
    return labeltree.train(texts, labels, arity=2, max_leaves=2)


def test_a_label_has_a_card(model: labeltree.Model) -> None:
    card = model.label("bread")
    assert card.n_rows == 10
    assert card.frequency == pytest.approx(10 / 31)
    assert {"flour", "yeast"} <= {word.name for word in card.words}
    assert all(-1.0 <= likeness <= 1.0 + 1e-6 for _, likeness in card.nearest)
    assert "10 training rows" in card.reliability
    assert "bread" in repr(card)
    assert card.to_dict()["rows"] == 10


@pytest.mark.parametrize(
    ("n_rows", "said"),
    [(0, "probability is 0"), (1, "1 training row has"), (7, "too few"), (99, "test --per-label")],
)
def test_what_counts_tell_is_said(n_rows: int, said: str) -> None:
    assert said in reliability_of(n_rows, is_calibrated=True)
    assert "not calibrated" in reliability_of(max(1, n_rows), is_calibrated=False)


def test_unknown_labels_are_answered_with_near_ones(model: labeltree.Model) -> None:
    for call in (
        model.label,
        lambda name: model.explain("flour", name),
        lambda name: model.why_not("x", name),
    ):
        with pytest.raises(DataError, match="'bred' is not among the model's 4 labels; did you mean 'bread'"):
            call("bred")
    with pytest.raises(DataError, match=r"4 labels; find_labels, or labeltree labels MODEL --search TEXT"):
        model.label("xyzzy")
    with pytest.raises(ParameterError, match="part must be a text, but is None"):
        model.find_labels(None)  # type: ignore[arg-type]


def test_where_a_label_was_lost(model: labeltree.Model) -> None:
    why = model.why_not("flour yeast pot", "cake")
    assert why.probability < 0.5
    assert why.instead[0][0] == "bread"
    assert why.lost_at is not None
    assert why.lost_at.probability == min(node.probability for node in why.explanation.parts[0].path)
    assert all(term.share < 0 for term in why.against)
    assert "cake has" in repr(why)
    assert why.to_dict()["lost_at"]["n_labels"] >= 1
