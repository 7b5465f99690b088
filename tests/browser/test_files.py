"""Files that are dropped on the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.browsing import drop
from support.page_models import kitchen, kitchen_lines, kitchen_texts


def test_json_lines_with_labels_are_tagged_and_measured(
    site: Any, pages: Callable[..., Any], picture: Callable[..., Path], tmp_path: Path
) -> None:
    page = pages(site.address)
    drop(page, "notes.jsonl", kitchen_lines(300))
    page.wait_for_selector("#tagged-done")
    assert page.locator("table.tagged tbody tr").count() == 50
    precision = kitchen().test(*_parts(kitchen_lines(300)), threads=1, k=1)["p@1"]
    shown = page.locator("#file-scorecard .fact dd").first.inner_text()
    assert shown == f"{round(100 * precision)} %"
    assert page.locator("#file-scorecard svg.curve").count() == 1
    picture(page, "file")
    with page.expect_download() as downloading:
        page.click("#download-jsonl")
    downloading.value.save_as(tmp_path / "tagged.jsonl")
    records = [json.loads(line) for line in (tmp_path / "tagged.jsonl").read_text().splitlines()]
    texts = kitchen_texts(300, 2)[0]
    assert [record["text"] for record in records] == texts
    assert [record["labels"] for record in records] == [
        [label for label, _ in row] for row in kitchen().predict(texts, 10, threshold=0.01, threads=1)
    ]
    page.click("text=Next")
    page.wait_for_selector("text=51 to 100 of 300")
    page.click("table.tagged tbody tr >> nth=0 >> button")
    page.wait_for_selector(".suggestion")
    assert page.input_value("#text") == texts[50]


def _parts(lines: str) -> tuple[list[str], list[list[str]]]:
    records = [json.loads(line) for line in lines.splitlines()]
    return [record["text"] for record in records], [record["labels"] for record in records]


def test_a_table_is_tagged_and_its_cells_are_no_formulas(
    site: Any, pages: Callable[..., Any], tmp_path: Path
) -> None:
    page = pages(site.address)
    drop(page, "notes.csv", 'id;text\r\n1;"knead; the ""dough"""\r\n2;=1+1 espresso\r\n\r\n')
    page.wait_for_selector("#tagged-done")
    with page.expect_download() as downloading:
        page.click("#download-csv")
    downloading.value.save_as(tmp_path / "tagged.csv")
    with open(tmp_path / "tagged.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == ['knead; the "dough"', "'=1+1 espresso"]
    assert "bread" in rows[0]["labels"].split(";")


@pytest.mark.parametrize(
    "content",
    [
        "text,labels\nknead dough,bread\ngrind beans,coffee;tea",
        "\ufefftext,labels\r\nknead dough,bread\r\n\r\ngrind beans,coffee;tea\r\n",
        '"labels"\t"text"\nbread\tknead dough\n"coffee;tea"\t"grind beans"\n',
        '\n \nText;a,b;Labels\nknead dough;1,5;bread\ngrind beans;;"coffee;tea"\n',
        "text,labels\rknead dough,bread\rgrind beans,coffee;tea\r",
    ],
    ids=["plain", "mark", "tabs", "semicolons", "returns"],
)
def test_tables_are_read_as_on_the_command_line(
    site: Any, pages: Callable[..., Any], content: str, tmp_path: Path
) -> None:
    page = pages(site.address)
    with page.expect_request("**/predict") as asking:
        drop(page, "notes.csv", content)
    assert asking.value.post_data_json["texts"] == ["knead dough", "grind beans"]
    page.wait_for_selector("#file-scorecard")
    assert page.locator("table.tagged tbody td:nth-child(3)").all_inner_texts() == ["bread", "coffee, tea"]


def test_a_table_of_one_column_needs_no_name_or_quotes(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(site.address)
    with page.expect_request("**/predict") as asking:
        drop(page, "notes.csv", 'note\nknead, then bake\n"grind beans"\n')
    assert asking.value.post_data_json["texts"] == ["knead, then bake", "grind beans"]
    page.wait_for_selector("text=there is no column “text”")


def test_lines_are_chosen_by_the_button(site: Any, pages: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("knead dough\n\ngrind beans\n")
    page = pages(f"{site.address}#tab=file")
    page.set_input_files("#file", tmp_path / "notes.txt")
    page.wait_for_selector("#tagged-done")
    assert page.locator("table.tagged tbody tr").count() == 2
    assert page.locator("#file-scorecard").count() == 0


def test_labels_of_fasttext_lines_are_compared_and_no_part_of_the_text(
    site: Any, pages: Callable[..., Any]
) -> None:
    page = pages(site.address)
    lines = "\ufeff__label__bread __label__baking knead dough\r\ngrind beans __label__coffee\r\nwhisk eggs\n"
    with page.expect_request("**/predict") as asking:
        drop(page, "notes.txt", lines)
    assert asking.value.post_data_json["texts"] == ["knead dough", "grind beans", "whisk eggs"]
    page.wait_for_selector("#file-scorecard")
    shown = page.locator("table.tagged tbody td:nth-child(3)").all_inner_texts()
    assert shown == ["bread, baking", "coffee", ""]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("bad.jsonl", '{"text": "a"}\n{"words": 1}\n', "bad.jsonl, line 2: this is no JSON object"),
        ("empty.txt", " \n\n", "empty.txt has no text in it."),
        ("latin.txt", b"dough\ncaf\xe9 au lait\n", "latin.txt, line 2: this is no UTF-8."),
        (
            "bytes.txt",
            b"dough\x00\x01\xff\n",
            "bytes.txt cannot be tagged: it has bytes that are in no text.",
        ),
        ("paper.pdf", b"%PDF-1.7\n1 0 obj\n", "paper.pdf cannot be tagged: it is a PDF."),
        ("wide.csv", "text\ndough\n".encode("utf-16"), "wide.csv cannot be tagged: it is UTF-16."),
        ("open.csv", 'id,text\n1,dough\n2,"beans\n3,tea\n', "open.csv, line 3: a quote is opened in the row"),
        (
            "more.csv",
            "text,labels\ndough,bread\nbeans, ground,coffee\n",
            "more.csv, line 3: expected 2 fields",
        ),
        ("fewer.csv", "text,labels\ndough,bread\n\nbeans\n", "fewer.csv, line 4: expected 2 fields"),
        ("lines.csv", 'text;id\n"a\nb";1\n"c\r\nd";2;3\n', "lines.csv, line 4: expected 2 fields"),
        ("mac.csv", "text,id\rdough,1\rbeans\r", "mac.csv, line 3: expected 2 fields"),
        (
            "after.csv",
            'text,id\n"dough" and more,1\n',
            "after.csv, line 2: in the row that begins here something",
        ),
        ("nothing.csv", "", "nothing.csv has no text in it."),
        ("blank.csv", "\r\n \r\n", "blank.csv has no text in it."),
        ("header.csv", "text,labels", "header.csv has no text in it."),
        ("nameless.txt", "__label__bread dough\n__label__ tea\n", "nameless.txt, line 2: a label is empty."),
    ],
)
def test_what_is_wrong_with_a_file_is_told(
    site: Any, pages: Callable[..., Any], name: str, content: str | bytes, told: str
) -> None:
    page = pages(site.address)
    drop(page, name, content)
    page.wait_for_selector(f"#tagged >> text={told}")


def test_a_model_of_vectors_takes_no_files(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(f"{site.address}#model=vectors&tab=file")
    page.wait_for_selector("text=files of texts cannot be tagged")
    drop(page, "notes.txt", "a\n")
    assert page.locator("#tagged").inner_text() == ""


def test_a_rule_is_judged_by_what_it_gives(site: Any, pages: Callable[..., Any]) -> None:
    page = pages(f"{site.address}#model=tuned")
    drop(page, "notes.jsonl", kitchen_lines(60))
    page.wait_for_selector("#file-scorecard")
    said = page.inner_text("#file-scorecard")
    assert "Judged are the labels that the rule gives" in said
    assert "of the labels that the rule gives right" in said
    assert "of the first 3" not in said
