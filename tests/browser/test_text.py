"""Typing, reasons, decisions, and links that bring it all back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.browsing import slide, suggested, type_text
from support.page_models import kitchen
from support.serving import wait_until

import labeltree

TEXT = (
    "How long does sourdough bread stay fresh? I knead the dough by hand, let it rise, and bake the loaf "
    "in a hot oven. Should I freeze it, or keep it in an airtight jar?"
)


def test_suggestions_come_as_one_types(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.wait_for_selector(".suggestions .nothing")
    page.locator("#text").press_sequentially("knead the dough", delay=5)
    page.wait_for_selector(".suggestion")
    wait_until(
        lambda: (
            suggested(page)
            == [label for label, p in kitchen().predict(["knead the dough"], 10, threshold=0.01)[0]]
        ),
        10,
    )
    slide(page, "k", 1)
    page.wait_for_function("() => document.querySelectorAll('.suggestion').length === 1")
    assert "right" in page.inner_text("#expectation")
    page.fill("#text", "")
    page.wait_for_selector(".suggestions .nothing")


def test_how_many_will_be_wrong(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    type_text(page, TEXT)
    found = [p for _, p in kitchen().predict([TEXT], 10, threshold=0.01)[0]]
    wrong = round(sum(1 - p for p in found))
    assert page.inner_text("#expectation strong") == f"About {wrong} of these {len(found)} will be wrong."


def test_a_late_answer_never_replaces_a_newer_one(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    held = []

    def hold_the_first(route: Any) -> None:
        if "sourdough" in (route.request.post_data or "") and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/predict", hold_the_first)
    page.fill("#text", "sourdough loaf")
    wait_until(lambda: bool(page.wait_for_timeout(20)) or bool(held), 10)
    page.fill("#text", "grind the beans for espresso")
    page.wait_for_selector(".suggestion")
    held[0].fulfill(
        json={
            "results": [{"labels": [{"label": "late", "probability": 1}], "exact": True, "known_words": True}]
        }
    )
    page.wait_for_timeout(150)
    assert "coffee" in suggested(page)
    assert "late" not in suggested(page)


def test_reasons(site: Any, pages: Callable[..., Any], picture: Callable[..., Path]) -> None:
    page = pages(site.address, height=1000)
    type_text(page, f"🍞 {TEXT}")
    page.click(".suggestion [data-act=why][data-label=bread]")
    page.wait_for_selector("#why svg")
    marks = page.locator("#backdrop mark.for").all_inner_texts()
    assert {"sourdough", "bread", "dough"} <= set(marks), "whole words, in spite of a character of two halves"
    explained = kitchen().explain(f"🍞 {TEXT}", "bread").labels[0]
    assert page.locator(".shares th").first.inner_text() == explained.terms[0].name
    nodes = page.locator("#why .path-picture .node")
    assert nodes.count() == len(explained.parts[0].path)
    assert nodes.last.locator(".name").text_content() == "bread"
    assert page.locator(".near").count() > 0
    weights = [f"{part.weight:.0%}".replace("%", " % of the evidence") for part in explained.parts]
    told = page.locator("#why .evidence").all_inner_texts()
    assert all(weight in said for weight, said in zip(weights, told, strict=True))
    assert "Calibration" in page.inner_text("#why-joined")
    type_text(page, TEXT)
    page.wait_for_selector("#backdrop mark")
    picture(page, "reasons")
    page.keyboard.press("Escape")
    page.wait_for_selector("#why", state="hidden")
    assert page.locator("#backdrop mark").count() == 0


def test_reasons_that_take_long_are_announced(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    type_text(page, TEXT)
    held = list[Any]()
    page.route("**/explain", lambda route: held.append(route))
    page.click(".suggestion [data-act=why][data-label=bread]")
    page.wait_for_selector("#why >> text=Looking for reasons")
    held[0].continue_()
    page.wait_for_selector("#why svg")
    assert page.locator("#why progress").count() == 0


def test_what_was_found_goes_with_the_model(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.wait_for_selector("html[data-ready]")
    page.fill("#search input", "te")
    page.wait_for_selector("[role=option]")
    assert "found" in page.locator("#search [role=status]").text_content()
    page.select_option("#model", "tuned")
    assert page.locator("#search [role=status]").text_content() == ""
    assert page.input_value("#search input") == ""


def test_why_not(site: Any, pages: Callable[..., Any], picture: Callable[..., Path]) -> None:
    page = pages(site.address)
    type_text(page, TEXT)
    page.fill("#search input", "te")
    page.wait_for_selector("[role=option]")
    page.keyboard.press("ArrowDown")
    assert page.locator("[role=option][aria-selected=true]").count() == 1
    found = page.locator("[role=option][aria-selected=true] .label").inner_text()
    assert found == kitchen().find_labels("te")[0][0]
    page.keyboard.press("Enter")
    page.wait_for_selector("#why .lost")
    assert page.inner_text("#why-title").startswith(f"Why not {found}")
    picture(page.locator("#why"), "why-not")
    page.click("#why button:has-text('Add this label')")
    assert found in page.inner_text("#decisions .chips")


def test_several_trees_and_a_rule(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(f"{site.address}#model=tuned")
    type_text(page, TEXT)
    assert page.is_hidden("#k-control")
    page.select_option("#rule", "none")
    page.wait_for_selector("#k-control", state="visible")
    page.click(".suggestion .name >> nth=0")
    page.click("#why button:has-text('Tree 3')")
    page.wait_for_selector("#why button:has-text('Tree 3')[aria-pressed=true]")


def test_vectors(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(f"{site.address}#model=vectors")
    page.wait_for_selector("html[data-ready]")
    assert "vectors" in page.get_attribute("#text", "placeholder")
    type_text(page, "2:1 3:0.1")
    assert suggested(page)[0] == "label2"
    page.click(".suggestion .name >> nth=0")
    page.wait_for_selector(".shares")
    page.fill("#text", "2:1 nonsense")
    page.wait_for_selector("text=is no COLUMN:VALUE")


def test_decisions_are_kept_by_the_server(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    type_text(page, TEXT)
    page.click("[aria-label='Accept bread']")
    page.click("[aria-label='Reject equipment']")
    page.fill("#search input", "storage")
    page.wait_for_selector("[role=option]")
    page.click("[role=option] >> nth=0")
    page.click("[aria-label='Accept storage']")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=Kept by the server.")
    assert page.input_value("#text") == ""
    record = json.loads(site.corrections.read_text().splitlines()[-1])
    assert record["text"] == TEXT
    assert record["labels"] == ["bread", "storage"]
    assert record["rejected"] == ["equipment"]
    assert record["model"].startswith("kitchen@")


def test_decisions_are_kept_in_the_browser_and_can_be_trained_on(
    large_site: str, pages: Callable[..., Any], tmp_path: Path
) -> None:
    page = pages(large_site)
    for words in ("one", "two"):
        page.fill("#text", f"{words} paba")
        page.fill("#search input", "a")
        page.wait_for_selector("[role=option]")
        page.keyboard.press("Enter")
        page.click("#why button:has-text('Add this label')")
        page.click("#keep")
        page.wait_for_selector("text=Kept in this browser.")
    page.reload()
    page.wait_for_selector("#kept")
    assert page.inner_text("#kept").startswith("2 texts")
    with page.expect_download() as downloading:
        page.click("#download-kept")
    downloading.value.save_as(tmp_path / "kept.jsonl")
    records = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert [record["text"] for record in records] == ["one paba", "two paba"]
    assert labeltree.train(tmp_path / "kept.jsonl", threads=1).n_examples == 2
    page.click("text=Forget")
    page.click("text=Really forget?")
    page.wait_for_selector("#kept", state="detached")


def test_a_link_reproduces_what_is_seen(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    type_text(page, TEXT)
    slide(page, "threshold", 20)
    page.click(".suggestion .name >> nth=1")
    page.wait_for_selector("#why svg")
    assert "sourdough" not in page.url, "an address has the text only where a link is asked for"
    page.click("#link")
    page.wait_for_selector("text=Link copied")
    other = pages(page.url)
    other.wait_for_selector("#why svg")
    assert other.input_value("#text") == TEXT
    assert suggested(other) == suggested(page)
    assert other.inner_text("#why-title") == page.inner_text("#why-title")
    assert re.search(r"threshold=20", other.url)
