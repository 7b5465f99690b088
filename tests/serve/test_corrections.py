"""Corrections are on the disk when they are confirmed, whoever is killed, and however many write."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.serving import client_of, text_model, vector_model, wait_until

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

import labeltree
from labeltree.errors import ParameterError
from labeltree.serve.corrections import Corrections
from labeltree.serve.problems import Problem

PATH = "/v1/models/text/corrections"
LINE = b'{"text":"a","labels":["b"]}\n'


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept.jsonl"


@pytest.fixture
def client(kept: Path) -> Iterator[Any]:
    with client_of({"text": text_model()}, corrections=kept) as client:
        yield client


def test_a_correction_becomes_a_line_to_train_on(client: Any, kept: Path) -> None:
    for number in range(3):
        asked = {
            "text": f"flour\n{number} \u2028 é",
            "labels": ["bread", "new", "bread"],
            "rejected": ["tea"],
        }
        assert client.post(PATH, json=asked).json()["stored"] is True
    records = [json.loads(line) for line in kept.read_bytes().splitlines()]
    assert [record["labels"] for record in records] == [["bread", "new"]] * 3
    assert records[0]["rejected"] == ["tea"]
    assert records[0]["model"] == "text@in-memory"
    model = labeltree.train(kept, threads=1)
    assert (model.n_examples, sorted(model.label_names)) == (3, ["bread", "new"])


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "a"},
        {"text": "", "labels": []},
        {"text": "a", "labels": [""]},
        {"text": "a", "labels": ["b"] * 2000},
        {"text": "a", "labels": "b"},
        {"text": "a", "labels": [], "path": "/etc/passwd"},
    ],
)
def test_what_cannot_be_trained_on_is_refused(client: Any, kept: Path, asked: dict[str, Any]) -> None:
    assert client.post(PATH, json=asked).status_code == 422
    assert kept.read_bytes() == b""


def test_a_service_without_a_file_keeps_nothing() -> None:
    with client_of({"text": text_model()}) as client:
        answer = client.post(PATH, json={"text": "a", "labels": ["b"]})
        assert (answer.status_code, "--corrections" in answer.json()["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", LINE),
        (LINE, LINE + LINE),
        (LINE + b'{"text":"torn', LINE + LINE),  # a writer was killed: nobody was told that it is stored
        (LINE + b'{"text":"torn \xc3', LINE + LINE),
        (b'{"text":"whole"}', b'{"text":"whole"}\n' + LINE),  # an editor left the last line without its end
    ],
)
def test_lines_are_whole(kept: Path, before: bytes, after: bytes) -> None:
    kept.write_bytes(before)
    Corrections(kept).append([LINE])
    assert kept.read_bytes() == after


def test_only_files_of_lines_are_written_to(tmp_path: Path) -> None:
    text_model().save(tmp_path / "a.labeltree")
    with pytest.raises(ParameterError, match="is no file of JSON lines"):
        Corrections(tmp_path / "a.labeltree")
    with pytest.raises(ParameterError, match="cannot be written"):
        Corrections(tmp_path / "nowhere" / "kept.jsonl")


def test_a_full_disk_leaves_what_was_there(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corrections = Corrections(kept)
    corrections.append([LINE])
    write = os.write

    def half(file: int, content: Any) -> int:
        if len(content) > 5:
            return write(file, bytes(content[:5]))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(Problem, match="No space left"):
            corrections.append([b'{"text": 1}'])
    assert kept.read_bytes() == LINE
    with pytest.raises(Problem, match="move it away"):
        Corrections(kept, most_bytes=len(LINE)).append([LINE])


@pytest.mark.parametrize("n", [1, 3])
def test_what_cannot_be_written_is_no_fault_of_the_service(
    client: Any, kept: Path, caplog: pytest.LogCaptureFixture, n: int
) -> None:
    kept.unlink()
    kept.mkdir()
    for _ in range(n):
        answer = client.post(PATH, json={"text": "a", "labels": ["b"]})
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert answer.json()["detail"].startswith("corrections cannot be written: Is a directory")
    told = [record for record in caplog.records if "cannot be written" in record.getMessage()]
    assert [record.exc_info for record in told] == [None] * n
    kept.rmdir()
    assert client.post(PATH, json={"text": "a", "labels": ["b"]}).status_code == 200


def test_a_label_is_right_or_wrong(client: Any, kept: Path) -> None:
    answer = client.post(PATH, json={"text": "a", "labels": ["tea", "b"], "rejected": ["c", "b"]})
    assert (answer.status_code, "'b' is in labels and in rejected" in answer.json()["detail"]) == (422, True)
    assert kept.read_bytes() == b""


def test_models_of_vectors_learn_nothing_from_texts(kept: Path) -> None:
    with client_of({"vector": vector_model()}, corrections=kept) as client:
        answer = client.post("/v1/models/vector/corrections", json={"text": "a", "labels": ["b"]})
        assert (answer.status_code, "takes vectors" in answer.json()["detail"]) == (422, True)


def test_a_file_that_was_moved_away_is_begun_anew(kept: Path) -> None:
    corrections = Corrections(kept)
    corrections.append([LINE])
    kept.rename(kept.with_suffix(".old"))
    corrections.append([LINE, LINE])
    assert kept.read_bytes() == LINE * 2


WRITER = """
import json, sys
from labeltree.serve.corrections import Corrections
corrections = Corrections(sys.argv[1])
for number in range(int(sys.argv[3])):
    text = f"{sys.argv[2]}-{number}-" + "x" * (number % 7 * 1000)
    corrections.append([json.dumps({"text": text, "labels": []}).encode() + b"\\n"])
    print(text, flush=True)
"""


def start_writer(kept: Path, name: str, n: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(kept), name, str(n)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="no locks of this kind on Windows")
def test_nothing_confirmed_is_lost_when_one_of_several_writers_is_killed(kept: Path) -> None:
    killed, others = start_writer(kept, "killed", 100_000), [start_writer(kept, str(n), 40) for n in range(2)]
    wait_until(lambda: kept.exists() and b"killed-5-" in kept.read_bytes())
    time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    told = [process.communicate(timeout=60)[0] for process in (killed, *others)]
    # A full pipe lets the killed one tell a part of a line only.
    confirmed = [each.rpartition("\n")[0].splitlines() for each in told]
    Corrections(kept).append([LINE])
    texts = [json.loads(line)["text"] for line in kept.read_text().splitlines()]
    for lines in confirmed:
        own = [text for text in texts if text.startswith(lines[0].partition("-")[0] + "-")]
        assert own[: len(lines)] == lines[: len(own)] == lines
    assert len(set(texts)) == len(texts)
