"""Labels and texts may come from anyone, and a service may be closed, slow or gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.browsing import drop
from support.page_models import HOSTILE


def is_hacked(page: Any) -> bool:
    return bool(page.evaluate("() => Boolean(window.hacked)"))


def test_labels_and_texts_are_never_markup(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(f"{site.address}#model=hostile")
    page.wait_for_selector("html[data-ready]")
    page.fill("#text", f"word w0 w1 {HOSTILE[0]} {HOSTILE[1]}")
    page.wait_for_selector(".suggestion")
    shown = page.locator(".suggestion .label").all_inner_texts()
    assert HOSTILE[0] in shown
    page.click(".suggestion .name >> nth=0")
    page.wait_for_selector("#why svg")
    page.click(".decide.accepted >> nth=0")
    page.fill("#search input", "<")
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    page.click("#tab-model")
    page.wait_for_selector(".tile")
    for _ in range(3):
        page.locator(".tile").first.click()
        page.wait_for_timeout(100)
    drop(page, f"{HOSTILE[0]}.txt", f"word w0 {HOSTILE[1]}\n{HOSTILE[0]}\n")
    page.wait_for_selector("#tagged-done")
    assert not is_hacked(page)
    assert page.locator("img").count() == 1  # the logo


@pytest.mark.parametrize(
    "fragment",
    [
        "#model=<img>&tab=x&k=-1&threshold=1e9&node=99999999&tree=7",
        "#%zz&text=%E0%A4%A",
        "#label=nothing&text=dough",
    ],
)
def test_links_may_hold_anything(site: Any, pages: Callable[..., Any], fragment: str) -> None:
    page = pages(site.address + fragment)
    page.wait_for_selector("html[data-ready]")
    page.fill("#text", "knead dough")
    page.wait_for_selector(".suggestion")
    assert not is_hacked(page)
    pages.expected.append("422")  # type: ignore[attr-defined]


def test_nothing_inline_and_nothing_from_elsewhere_runs(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_selector("html[data-ready]")
    page.fill("#text", "knead dough")
    page.wait_for_selector(".suggestion")
    assert all(url.startswith(site.address) for url in asked)
    refused = page.evaluate(
        """() => {
            const script = document.createElement("script");
            try { script.textContent = "window.hacked = 1"; } catch { return true; }
            document.body.append(script);
            return !window.hacked;
        }"""
    )
    assert refused
    assert not is_hacked(page)
    pages.expected.append("TrustedScript")  # type: ignore[attr-defined]  # the browser tells that it refused one


def test_what_is_typed_before_the_service_has_answered_is_not_lost(
    site: Any, pages: Callable[..., Any]
) -> None:
    page = pages("about:blank")
    page.route("**/v1/models", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.goto(f"{site.address}#model=tuned&k=3")
    page.fill("#text", "knead dough")
    page.wait_for_selector(".suggestion")
    assert page.input_value("#text") == "knead dough"
    assert page.input_value("#model") == "tuned"
    assert page.input_value("#k") == "3"


def test_a_token_is_asked_for(closed_site: str, pages: Callable[..., Any]) -> None:
    page = pages(closed_site)
    page.wait_for_selector("#token-dialog[open]")
    page.fill("#token", "not-the-right-token")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=That token is not known.")
    page.fill("#token", "a-token-for-the-tests")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready]")
    page.fill("#text", "knead dough")
    page.wait_for_selector(".suggestion")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#token-dialog[open]").count() == 0
    pages.expected.append("401")  # type: ignore[attr-defined]


def test_a_service_that_is_gone_comes_back(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.wait_for_selector("html[data-ready]")
    page.route("**/predict", lambda route: route.abort())
    page.fill("#text", "knead dough")
    page.wait_for_selector("#notice:visible")
    page.unroute("**/predict")
    page.wait_for_selector(".suggestion")
    page.wait_for_selector("#notice", state="hidden")
    pages.expected.append("/predict")  # type: ignore[attr-defined]


def test_nothing_is_decided_by_suggestions_for_an_earlier_text(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.wait_for_selector("html[data-ready]")
    page.fill("#text", "knead dough")
    page.click("[aria-label='Accept bread']")
    page.route("**/predict", lambda route: route.abort())
    page.fill("#text", "grind the beans for espresso")
    page.wait_for_selector(".decide[aria-disabled=true]")
    assert page.is_disabled("#keep")
    page.click("[aria-label='Reject bread']", force=True)
    page.keyboard.press("r")
    assert page.get_attribute("[aria-label='Reject bread']", "aria-pressed") == "false"
    page.unroute("**/predict")
    page.wait_for_selector("[aria-label='Accept coffee']:not([aria-disabled])")
    assert page.is_enabled("#keep")
    pages.expected.append("/predict")  # type: ignore[attr-defined]


def test_a_correction_that_is_not_taken_is_kept(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    page.wait_for_selector("html[data-ready]")
    page.route("**/corrections", lambda route: route.fulfill(status=422, json={"detail": "no room"}))
    page.fill("#text", "knead dough")
    page.click("[aria-label='Accept bread']")
    page.click("#keep")
    page.wait_for_selector("text=no room")
    page.unroute("**/corrections")
    page.click("text=Send to the server")
    page.wait_for_selector("text=Kept by the server.")
    assert page.locator("#kept").count() == 0
    assert '"knead dough"' in site.corrections.read_text()
    pages.expected.append("/corrections")  # type: ignore[attr-defined]
