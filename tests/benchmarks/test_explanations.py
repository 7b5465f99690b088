"""The parts of the benchmark of explanations that need no data set and no LIME."""

from __future__ import annotations

import pytest

from benchmarks.explanations import main, strongest, without


def test_the_strongest_words_are_those_that_speak_for_a_label() -> None:
    words = [("a", 0.1), ("B", 3.0), ("c", -9.0), ("d", 2.0), ("e", 1.0)]
    assert strongest(words) == {"b", "d", "e"}
    assert strongest(words[2:3]) == set()


def test_words_are_deleted_wherever_they_stand() -> None:
    assert without("Bread, bread and breads", {"bread"}) == ",  and breads"


def test_the_search_for_labels_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["labels", "--n-labels", "500"])
    told = capsys.readouterr().out
    assert "500 labels" in told
    assert "1 found" in told
