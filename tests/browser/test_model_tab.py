"""The second tab: sizes, measures, and a tree to walk through, however large it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.page_models import kitchen, kitchen_texts, large_model

import labeltree


def test_what_is_known_of_a_model(site: Any, pages: Callable[..., Any], picture: Callable[..., Path]) -> None:
    page = pages(f"{site.address}#tab=model")
    page.wait_for_selector("#treemap svg")
    facts = page.locator(".facts").first.inner_text()
    assert f"{kitchen().n_labels}" in facts
    assert "made up" in page.inner_text(".card-facts")
    assert page.locator("#scorecard svg.curve .dot").count() > 5
    for title in ("Found best", "Found worst"):
        assert page.locator(f"#scorecard :text('{title}')").count() == 1
    picture(page, "model", full_page=True)
    page.select_option("#model", "tuned")
    page.wait_for_selector("text=How good this model is was not told")
    page.click("#panel-model button:has-text('Tree 2')")
    page.wait_for_function("() => location.hash.includes('tree=1')")


def test_a_walk_through_the_tree(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(f"{site.address}#tab=model")
    page.wait_for_selector(".tile")
    tree = kitchen().label_trees[0]
    assert page.locator(".tile").count() == tree.n_children[0]
    page.locator(".tile").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".crumbs li:nth-child(2)")
    node = int(page.url.partition("node=")[2].partition("&")[0])
    assert page.locator(".tile").count() == tree.n_children[node]
    page.keyboard.press("Backspace")
    page.wait_for_selector(".crumbs li:nth-child(2)", state="detached")
    page.fill("#panel-model [role=combobox]", "bread")
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#label-card >> text=training rows have it")
    assert kitchen().label("bread").words[0].name in page.inner_text("#label-card")
    page.wait_for_selector(".tile.leaf")


def test_a_hundred_thousand_labels(
    large_site: str, pages: Callable[..., Any], picture: Callable[..., Path]
) -> None:
    page = pages(f"{large_site}#tab=model")
    page.wait_for_selector(".tile")
    picture(page.locator("#treemap"), "tree")
    n_nodes = page.evaluate("() => document.querySelectorAll('*').length")
    assert n_nodes < 3_000, "only what is looked at is drawn"
    for depth in range(2, 9):
        page.locator(".tile").first.click()
        if page.locator("#label-card *").count() or not page.locator(".tile:not(.leaf)").count():
            break
        page.wait_for_selector(f".crumbs li:nth-child({depth})")
    wanted = large_model().label_names[54_321]
    page.fill("#panel-model [role=combobox]", wanted)
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#label-card >> text={wanted}")
    assert wanted in page.locator(".tile.leaf").evaluate_all("all => all.map(each => each.ariaLabel).join()")


def test_every_kind_of_model(browser: Any, pages: Callable[..., Any], serving: Callable[..., str]) -> None:
    """Deep trees, softmaxes, word vectors, no tree at all, and one without levels."""
    texts, labels = kitchen_texts(300, 5)
    ways: dict[str, dict[str, Any]] = {
        "deep": dict(tree="huffman", arity=2, link="hsm"),
        "dense": dict(nodes="dense", dim=8, epochs=2, neighbours=0),
        "both": dict(nodes="both", dim=8, epochs=2),
        "forest": dict(trees=0, neighbours=0, forest=3),
        "neighbours": dict(trees=0, neighbours=20),
        "flat": dict(tree="flat"),
    }
    models = {name: labeltree.train(texts, labels, threads=1, **way) for name, way in ways.items()}
    address = serving(models)
    page = pages(address)
    for name, model in models.items():
        page.goto(f"{address}#model={name}&threshold=0&text=knead+the+dough&label=bread")
        page.reload()
        page.wait_for_selector("#why .title:has-text('bread')")
        n_paths = len(model.explain("knead the dough", "bread").labels[0].parts[0].path)
        assert page.locator("#why .path-picture .node").count() == n_paths
        page.fill("#search input", "tea")
        page.wait_for_selector("[role=option]")
        page.keyboard.press("Enter")
        page.wait_for_selector("#why .title:has-text('tea')")
        page.click("#tab-model")
        page.wait_for_selector(".tile" if model.label_trees else "text=This model has no label tree")
    assert page.locator(".tile").count() == models["flat"].n_labels
