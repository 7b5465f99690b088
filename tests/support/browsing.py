"""What people do on the page, by the hands of playwright."""

from __future__ import annotations

from typing import Any

_DROP = """([name, content]) => {
    const given = new DataTransfer();
    const bytes = typeof content === "string" ? content : new Uint8Array(content);
    given.items.add(new File([bytes], name));
    for (const type of ["dragover", "drop"]) {
        window.dispatchEvent(new DragEvent(type, { dataTransfer: given, bubbles: true, cancelable: true }));
    }
}"""
_SLIDE = "([each, value]) => { each.value = value; each.dispatchEvent(new Event('input')) }"


def type_text(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.wait_for_selector(".suggestion")


def suggested(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".suggestion .label").all_inner_texts()]


def slide(page: Any, name: str, value: int) -> None:
    page.evaluate(_SLIDE, [page.query_selector(f"#{name}"), value])


def drop(page: Any, name: str, content: str | bytes) -> None:
    page.wait_for_selector("html[data-ready]")
    page.evaluate(_DROP, [name, list(content) if isinstance(content, bytes) else content])
