"""`labeltree check`: each kind of finding in a small file, against plain Python on generated ones."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeltree import cli
from labeltree.checking.characters import SIGNS, odd_rows
from labeltree.checking.collecting import collect
from labeltree.checking.findings import ADVICE, check_file
from labeltree.data.formats import USUAL_READING
from labeltree.errors import DataError

LINES = """__label__bread __label__Baking why is my dough flat
__label__baking __label__bread   Why is my DOUGH flat?
__label__bread __label__Baking why is my dough flat
__label__soup
thick soup
__label__soup a\ufffdb
__label__soup c\x07d
__label__soup caf\u00c3\u00a9 and it\u00e2\u20ac\u2122s
"""


def checked(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert cli.main(["check", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def found(report: dict[str, Any]) -> dict[str, tuple[int, list[Any]]]:
    return {
        each["kind"]: (each["count"], each.get("lines") or each.get("labels") or each["messages"])
        for each in report["findings"]
    }


def test_each_finding_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.txt"
    path.write_text(LINES, encoding="utf-8")
    report = checked(capsys, path)["data"]
    assert (report["rows"], report["labels"]) == (8, 4)
    assert (report["labels_with_1_or_fewer"], report["labels_with_2_or_fewer"]) == (1, 2)
    assert found(report) == {
        "no-labels": (1, [5]),
        "empty": (1, [4]),
        "duplicates": (1, [3]),
        "contradictions": (1, [2]),
        "replacement": (1, [6]),
        "control": (1, [7]),
        "mojibake": (1, [8]),
        "rare": (4, ["bread", "Baking", "baking"]),
        "similar-names": (1, ["baking"]),
    }
    assert cli.main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}:"
    assert "- rows without a label: 1 (lines 5); label them" in "\n".join(lines)
    assert "- labels of at most 5 rows: 4 ('bread', 'Baking', 'baking', ...); they are" in "\n".join(lines)


def test_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test = tmp_path / "train.jsonl", tmp_path / "test.txt"
    train.write_text('{"text": "a b", "labels": ["x"]}\n{"text": "", "labels": ["x"]}\n')
    test.write_text("__label__y A, b!\n__label__x b a\n__label__z\n")
    report = checked(capsys, train, test)
    both = report["both"]
    assert (both["shared_rows"], both["unknown_labels"], both["unknown_share"]) == (1, 2, 2 / 3)
    assert found(both) == {"shared": (1, [1]), "unknown-labels": (2, ["y", "z"])}
    assert "rare" in found(report["data"])
    assert "rare" not in found(report["test"])


def test_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = tmp_path / "train.xmlc", tmp_path / "text.txt"
    path.write_text("4 9 3\n0 1:1 2:1\n0,1 1:1 2:1\n2 1:1 2:2\n0 1:1 2:1\n")
    report = checked(capsys, path, path)
    assert found(report["data"])["contradictions"] == (1, [2])
    assert found(report["data"])["duplicates"] == (1, [4])
    assert report["both"]["shared_rows"] == 4
    other.write_text("__label__x a b\n")
    assert cli.main(["check", str(path), str(other)]) == 1
    assert "one has texts, the other vectors" in capsys.readouterr().err


def test_bad_lines_are_counted_and_do_not_shift_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(b"__label__a x\n__label__ y\n\xff\n__label__b x\n__label__ z\nlonely\n")
    report = checked(capsys, path)["data"]
    n_bad, messages = found(report)["bad-lines"]
    assert n_bad == 3
    assert "line 3: invalid UTF-8" in messages[0]
    assert found(report)["contradictions"] == (1, [4])
    assert found(report)["no-labels"] == (1, [6])


def test_nothing_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.txt"
    path.write_text("")
    full = tmp_path / "full.txt"
    full.write_text("__label__x a b\n")
    for files in ([path], [full, path], [path, full], [path, "--json"]):
        assert cli.main(["check", *map(str, files)]) == 1
        said = capsys.readouterr()
        assert (said.out, "empty.txt: no rows to check; give a file" in said.err) == ("", True)
    path.write_text("{broken\n{as well\n")
    assert cli.main(["check", str(path), "--format", "jsonl"]) == 1
    assert (
        "empty.txt: no rows to check; 2 rows could not be read, the first: line 1: "
        in capsys.readouterr().err
    )
    with pytest.raises(DataError, match="cannot be opened"):
        collect(tmp_path / "none.txt", USUAL_READING, "__label__")


_texts = st.lists(st.sampled_from(["a", "b", "c", "ab"]), max_size=3).map(" ".join)
_labels = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3)


@given(st.lists(st.tuples(_texts, _labels), min_size=1, max_size=12))
def test_repeated_rows_are_those_of_plain_python(rows: list[tuple[str, list[str]]]) -> None:
    import tempfile

    lines = [" ".join([*(f"__label__{label}" for label in labels), text]) for text, labels in rows]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        report = check_file(collect(file.name, USUAL_READING, "__label__"))
    texts: set[str] = set()
    both: set[tuple[str, frozenset[str]]] = set()
    expected = {"duplicates": 0, "contradictions": 0}
    for text, labels in rows:
        key = (text, frozenset(labels))
        if text:
            expected["duplicates"] += key in both
            expected["contradictions"] += key not in both and text in texts
        texts.add(text)
        both.add(key)
    counts = {finding.kind: finding.n_found for finding in report.findings}
    assert {kind: counts.get(kind, 0) for kind in expected} == expected


@given(st.lists(st.text("aé\ufffd\x00\t\x9fÃâ€©½", max_size=6), max_size=5))
def test_signs_are_those_of_the_characters(texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(each) + 1 for each in encoded], dtype=np.int64) - 1
    starts = ends - [len(each) for each in encoded]
    signs = odd_rows(np.frombuffer(b"\n".join([*encoded, b""]), np.uint8), starts.astype(np.int64), ends)
    for row, text in enumerate(texts):
        pairs = list(pairwise(text))
        expected = {
            "replacement": "\ufffd" in text,
            "control": any(character in "\x00\x9f" for character in text),
            "mojibake": any(pair in {("Ã", "\x9f"), ("Ã", "©"), ("Ã", "½"), ("â", "€")} for pair in pairs),
        }
        assert dict(zip(SIGNS, signs[row].tolist(), strict=True)) == expected


def test_every_kind_has_advice_and_a_line_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert [kind for kind in ADVICE if f"`{kind}`" not in page] == []
