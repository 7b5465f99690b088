"""For everyone: without a mouse, on a phone, in the dark, with a screen reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TEXT = "Knead the dough for the bread, whisk the eggs, and keep the jar in the fridge for some days."
STATES = {
    "text": ("#text={text}&label=bread", "#why svg"),
    "why-not": ("#text={text}&label=cocoa", "#why svg"),
    "model": ("#tab=model", "#treemap svg"),
    "file": ("#tab=file", ".drop-zone"),
}


def link(address: str, state: str) -> tuple[str, str]:
    fragment, waits = STATES[state]
    return address + fragment.format(text=TEXT.replace(" ", "+")), waits


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(site: Any, pages: Callable[..., Any], state: str, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe-core: pip install 'labeltree[browser]'"
    )
    address, waits = link(site.address, state)
    page = pages(address, color_scheme=scheme)
    page.wait_for_selector(waits)
    found = axe.Axe().run(page).response["violations"]
    told = [(each["id"], each["impact"], [node["target"] for node in each["nodes"]][:5]) for each in found]
    assert told == []


@pytest.mark.parametrize("state", STATES)
def test_a_phone_shows_all_of_it(
    site: Any, pages: Callable[..., Any], picture: Callable[..., Path], state: str
) -> None:
    address, waits = link(site.address, state)
    page = pages(address, 360, 740, has_touch=True, is_mobile=True, device_scale_factor=1.5)
    page.wait_for_selector(waits)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    if state == "text":
        assert page.locator("#why").bounding_box()["y"] < 740, "what was asked for is on the screen"
        page.evaluate("() => scrollTo(0, 0)")
        picture(page, "phone")
        heights = page.locator(".decide").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().height)"
        )
        assert min(heights) >= 32, "a finger must hit it"


def test_the_dark(site: Any, pages: Callable[..., Any], picture: Callable[..., Path]) -> None:
    address, waits = link(site.address, "text")
    page = pages(address, color_scheme="dark")
    page.wait_for_selector(waits)
    background = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    assert max(map(int, dark.removeprefix("rgb(").removesuffix(")").split(","))) < 60
    picture(page, "dark")
    page.click("#theme")  # light, whatever the machine says
    assert page.evaluate(background) != dark
    page.reload()
    page.wait_for_selector(waits)
    assert page.evaluate(background) != dark
    page.click("#theme")
    assert page.evaluate(background) == dark


def focus(page: Any) -> str:
    return str(page.evaluate("() => document.activeElement.ariaLabel || document.activeElement.id"))


def tab_to(page: Any, wanted: str) -> None:
    for _ in range(40):
        if focus(page).startswith(wanted):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} cannot be reached by the Tab key; the last was {focus(page)}")


def wait_for_the_last(page: Any) -> None:
    """While one types there are suggestions for every part of the text: until they stay the same."""
    before: list[str] = []
    while before != (now := page.locator(".suggestion").all_inner_texts()):
        before = now
        page.wait_for_timeout(500)


def test_without_a_mouse(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.wait_for_selector("html[data-ready]")
    assert focus(page) == "text"
    page.keyboard.type(TEXT)
    page.wait_for_selector(".suggestion")
    wait_for_the_last(page)
    first = page.locator(".suggestion .label").first.inner_text()
    tab_to(page, f"{first}, ")
    page.keyboard.press("ArrowDown")
    second = page.locator(".suggestion .label").nth(1).inner_text()
    assert focus(page).startswith(second)
    page.keyboard.press("Enter")
    page.wait_for_selector("#why svg")
    assert focus(page).startswith(second), "what is chosen keeps the focus"
    page.keyboard.press("a")
    page.wait_for_selector(f"[aria-label='Accept {second}'][aria-pressed=true]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("r")
    page.wait_for_selector(f"[aria-label='Reject {first}'][aria-pressed=true]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#why", state="hidden")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=Kept by the server.")
    page.locator("#tab-text").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#treemap svg")
    page.keyboard.press("Tab")
    assert focus(page) != "text"


def test_what_changes_is_spoken(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.fill("#text", TEXT)
    page.wait_for_selector(".suggestion")
    assert "First: " in page.text_content("#spoken")
    assert page.get_attribute("#spoken", "role") == "status"
