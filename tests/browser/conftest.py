"""A real browser and a real service. Where there is no Chromium or no playwright, these tests are skipped."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.page_models import hostile_model, kitchen, kitchen_lines, large_model, tuned_kitchen
from support.serving import vector_model, wait_until

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class Site(NamedTuple):
    """A service that runs."""

    address: str
    corrections: Path


def find_chromium() -> str:
    found = os.environ.get("LABELTREE_CHROMIUM") or next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if found is None:
        pytest.skip("no chromium: apt-get install chromium, or LABELTREE_CHROMIUM=/path/to/it")
    return found


def serve(models: dict[str, Any], **settings: Any) -> tuple[str, Callable[[], None]]:
    """The address of a service in a thread, and what ends it."""
    uvicorn = pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")
    from labeltree.serve.app import create_app

    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(models, **settings)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    wait_until(lambda: app.state.service.is_ready)

    def stop() -> None:
        server.should_exit = True
        thread.join(30)
        listening.close()

    return f"http://127.0.0.1:{listening.getsockname()[1]}/", stop


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install 'labeltree[browser]'"
    )
    path = find_chromium()
    with playwright.sync_playwright() as playing:
        started = playing.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="package")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A kitchen with a scorecard, a tuned ensemble, vectors, and labels that want to be markup."""
    from labeltree.cli.reports import write_scorecard

    folder = tmp_path_factory.mktemp("site")
    (folder / "test.jsonl").write_text(kitchen_lines(600))
    write_scorecard(folder / "score.json", kitchen(), kitchen().test(folder / "test.jsonl", threads=1))
    kitchen().save(folder / "kitchen.labeltree")
    models = {
        "kitchen": folder / "kitchen.labeltree",
        "tuned": tuned_kitchen(),
        "vectors": vector_model(),
        "hostile": hostile_model(),
    }
    address, stop = serve(
        models, corrections=folder / "kept.jsonl", scorecards={"kitchen": folder / "score.json"}
    )
    yield Site(address, folder / "kept.jsonl")
    stop()


@pytest.fixture(scope="package")
def large_site(browser: Any) -> Iterator[str]:
    """10^5 labels, and nowhere to keep corrections."""
    address, stop = serve({"large": large_model(), "vectors": vector_model()})
    yield address
    stop()


@pytest.fixture(scope="package")
def closed_site(browser: Any) -> Iterator[str]:
    """It asks for a token."""
    address, stop = serve({"kitchen": kitchen()}, tokens=["a-token-for-the-tests"])
    yield address
    stop()


@pytest.fixture
def serving() -> Iterator[Callable[..., str]]:
    """Services of a test's own."""
    stops = []

    def start(models: dict[str, Any], **settings: Any) -> str:
        address, stop = serve(models, **settings)
        stops.append(stop)
        return address

    yield start
    for stop in stops:
        stop()


@pytest.fixture
def pages(browser: Any) -> Iterator[Callable[..., Any]]:
    """New pages, on which nothing may go wrong unnoticed."""
    contexts, wrong, expected = [], list[str](), list[str]()

    def note(said: Any) -> None:
        if said.type == "error":
            wrong.append(f"{said.text} {said.location['url']}")

    def new_page(address: str, width: int = 1200, height: int = 860, **settings: Any) -> Any:
        given = {"viewport": {"width": width, "height": height}, "reduced_motion": "reduce"} | settings
        context = browser.new_context(**given)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", note)
        page.goto(address)
        return page

    new_page.expected = expected  # type: ignore[attr-defined]  # parts of what tests want to go wrong
    yield new_page
    for context in contexts:
        context.close()
    assert [said for said in wrong if not any(part in said for part in expected)] == []


def _shrink(path: Path) -> None:
    """To as few colours as the page has, where Pillow is there: the pictures are those of the docs."""
    try:
        from PIL import Image
    except ImportError:
        return
    fewer = Image.open(path).convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE)
    fewer.save(path, optimize=True)


@pytest.fixture
def picture(tmp_path: Path) -> Callable[..., Path]:
    """Screenshots: into a folder of the test, or into the one that LABELTREE_SCREENSHOTS names."""
    folder = Path(os.environ.get("LABELTREE_SCREENSHOTS", tmp_path))

    def take(shown: Any, name: str, **how: Any) -> Path:
        """Of a page, or of an element."""
        path = folder / f"{name}.png"
        getattr(shown, "page", shown).wait_for_timeout(300)  # for what moves
        shown.screenshot(path=path, animations="disabled", **how)
        _shrink(path)
        return path

    return take
