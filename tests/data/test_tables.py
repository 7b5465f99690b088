"""CSV and Parquet files: the named columns become rows, and what is wrong is told with its place."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from support.reading import read_blocks, rows_of

import labeltree
from labeltree import cli
from labeltree.data.bad_lines import BadLines
from labeltree.data.columns import Columns
from labeltree.data.files import find_files
from labeltree.data.formats import detect_format
from labeltree.data.opening import Source
from labeltree.errors import DataError, MissingPackageError, ParameterError

Row = tuple[str, list[str]]


def read(
    path: Path, fmt: str = "auto", *, skip: bool | None = None, wants_labels: bool = True, **columns: str
) -> list[Row]:
    source = Source(path, columns=Columns(**columns), wants_labels=wants_labels)
    rows = rows_of(read_blocks(source, fmt, bad_lines=BadLines(skip=skip)))
    return [(row.text.decode(), [label.decode() for label in row.labels]) for row in rows]


def written(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_the_header_tells_what_separates_fields(tmp_path: Path, delimiter: str) -> None:
    lines = [["id", "labels", "text"], ["1", "a|b c", "one two"], ["2", "", "three"]]
    path = written(tmp_path, "\n".join(delimiter.join(line) for line in lines), "data.tsv")
    assert read(path, separator="|") == [("one two", ["a", "b c"]), ("three", [])]


def test_fields_may_be_quoted_and_have_lines(tmp_path: Path) -> None:
    path = written(tmp_path, '\ufefftext,labels\r\n"one, ""two""\nthree",a; b;;a\r\n\r\nfour,c\r\n')
    assert read(path) == [('one, "two"\nthree', ["a", "b", "a"]), ("four", ["c"])]


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = written(tmp_path, "body,tags\none,a\n")
    assert read(path, text="body", labels="tags") == [("one", ["a"])]
    assert read(path, text="body", wants_labels=False) == [("one", [])]  # as in files to predict
    with pytest.raises(
        DataError, match=r"no column 'text'.* it has 'body', 'tags'; name one with text_column"
    ):
        read(path)
    with pytest.raises(DataError, match=r"no column 'labels', .*; name one with labels_column"):
        read(path, text="body")
    with pytest.raises(ParameterError, match="format jsonl, which has no columns to choose"):
        read(written(tmp_path, '{"text": "one"}', "rows.jsonl"), text="body")
    assert read(written(tmp_path, "body\ttags\none\ta\n", "o.tsv"), text="body", labels="tags") == [
        ("one", ["a"])
    ]


def test_ragged_rows_are_told_with_their_line(tmp_path: Path) -> None:
    path = written(tmp_path, "text,labels\none,a\ntwo\nthree,b,c\nfour,d\n")
    with pytest.raises(DataError, match=r"line 3: expected 2 fields as in the header, but found 1"):
        read(path)
    assert read(path, skip=True) == [("one", ["a"]), ("four", ["d"])]


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, b"text,labels\none,a\nt\xffo,b\n")
    with pytest.raises(DataError, match="line 3: invalid UTF-8"):
        read(path)


def test_an_open_quote_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, 'text,labels\nzero,a\n"one,a\ntwo,b\n')
    with pytest.raises(DataError, match=r"line 3: not CSV"):
        read(path)
    assert read(path, skip=True) == [("zero", ["a"])]
    path = written(tmp_path, 'text,labels\n"one" x,a\ntwo\n')
    with pytest.raises(DataError, match=r"line 2: not CSV"):
        read(path)
    bad_lines = BadLines(skip=True)
    assert not rows_of(read_blocks(path, "csv", bad_lines=bad_lines))
    assert [message.split(": ")[0][-6:] for message in bad_lines.messages] == ["line 2", "line 3"]


def test_empty_files_and_blank_lines_are_no_rows(tmp_path: Path) -> None:
    assert read(written(tmp_path, "")) == []
    assert read(written(tmp_path, "\n\ntext,labels\none,a\n")) == [("one", ["a"])]
    with pytest.raises(DataError, match="more than one column 'labels'"):
        read(written(tmp_path, "text,labels,labels\n"))


def test_the_limit_of_others_stays(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "word " * 40_000
    assert read(written(tmp_path, f'text,labels\n"{long}",a\n')) == [(long, ["a"])]
    assert csv.field_size_limit() == before


def test_formats_are_found_by_content_and_name() -> None:
    assert detect_format(b"labels\ttext\nx\ty", "rows.tsv").name == "csv"
    assert detect_format(b"a,b\n", "rows.csv.gz").name == "csv"
    assert detect_format(b"one two\t<http://a>\n", "rows.tsv").name == "annif"
    assert detect_format(b"PAR1\x15\x04", "rows").name == "parquet"
    assert detect_format(b"text and labels, too\n", "rows.txt").name == "fasttext"


def table(folder: Path, name: str = "data.parquet", **columns: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = folder / name
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_has_lists_or_strings_of_labels(tmp_path: Path) -> None:
    expected = [("one two", ["a", "b"]), ("three", [])]
    texts = ["one two", "three"]
    assert read(table(tmp_path, text=texts, labels=[["a", "b"], []])) == expected
    assert read(table(tmp_path, text=texts, labels=["a;b", None])) == expected
    assert read(table(tmp_path, text=texts, labels=[[1, 2], [3]])) == [
        ("one two", ["1", "2"]),
        ("three", ["3"]),
    ]
    assert read(table(tmp_path, labels=[["a", "b"], []], text=texts)) == expected
    assert read(table(tmp_path, text=texts, labels=[[], []])) == [("one two", []), ("three", [])]
    assert read(table(tmp_path, text=texts, labels=[None, None])) == [("one two", []), ("three", [])]
    as_codes = pytest.importorskip("pyarrow").array(texts).dictionary_encode()
    assert read(table(tmp_path, text=as_codes), wants_labels=False) == [("one two", []), ("three", [])]
    assert read(table(tmp_path, text=texts, labels=[0.5, None]), wants_labels=False) == [
        ("one two", []),
        ("three", []),
    ]


def test_parquet_that_does_not_suit_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'text'.*it has 'a'; name one"):
        read(table(tmp_path, a=["x"]))
    with pytest.raises(DataError, match=r'the column "text" is of type list<.*texts are strings'):
        read(table(tmp_path, text=[["x"]]), wants_labels=False)
    with pytest.raises(DataError, match=r'the column "labels" is of type struct<'):
        read(table(tmp_path, text=["x"], labels=[{"a": 1}]))
    with pytest.raises(
        DataError, match=r'data.parquet: the column "labels" is of type list<.*list<.*name an'
    ):
        read(table(tmp_path, text=["x"], labels=[[["a"]]]))
    with pytest.raises(DataError, match=r'the column "labels" is of type double'):
        read(table(tmp_path, text=["x"], labels=[0.5]))
    nulls = table(tmp_path, text=["x", None, "y"], labels=[["a"], ["b"], ["c", None]])
    with pytest.raises(DataError, match=r"row 2: the text is null; fill or remove it"):
        read(nulls)
    assert read(nulls, skip=True) == [("x", ["a"])]
    with pytest.raises(DataError, match=r"row 1: the text is null; fill or remove it"):
        read(table(tmp_path, text=[None], labels=["a"]))
    broken = written(tmp_path, b"PAR1 and nothing", "broken.parquet")
    with pytest.raises(DataError, match="damaged or no Parquet file"):
        read(broken)


def test_what_is_wrong_with_a_row_of_parquet_is_told_with_its_row(tmp_path: Path) -> None:
    path = table(tmp_path, text=["one:1", "two:x"], labels=["a", "b"])
    with pytest.raises(DataError, match=r"data.parquet, row 2: .* leave such rows out with skip_bad_lines"):
        labeltree.train(path, weighted_words=True)


def test_parquet_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path, text=["x"])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'labeltree\[parquet\]'"):
        read(path)


ROWS = [(f"word{i % 4} more{i % 3}", [f"label{i % 4}"]) for i in range(40)]


def test_all_ways_give_the_same_model(tmp_path: Path) -> None:
    """In memory, in one file or several, of one format or another."""
    half = len(ROWS) // 2
    fasttext = [f"__label__{labels[0]} {text}" for text, labels in ROWS]
    written(tmp_path, "\n".join(fasttext), "all.txt")
    folder = tmp_path / "parts"
    folder.mkdir()
    written(folder, "\n".join(fasttext[:half]), "a.txt")
    csv_rows = "\n".join(f"{text},{labels[0]}" for text, labels in ROWS[half:])
    written(folder, "text,labels\n" + csv_rows, "b.csv")
    written(folder, "not to be read", "_SUCCESS")
    texts, labels = zip(*ROWS, strict=True)
    models = [
        labeltree.train(tmp_path / "all.txt"),
        labeltree.train(folder),
        labeltree.train(str(folder / "[ab].*")),
        labeltree.train([folder / "a.txt", folder / "b.csv"]),
        labeltree.train(table(tmp_path, text=texts, labels=labels)),
    ]
    for number, model in enumerate(models):
        model.save(tmp_path / f"{number}.labeltree")
    contents = {(tmp_path / f"{number}.labeltree").read_bytes() for number in range(len(models))}
    assert len(contents) == 1
    assert models[0].test(table(tmp_path, body=texts, labels=labels), text_column="body")["p@1"] == 1.0


def test_empty_shards(tmp_path: Path) -> None:
    """Those that have no rows add none; those that cannot be read are named."""
    empty, full = table(tmp_path, "0.parquet", text=[], labels=[]), tmp_path / "rows.csv"
    with pytest.raises(DataError, match=r"0.parquet: no rows to train on"):
        labeltree.train(empty)
    header, nothing = written(tmp_path, "text,labels\n", "1.csv"), written(tmp_path, "", "2.csv")
    written(tmp_path, "text,labels\none,a\ntwo,b\n", "rows.csv")
    assert labeltree.train([empty, header, full, nothing]).n_examples == 2
    written(tmp_path, "", "none.parquet")
    with pytest.raises(DataError, match=r"none.parquet: damaged or no Parquet file"):
        labeltree.train([full, tmp_path / "none.parquet"])
    vectors = written(tmp_path, "1 4 3\n2 3:1\n", "a.txt")
    for files in ([nothing, vectors], [vectors, nothing]):
        with pytest.raises(DataError, match=r"2.csv: an empty file, which does not tell its format; remove"):
            labeltree.train(files)


def test_several_files_of_vectors(tmp_path: Path) -> None:
    written(tmp_path, "2 3 2\n0 0:1 1:1\n1 2:1\n", "a.txt")
    written(tmp_path, "1 4 3\n2 3:1\n", "b.txt")
    model = labeltree.train([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert (model.n_examples, model.n_features, model.n_labels) == (3, 4, 3)
    written(tmp_path, "__label__a one\n", "c.txt")
    with pytest.raises(DataError, match=r"c.txt: a file of format fasttext, but .*a.txt has the format xmlc"):
        labeltree.train([tmp_path / "a.txt", tmp_path / "c.txt"])


def test_what_names_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file has such a name; check the pattern"):
        labeltree.train(tmp_path / "*.csv")
    with pytest.raises(DataError, match="a folder without files"):
        labeltree.train(tmp_path)
    with pytest.raises(DataError, match="an empty name is that of no file"):
        find_files([""])


def test_links_to_nothing_are_left_out_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, "__label__a one\n", "a.txt")
    (tmp_path / "b.txt").symlink_to(tmp_path / "gone.txt")
    assert find_files(tmp_path) == (str(tmp_path / "a.txt"),)
    assert re.search(r"b.txt: left out, a link to .*gone.txt, which is not there", caplog.text)


def test_a_file_that_is_given_twice_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, "__label__a one\n", "a.txt")
    link = tmp_path / "b.txt"
    link.symlink_to(path)
    assert len(find_files([path, path])) == 2
    assert "a.txt is given more than once: its rows count as often" in caplog.text
    find_files([path, link])
    assert re.search(r"b.txt, the same as .*a.txt, is given more than once", caplog.text)
    with pytest.raises(DataError, match=r"standard input \(-\) is given twice"):
        find_files(["-", "-"])


def test_the_command_line_tells_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, "__label__a one\n__label__b two\n", "a.txt"))
    for quiet in ([], ["-q"]):
        assert cli.main(["train", path, path, "-o", str(tmp_path / "m.labeltree"), *quiet]) == 0
        assert ("is given more than once" in capsys.readouterr().err) is not bool(quiet)


def test_files_in_a_list_are_paths(tmp_path: Path) -> None:
    path = Path(written(tmp_path, "__label__a one two\n__label__b three\n", "a.txt"))
    for mixed in ([path, "a.txt"], ["a.txt", path]):
        with pytest.raises(DataError, match=r"such as 'a.txt': of several files each is a Path"):
            labeltree.train(mixed)
    with pytest.raises(DataError, match="a test is of one file, but X is a list of 1"):
        labeltree.train(path).test([path])


def test_what_was_found_is_not_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file named "-" is no standard input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_text("__label__a one\n__label__b two\n")
    assert find_files(find_files("./-")) == ("./-",)
    assert cli.main(["train", "./-", "-o", "m.labeltree", "-q"]) == 0


def test_columns_need_a_table(tmp_path: Path) -> None:
    path = written(tmp_path, "__label__a one\n", "a.txt")
    with pytest.raises(ParameterError, match="format fasttext, which has no columns to choose"):
        labeltree.train(path, text_column="body")
    with pytest.raises(ParameterError, match="labels_column=tags has no effect where X is in memory"):
        labeltree.train(["one"], [["a"]], labels_column="tags")
    with pytest.raises(ParameterError, match="label_separator must be a string that is not empty"):
        labeltree.train(path, label_separator="")
    with pytest.raises(ParameterError, match="text_column and labels_column are both 'a'"):
        labeltree.train(path, text_column="a", labels_column="a")
