"""Text files: each format, each way to open one, each bad line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
from pathlib import Path

import pytest
from support.reading import read_blocks

from labeltree.data.bad_lines import BadLines, shorten
from labeltree.data.opening import Source
from labeltree.errors import DataError, ParameterError

CONTENT = {
    "fasttext": b"__label__a one two\n\n__label__b:c three\r\nfour",
    "annif": b"one two\t<a> <http://x/b>\n\nthree\t\r\nfour\t<c>",
    "jsonl": b'{"text": "one two", "labels": ["a", 7]}\n\n{"text": "\\u00fc\\n"}\r\n'
    b'{"labels": null, "text": ""}',
}
ROWS = {
    "fasttext": [("__label__a one two", [], 1), ("", [], 2), ("__label__b:c three", [], 3), ("four", [], 4)],
    "annif": [("one two", ["a", "http://x/b"], 1), ("", [], 2), ("three", [], 3), ("four", ["c"], 4)],
    "jsonl": [("one two", ["a", "7"], 1), ("ü\n", [], 3), ("", [], 4)],
}


def read(path: object, fmt: str = "auto", bad_lines: BadLines | None = None, **options: int) -> list[tuple]:
    rows = []
    for block in read_blocks(path, fmt, bad_lines=bad_lines or BadLines(), **options):
        data = block.buffer.tobytes()
        for i in range(block.n_rows):
            spans = range(block.label_indptr[i], block.label_indptr[i + 1])
            labels = [data[block.label_start[span] : block.label_end[span]].decode() for span in spans]
            text = data[block.text_start[i] : block.text_end[i]].decode()
            rows.append((text, labels, int(block.line[i])))
    return rows


@pytest.mark.parametrize("fmt", CONTENT)
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", "packed"])
def test_plain_and_compressed_files_give_the_same_rows(fmt: str, suffix: str, tmp_path: Path) -> None:
    pack = {".gz": gzip.compress, ".xz": lzma.compress, "packed": gzip.compress}.get(suffix, bytes)
    path = tmp_path / f"data{suffix}"  # "packed": only the first bytes tell that it is compressed
    path.write_bytes(pack(CONTENT[fmt]))
    assert read(path) == ROWS[fmt]
    assert read(str(path), fmt) == ROWS[fmt]


@pytest.mark.parametrize("fmt", CONTENT)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_may_be_a_pipe(fmt: str, pack: type, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()

    def feed() -> None:
        with open(writing, "wb", buffering=0) as pipe:
            for byte in pack(CONTENT[fmt]):  # as slowly as a pipe can be: the magic bytes come one by one
                pipe.write(bytes([byte]))

    thread = threading.Thread(target=feed)
    with open(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        thread.start()
        assert read("-") == ROWS[fmt]
        assert not stdin.closed
    thread.join()


@pytest.mark.parametrize("fmt", CONTENT)
@pytest.mark.parametrize("block_bytes", [1, 2, 7, 64])
def test_block_size_changes_nothing(fmt: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(CONTENT[fmt])
    assert read(path, block_bytes=block_bytes) == ROWS[fmt]


def test_a_line_longer_than_the_block_and_many_blocks(tmp_path: Path) -> None:
    path = tmp_path / "data"
    lines = [b"x" * 1000, b"", b"y" * 5, "ü".encode() * 300, b"z"]
    path.write_bytes(b"\n".join(lines))
    assert [text.encode() for text, _, _ in read(path, block_bytes=16)] == lines


def test_mark_empty_file_and_single_newline(tmp_path: Path) -> None:
    path = tmp_path / "data"
    for content, expected in ((b"", []), (b"\n", [""]), (b"\xef\xbb\xbfa\n", ["a"]), (b"a\0b", ["a b"])):
        path.write_bytes(content)
        assert [text for text, _, _ in read(path)] == expected
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}')
    assert read(path) == [("a", [], 1)]


def test_only_fasttext_has_labels_among_its_words(tmp_path: Path) -> None:
    path = tmp_path / "data"
    for fmt, content in CONTENT.items():
        path.write_bytes(content)
        assert all(b.labels_in_text == (fmt == "fasttext") for b in read_blocks(path, bad_lines=BadLines()))


BAD = [
    ("fasttext", b"caf\xe9 noir", "invalid UTF-8 at byte 4"),
    ("fasttext", b"\xed\xa0\x80", "invalid UTF-8 at byte 1"),
    ("annif", b"no tab here", "expected a tab between text and subjects"),
    ("annif", b"text\thttp://x/1", "expected a subject in angle brackets at byte 6"),
    ("annif", b"text\t<a> b", "angle brackets at byte 10: 'b'"),
    ("annif", b"text\t<a><b>", "angle brackets"),
    ("annif", b"text\t<>", "angle brackets"),
    ("annif", b"text\t<a", "angle brackets"),
    ("annif", b"\xff\t<a>", "invalid UTF-8"),
    ("jsonl", b"plain text", "not JSON ("),
    ("jsonl", b'["text"]', "expected a JSON object"),
    ("jsonl", b"{", "not JSON ("),
    ("jsonl", b'{"text": "a', "not JSON ("),
    ("jsonl", b'{"text": "a"', "not JSON ("),
    ("jsonl", b'{"text": "a\tb"}', "not JSON ("),
    ("jsonl", b'{"text": "\\x"}', "not JSON ("),
    ("jsonl", b'{"text": "\\u12g4"}', "not JSON ("),
    ("jsonl", b'{"text": "\\ud83d!"}', "not JSON ("),
    ("jsonl", b'{"text": "\\ude00"}', "not JSON ("),
    ("jsonl", b"{text: 1}", "not JSON ("),
    ("jsonl", b'{"text": "a",}', "not JSON ("),
    ("jsonl", b'{"text" "a"}', "not JSON ("),
    ("jsonl", b'{"text": "a", "b": nul}', "not JSON ("),
    ("jsonl", b'{"text": "a", "b": NaN}', "not JSON ("),
    ("jsonl", b'{"text": "a", "b": 01}', "not JSON ("),
    ("jsonl", b'{"text": "a", "b": [1 2]}', "not JSON ("),
    ("jsonl", b'{"text": "a", "b": [1}', "not JSON ("),
    ("jsonl", b'{"text": "a" "b": 1}', "not JSON ("),
    ("jsonl", b'{"text": "a"} x', "not JSON ("),
    ("jsonl", b'{"labels": ["a"]}', 'no key "text"'),
    ("jsonl", b'{"text": null}', '"text" is not a string'),
    ("jsonl", b'{"text": "a", "labels": "b"}', '"labels" is not an array'),
    ("jsonl", b'{"text": "a", "labels": [true]}', "neither a string nor a number"),
    ("jsonl", b'{"text": "a", "labels": [["b"]]}', "neither a string nor a number"),
    ("jsonl", b'{"text": "a", "labels": [""]}', "a label is empty"),
    ("jsonl", b'{"text": "a", "labels": ["b",]}', "not JSON ("),
    ("jsonl", b'{"text": "\xff"}', "invalid UTF-8"),
]


@pytest.mark.parametrize(("fmt", "line", "reason"), BAD)
def test_bad_line_is_named_or_skipped(fmt: str, line: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    good = CONTENT[fmt].split(b"\n")[0]
    path.write_bytes(b"\n".join([good, line, good]))
    with pytest.raises(DataError) as error:
        read(path, fmt, BadLines(skip=False))
    assert str(error.value).startswith(f"{path}, line 2: ")
    assert reason in str(error.value)
    assert "skip_bad_lines (--skip-bad-lines)" in str(error.value)
    with pytest.raises(DataError) as error:
        read(path, fmt)
    assert "skip_bad" not in str(error.value)  # who cannot choose to skip is not told to

    bad_lines = BadLines(skip=True)
    rows = read(path, fmt, bad_lines)
    assert [line for _, _, line in rows] == [1, 3]
    assert rows[0][:2] == rows[1][:2] == ROWS[fmt][0][:2]
    assert bad_lines.skipped == 1
    assert reason in bad_lines.messages[0]


def test_skipped_lines_are_all_counted_and_few_are_described(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"\xff\n" * 100)
    bad_lines = BadLines(skip=True, keep=3)
    assert read(path, "fasttext", bad_lines, block_bytes=10) == []
    assert bad_lines.skipped == 100
    assert [message.split(": ")[0] for message in bad_lines.messages] == [
        f"{path}, line {n}" for n in (1, 2, 3)
    ]


def test_values_in_messages_are_short(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"word " * 1000)
    with pytest.raises(DataError) as error:
        read(path, "annif")
    assert len(str(error.value)) < 250 + len(str(path))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("data.gz", b"plain", "named .gz, but its content is not gzip"),
        ("data.xz", b"", "named .xz, but its content is not xz"),
        # without the time, which would be in the names of the tests: all processes must collect the same
        ("data.gz", gzip.compress(b"word " * 1000, mtime=0)[:-20], "damaged or truncated"),
        ("data.gz", gzip.compress(b"word " * 1000, mtime=0)[:-8] + b"\0" * 8, "damaged or truncated"),
        ("data.gz", b"\x1f\x8b\x08" + b"\0" * 7 + b"\xff" * 20, "damaged or truncated"),
        ("data.xz", lzma.compress(b"word " * 1000)[:-20], "damaged or truncated"),
        ("data.xz", lzma.compress(b"word " * 1000)[:12] + b"\xff" * 30, "damaged or truncated"),
    ],
)
def test_damaged_files(name: str, content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason):
        read(path)


def test_missing_file_folder_and_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing-here: cannot be opened \(No such file"):
        read(tmp_path / "nothing-here")
    with pytest.raises(DataError, match="directory"):
        read(tmp_path)
    with pytest.raises(ParameterError, match="format must be one of auto, jsonl, xmlc"):
        read(tmp_path, "yaml")


def test_source_can_be_looked_at_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(CONTENT["jsonl"]))
    monkeypatch.setattr("sys.stdin", stdin)
    source = Source("-")
    assert source.first_bytes.startswith(b'{"text"')
    assert read(source, "jsonl") == ROWS["jsonl"]


@pytest.mark.parametrize("stdin", [None, io.StringIO("a text stream without bytes"), "closed"])
def test_closed_standard_input_is_an_error(stdin: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if stdin == "closed":
        stdin = io.TextIOWrapper(io.BytesIO(b"a"))
        stdin.close()
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(DataError, match="standard input: is closed"):
        Source("-")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_progress_is_the_fraction_of_the_file(pack: type, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(pack(os.urandom(400_000).hex().encode().replace(b"0", b"\n")))
    heard: list[float] = []
    with Source(path, progress=heard.append) as source:
        n_blocks = sum(1 for _ in source.blocks(1 << 16))
    assert len(heard) == n_blocks > 5
    assert heard == sorted(heard)
    assert 0 < heard[0] < 0.5
    assert heard[-1] == 1


def test_no_progress_where_the_size_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    heard: list[float] = []
    with Source("-", progress=heard.append) as source:
        assert len(list(source.blocks())) == 1
    assert heard == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\xff\xfe x", r"'\xff\xfe x'"),
        (b"back\\slash", r"'back\\slash'"),
        (rb"\udcff", r"'\\udcff'"),
        ("é\t".encode(), r"'é\t'"),
        (b"x" * 50, f"'{'x' * 40}...'"),
    ],
)
def test_values_in_messages_are_escaped_once(value: bytes, expected: str) -> None:
    assert shorten(value) == expected


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (bz2.compress(b"words"), "a bzip2 file"),
        (b"PK\x03\x04\x14\x00", "a zip archive"),
        (b"\x28\xb5\x2f\xfd\x04", "a zstd file"),
        (b"\x10\x02\0\0\0\0\0\0{}", "a model, not data"),
    ],
)
def test_other_kinds_of_files_are_recognised(content: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"data: is {kind}; "):
        Source(path)
