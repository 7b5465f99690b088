"""Is the page of `labeltree serve` as quick as we promise, with a model of 10^5 labels?

    python -m benchmarks.page [--labels 100000] [--model FILE --texts FILE] [--rounds 20]

A model is trained on made-up text (about ten seconds), or given with texts, one per line. The service is a
process of its own, the browser is Chromium, without anything in its caches, both on this machine.

* usable: from the request of the page until its text field has the focus and the models are known, of new
  browser contexts; the time of the first suggestions of a link is told beside it.
* label search: from the request for labels to its answer, as the browser sees it, and until it is drawn.
* suggestions: from the event of the last key to the moment when the list is drawn. This holds everything: the
  page's wait of 40 ms for another key, the request, the answer, and the drawing.

What counts is the median; the slowest is told too, since other work on the machine shows there.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import labeltree
from benchmarks.commands import verdict
from benchmarks.serving.process import serving

USABLE_MS, SEARCH_MS, SUGGESTIONS_MS = 1000, 20, 100
_QUERIES = ("a", "ou", "bra", "guma", "paba gu", "zzz")
# Until the frame after the change has been drawn.
_DRAWN = """(selector) => new Promise((done) => {
    const list = document.querySelector(selector);
    new MutationObserver((_, watcher) => {
        watcher.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - window.pressed)));
    }).observe(list, { childList: true });
})"""
_WATCH_KEYS = """() => addEventListener("keydown", () => (window.pressed = performance.now()), true)"""
# Without those that a later key has ended.
_SEARCHES = """() => performance.getEntriesByType("resource")
    .filter((each) => each.name.includes("/labels?q=") && each.requestStart > 0)
    .map((each) => each.responseEnd - each.requestStart)"""


def report(name: str, values: Sequence[float], bar: float | None = None) -> None:
    middle = statistics.median(values)
    told = "" if bar is None else f"  bar {bar:,.0f} ms: {verdict(middle < bar)}"
    print(f"{name:44}{middle:8.1f} ms  slowest {max(values):8.1f} ms{told}", flush=True)


def measure_start(browser: Any, address: str, rounds: int) -> None:
    usable, first = list[float](), list[float]()
    for number in range(rounds):
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}#text=word{number}&threshold=0")
        page.wait_for_selector("html[data-ready]")
        usable.append(float(page.get_attribute("html", "data-ready")))
        page.wait_for_selector(".suggestion")
        first.append(page.evaluate("() => performance.now()"))
        context.close()
    report("usable, nothing cached", usable, USABLE_MS)
    report("first suggestions of a link (upper bound)", first)


def measure_search(browser: Any, address: str, rounds: int) -> None:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.evaluate(_WATCH_KEYS)
    drawn = list[float]()
    for query in _QUERIES * max(1, rounds // len(_QUERIES)):
        page.fill("#search input", "")
        page.locator("#search input").press_sequentially(query[:-1])
        page.wait_for_timeout(60)
        waiting = page.evaluate_handle(f"() => ({{ told: ({_DRAWN})('#search .found') }})")
        page.keyboard.press(query[-1])
        drawn.append(page.evaluate("(handle) => handle.told", waiting))
    report("label search, request to answer", page.evaluate(_SEARCHES), SEARCH_MS)
    report("label search, key to drawn list", drawn)
    page.close()


def measure_typing(browser: Any, address: str, texts: Sequence[str], rounds: int) -> None:
    page = browser.new_page()
    page.goto(f"{address}#threshold=0")
    page.wait_for_selector("html[data-ready]")
    page.evaluate(_WATCH_KEYS)
    drawn, requests = list[float](), list[float]()
    for text in texts[:rounds]:
        page.fill("#text", text)
        page.wait_for_timeout(200)
        page.focus("#text")
        waiting = page.evaluate_handle(f"() => ({{ told: ({_DRAWN})('#suggestions') }})")
        page.keyboard.press("s")
        drawn.append(page.evaluate("(handle) => handle.told", waiting))
        requests.append(float(page.inner_text("#took").split()[0]))
    report("suggestions, last key to drawn list", drawn, SUGGESTIONS_MS)
    report("of which request and answer", requests)
    page.close()


def made_up(n_labels: int, folder: Path) -> tuple[Path, list[str]]:
    """A model of words that nobody knows."""
    chance = random.Random(1)
    syllables = [onset + vowel for onset in "bcdfghklmnprstv" for vowel in ("a", "e", "i", "o", "u", "ou")]
    words = sorted({"".join(chance.choices(syllables, k=chance.choice((2, 3)))) for _ in range(8000)})
    chance.shuffle(words)
    names = dict.fromkeys(
        f"{words[i % 1000]} {words[1000 + i // 1000 % 2000]} {words[3000 + i * 31 % 3000]}"
        for i in range(n_labels)
    )
    texts = [" ".join([*name.split(), *chance.choices(words, k=4)]) for name in names]
    path = folder / "made-up.labeltree"
    labeltree.train(texts, [[name] for name in names], preset="fast", threads=1).save(path)
    return path, chance.sample(texts, min(1000, len(texts)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--chromium", default=shutil.which("chromium") or "google-chrome")
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        if chosen.model is None:
            model, texts = made_up(chosen.labels, Path(folder))
        else:
            model, texts = chosen.model, chosen.texts.read_text().splitlines()
        print(f"{labeltree.load(model)!r}")
        with serving([f"model={model}"], "--quiet") as service, sync_playwright() as playing:
            browser = playing.chromium.launch(executable_path=chosen.chromium, args=["--no-sandbox"])
            address = f"http://127.0.0.1:{service.port}/"
            measure_start(browser, address, chosen.rounds)
            measure_search(browser, address, chosen.rounds)
            measure_typing(browser, address, texts, chosen.rounds)
            browser.close()


if __name__ == "__main__":
    main()
