"""Explanations as text, as JSON and as a page: whatever texts and labels hold."""

from __future__ import annotations

import html.parser
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_data import make_toy

import labeltree
from labeltree.explain.html import page_of
from labeltree.explain.terminal import explanation_lines, plain

HOSTILE = "<script>alert(\"1\")</script> & 'quoted' \x1b[31mred\x1b[0m \u202eback\u202c </p></main> {body}"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def model() -> labeltree.Model:
    texts = ["flour yeast", "sugar icing", "broth pot", HOSTILE] * 6
    return labeltree.train(texts, [["bread"], ["cake"], ["soup"], [HOSTILE]] * 6)


class Page(html.parser.HTMLParser):
    """Which elements a page has, with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_holds_hostile_texts_and_labels_as_text(model: labeltree.Model) -> None:
    explained = model.explain(HOSTILE)
    assert explained.labels[0].label == HOSTILE
    content = explained.to_html()
    page = Page(content)
    assert "script" not in page.tags
    assert page.tags.count("main") == 1
    assert '<script>alert("1")</script>' in page.text
    assert "\x1b" not in content
    assert "\u202e" not in content
    assert not page.attributes & {"onload", "onerror", "src", "href"}
    assert "default-src 'none'" in content  # nothing is loaded, nothing is run
    assert "mark" in Page(explained._repr_html_()).tags


def test_a_terminal_is_told_nothing_to_obey(model: labeltree.Model) -> None:
    lines = explanation_lines(model.explain(HOSTILE))
    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    coloured = "\n".join(explanation_lines(model.explain(HOSTILE), colour=True))
    assert "\x1b[31mred" not in coloured
    assert "\x1b[1m" in coloured
    assert plain("a\tb\x9bc") == "a b c"


def test_it_can_be_read(model: labeltree.Model) -> None:
    explained = model.explain("Flour and yeast", k=2)
    shown = repr(explained)
    assert shown == "\n".join(explanation_lines(explained))
    assert "flour" in shown
    assert "█" in shown
    assert "similar training row" in shown
    assert "for an empty document" in repr(explained.labels[0])


def test_it_is_json(model: labeltree.Model) -> None:
    told = json.loads(json.dumps(model.explain("flour pot", ["bread", "soup"]).to_dict(), allow_nan=False))
    assert told["text"] == "flour pot"
    assert [label["label"] for label in told["labels"]] == ["bread", "soup"]
    first = told["labels"][0]
    assert sum(term["share"] for term in first["terms"]) + first["rest"] == pytest.approx(first["total"])
    assert first["experts"][0]["path"][-1]["labels"] == ["bread"]
    assert first["experts"][1]["neighbours"][0]["row"] >= 0
    json.dumps(model.why_not("flour", "soup").to_dict(), allow_nan=False)


@pytest.mark.parametrize("text", ["", "xyzzy qqq", "\0", "  \n "])
def test_texts_of_which_nothing_is_known(model: labeltree.Model, text: str) -> None:
    explained = model.explain(text, k=2)
    assert not explained.is_known
    assert explained.to_dict()["unknown"] is True
    for label in explained.labels:
        assert label.total == label.rest == 0.0
        assert label.probability == label.at_empty
    assert "known to the model" in repr(explained)
    assert "known to the model" in explained.to_html()


def test_a_label_of_probability_0_is_explained_too() -> None:
    toy = make_toy(60)
    Y = np.concatenate([toy.indicator, np.zeros((60, 1), np.int8)], axis=1)
    model = labeltree.train(toy.texts, Y)
    label = model.explain(toy.texts[0], "12").labels[0]
    assert label.probability == label.total == 0.0
    assert label.unit == "probability"
    json.dumps(label.to_dict(), allow_nan=False)
    why = model.why_not(toy.texts[0], "12")
    assert why.lost_at is not None
    assert why.lost_at.probability == 0.0
    assert "12 has 0" in repr(why)
    assert "probability is 0" in repr(model.label("12"))


def test_vectors_have_columns_for_words() -> None:
    toy = make_toy(100)
    model = labeltree.train(toy.X, toy.Y)
    dense = np.zeros(toy.X.n_columns, np.float32)
    dense[[0, 1, 40]] = 1.0
    explained = model.explain(dense)
    assert explained.text is None
    assert {term.name for term in explained.labels[0].terms} <= {"0", "1", "40"}
    assert explained.labels[0].words == []
    assert "mark" not in Page(explained.to_html()).tags
    assert repr(model.explain(dense[None, :])) == repr(explained)


def test_vectors_beside_texts_speak_for_the_whole_text() -> None:
    random = np.random.default_rng(1)
    texts, labels = ["flour yeast", "sugar icing"] * 8, [["bread"], ["cake"]] * 8
    beside = np.tile([[1.0, 0.0], [0.0, 1.0]], (8, 1)) + random.normal(0, 0.1, (16, 2))
    model = labeltree.train([texts, beside], labels)
    label = model.explain([["flour"], beside[:1]], "bread").labels[0]
    assert "(the text as a whole)" in dict(label.terms)
    assert sum(share for _, share in label.terms) == pytest.approx(label.total)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_the_page(model: labeltree.Model, scheme: str, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser: install one of {', '.join(BROWSERS)}")
    path = tmp_path / "page.html"
    path.write_text(
        page_of([model.explain("flour and <b>yeast</b>"), model.explain(HOSTILE)]), encoding="utf-8"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []

    def run(*more: str) -> str:
        command: list[Any] = [browser, *options, *more, path.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = Page(run("--dump-dom"))
    assert "script" not in shown.tags
    assert shown.tags.count("article") == 2
    assert "flour and <b>yeast</b>" in shown.text
    picture = tmp_path / "page.png"
    run("--window-size=700,900", f"--screenshot={picture}")
    assert picture.stat().st_size > 10_000
