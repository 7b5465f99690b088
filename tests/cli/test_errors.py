"""What goes wrong on the command line ends with a clear line, an exit code, and nothing half-written."""

from __future__ import annotations

import bz2
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from labeltree import cli

DATA = "__label__a one two\n__label__b three four\n" * 10


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some data, a model of it, and files that are neither."""
    path = tmp_path_factory.mktemp("cli-errors")
    (path / "data.txt").write_text(DATA)
    (path / "empty.txt").write_text("")
    (path / "unlabelled.txt").write_text("words without any label\n" * 3)
    (path / "bad.jsonl").write_text('{"text": "x", "labels": ["a"]}\n{broken\n')
    (path / "bytes.txt").write_bytes(b"__label__a \xff\xfe\n")
    (path / "bad.toml").write_text("dim = = 3\n")
    (path / "unknown.toml").write_text("dimension = 3\n")
    (path / "type.toml").write_text('dim = "many"\n')
    (path / "dense.toml").write_text("dim = 4\n")
    (path / "text.toml").write_text('tf = "count"\n')
    (path / "rows.xmlc").write_text("2 3 2\n0 0:1\n1 1:1\n")
    (path / "good.toml").write_text("arity = 4\n")
    (path / "good.tree").write_text("r x a\nr y b\n")
    (path / "numbers.txt").write_text("1 2 3\nand words\n")
    (path / "cycle.tree").write_text("1 2 a\n2 1 b\n")
    (path / "rows.xmlc").write_text("2 3 2\n0 0:1\n1 7:1\n")
    (path / "bad.gz").write_bytes(b"\x1f\x8b\x08 not really")
    model = path / "good.labeltree"
    options = ["--quiet"]
    assert cli.main(["train", str(path / "data.txt"), "-o", str(model), *options]) == 0
    (path / "cut.labeltree").write_bytes(model.read_bytes()[:2000])
    flipped = bytearray(model.read_bytes())
    flipped[-100] ^= 1
    (path / "flipped.labeltree").write_bytes(flipped)
    (path / "folder").mkdir()
    (path / "unlabelled.jsonl").write_text('{"text": "x", "label": ["a"]}\n')
    (path / "unlabelled.tsv").write_text("words\t\n")
    (path / "twice.toml").write_text("word-ngrams = 1\nword_ngrams = 2\n")
    (path / "almost.toml").write_text("word-ngram = 1\n")
    (path / "data.bz2").write_bytes(bz2.compress(DATA.encode()))
    (path / "data.zip").write_bytes(b"PK\x03\x04\x14\x00\x00\x00")
    (path / "good.xmlc").write_text("2 3 2\n0 0:1\n1 2:1\n")
    vectors = path / "vectors.labeltree"
    assert cli.main(["train", str(path / "good.xmlc"), "-o", str(vectors), *options]) == 0
    return path


# (arguments, exit code, what the message says); names in braces stand for the folder's files
BAD = [
    ("train", 2, "Missing argument"),
    ("train {data.txt}", 2, "--output"),
    ("train {data.txt} -o {out} --arity 1", 2, "arity"),
    ("train {data.txt} -o {out} --dim zero", 2, "dim"),
    ("train {data.txt} -o {out} --lr -1", 2, "lr"),
    ("train {data.txt} --dry-run -o {out}", 2, "--output has no effect with --dry-run"),
    ("train {data.txt} --dry-run --card a=b", 2, "--card has no effect with --dry-run"),
    ("train {data.txt} --dry-run -q", 2, "--quiet has no effect with --dry-run"),
    ("train {data.txt} --dry-run -v", 2, "--verbose has no effect with --dry-run"),
    ("inspect {good.labeltree} --json --tree {out}", 2, "--json has no effect with --tree"),
    (
        "train {data.txt} -o {out} --dim 4",
        2,
        "dim=4 has no effect where nodes is sparse and tree is kmeans: it needs nodes=dense",
    ),
    ("train {data.txt} -o {out} --lr 0.1", 2, "lr=0.1 has no effect"),
    ("train {data.txt} -o {out} --config {dense.toml}", 2, "dense.toml: dim=4 has no effect"),
    ("train {data.txt} --dry-run --config {dense.toml}", 2, "dense.toml: dim=4 has no effect"),
    ("train {rows.xmlc} -o {out} --config {text.toml}", 2, "text.toml: tf=count has no effect where input"),
    (
        "train {rows.xmlc} -o {out} --config {text.toml} --tf log",
        2,
        "Error: tf=log has no effect where input",
    ),
    ("train {data.txt} --dry-run --no-lowercase --format xmlc", 2, "lowercase=no has no effect where input"),
    ("train {rows.xmlc} -o {out} --label-prefix x", 2, "label_prefix=x has no effect where input is vectors"),
    ("train {data.txt} -o {out} --lr nan", 2, "lr must be finite"),
    ("train {data.txt} -o {out} --nodes dense --workers 2", 2, "dense nodes are trained on one machine only"),
    ("train {data.txt} -o {out} --nodes sparse-ish", 2, "dense"),
    ("train {data.txt} -o {out} --optimizer adam", 2, "adagrad"),
    ("train {data.txt} -o {out} --format yaml", 2, "fasttext"),
    ("train {data.txt} -o {out} --preset finest", 2, "paper"),
    ("train {data.txt} -o {out} --threads -1", 2, "threads"),
    ("predict {model} {data.txt} --threads 99999999999999999999", 2, "0<=x<=4096"),
    ("train {data.txt} -o {out} --label-prefix \udcff", 2, "label_prefix must be valid Unicode"),
    ("train {data.txt} -o {out} --depth 3", 2, "No such option"),
    ("train {data.txt} -o {out} --label-prefix=", 2, "label_prefix"),
    ("train {data.txt} -o {out} --config {missing.toml}", 2, "missing.toml"),
    ("train {data.txt} -o {out} --config {bad.toml}", 2, "not valid TOML"),
    ("train {data.txt} -o {out} --config {unknown.toml}", 2, "dimension"),
    ("train {data.txt} -o {out} --config {type.toml}", 2, "dim must be a whole number, but is 'many'"),
    ("train {data.txt} -o {out} --tree {missing.tree}", 2, "missing.tree"),
    ("train {data.txt} -o {out} --tree {cycle.tree}", 1, "cycle.tree"),
    ("train {data.txt} -o {folder}", 2, "is a folder"),
    ("train {data.txt} -o {nowhere}/m", 2, "does not exist"),
    ("train {data.txt} -o {data.txt}", 2, "is an input too"),
    ("train {data.txt} -o {good.tree} --tree {good.tree}", 2, "is an input too"),
    ("train {data.txt} -o {good.toml} --config {good.toml}", 2, "is an input too"),
    ("train {data.txt} --dry-run --tree {missing.tree}", 2, "missing.tree"),
    ("train {data.txt} -o -", 2, "standard output"),
    ("train {data.txt} -o ''", 2, "the name is empty"),
    ("inspect {good.labeltree} --tree -", 2, "standard output"),
    ("train {data.txt} -o {out} -q -v", 2, "exclude each other"),
    ("train {data.txt} -o {out} --config {type.toml}", 2, "type.toml: dim must be"),
    ("train {data.txt} -o {out} --config {twice.toml}", 2, "twice.toml: word_ngrams is given twice"),
    (
        "train {data.txt} -o {out} --config {almost.toml}",
        2,
        "almost.toml: unknown parameter 'word_ngram'; did",
    ),
    (
        "train {unlabelled.txt} -o {out}",
        1,
        "read as fasttext, where labels are words that start with '__label__'",
    ),
    ("train {unlabelled.jsonl} -o {out}", 1, 'read as jsonl, where labels are the list of the key "labels"'),
    ("train {unlabelled.tsv} -o {out}", 1, "read as annif, where labels are the subjects"),
    ("train {data.bz2} -o {out}", 1, "data.bz2: is a bzip2 file"),
    ("train {data.zip} -o {out}", 1, "data.zip: is a zip archive"),
    ("predict {good.labeltree} {good.labeltree}", 1, "is a model, not data"),
    ("predict {vectors.labeltree} {data.txt}", 1, "the model was trained on vectors"),
    ("test {vectors.labeltree} {bad.jsonl}", 1, "the model was trained on vectors"),
    ("train {missing.txt} -o {out}", 1, "missing.txt"),
    ("train {folder} -o {out}", 1, "folder"),
    ("train {empty.txt} -o {out}", 1, ""),
    ("train {unlabelled.txt} -o {out}", 1, "label"),
    ("train {bad.jsonl} -o {out}", 1, "line 2"),
    ("train {bytes.txt} -o {out}", 1, "UTF-8"),
    ("train {rows.xmlc} -o {out}", 1, "line 3"),
    ("train {bad.gz} -o {out}", 1, "bad.gz"),
    ("test {missing.labeltree} {data.txt}", 1, "missing.labeltree"),
    ("test {data.txt} {data.txt}", 1, "data.txt"),
    ("test {cut.labeltree} {data.txt}", 1, "cut.labeltree"),
    ("test {flipped.labeltree} {data.txt}", 1, "flipped.labeltree"),
    ("test {folder} {data.txt}", 1, "folder"),
    ("test {good.labeltree} {missing.txt}", 1, "missing.txt"),
    ("test {good.labeltree} {empty.txt}", 1, "empty.txt: no rows to test on"),
    ("test {good.labeltree} {data.txt} -k 0", 2, "1,3,5"),
    ("test {good.labeltree} {data.txt} -k one", 2, "1,3,5"),
    ("test {good.labeltree} {data.txt} --per-label {nowhere}/x", 2, "does not exist"),
    ("explain {good.labeltree} {data.txt} --label zz", 1, "labeltree labels MODEL --search"),
    ("test {good.labeltree} {rows.xmlc}", 1, ""),
    ("predict {good.labeltree} {data.txt} -k -1", 2, "-k"),
    ("predict {good.labeltree} {data.txt} -k 0", 2, "--threshold"),
    ("predict {good.labeltree} {data.txt} --threshold 2", 2, "threshold"),
    ("predict {good.labeltree} {bytes.txt}", 1, "line 1"),
    ("predict {good.labeltree} {rows.xmlc} --format xmlc", 1, ""),
    ("predict {good.labeltree} {numbers.txt}", 1, "--format fasttext"),
    ("test {good.labeltree} {numbers.txt}", 1, "--format fasttext"),
    ("prob {good.labeltree} {numbers.txt}", 1, "--format fasttext"),
    ("predict {flipped.labeltree}", 1, "flipped.labeltree"),
    ("prob {good.labeltree}", 2, "DATA"),
    ("inspect {cut.labeltree}", 1, "cut.labeltree"),
    ("inspect {good.labeltree} --tree {nowhere}/t", 2, "does not exist"),
    ("demo -o {nowhere}/m", 2, "does not exist"),
    ("demo --documents 3", 2, "documents"),
    ("fit {data.txt}", 2, "No such command"),
]


@pytest.mark.parametrize(("line", "code", "message"), BAD, ids=[line for line, _, _ in BAD])
def test_bad_arguments(
    line: str, code: int, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    words = line.replace("{", f"{folder}{os.sep}").replace("}", "").split()
    words = ["" if word == "''" else word for word in words]
    capsys.readouterr()
    assert cli.main(words) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Error: " in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), 1, "not enough memory"),
        (OSError(28, "No space left on device", "/some/file"), 1, "/some/file: No space left on device"),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_unexpected_errors_are_explained(
    error: BaseException,
    code: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr("labeltree.training.driver.train", fail)
    assert cli.main(["train", str(folder / "data.txt"), "-o", str(folder / "out"), "-q"]) == code
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("command", ["test --per-label", "test --scorecard", "predict -o", "explain --html"])
def test_folders_in_which_nothing_can_be_made(
    folder: Path,
    tmp_path: Path,
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As /sys for root: the folder seems writable."""

    def refuse(path: Any) -> None:
        raise PermissionError(13, "Permission denied", f"{path}/.labeltree-0000.tmp")

    monkeypatch.setattr("labeltree.cli.options.check_can_write", refuse)
    (name, option), output = command.split(), tmp_path / "out"
    given = [str(folder / "good.labeltree"), str(folder / "data.txt"), option, str(output)]
    assert cli.main([name, *given]) == 2
    said = " ".join(capsys.readouterr().err.split())
    wanted = f"output {output}: the folder {tmp_path} is not writable (Permission denied); choose another"
    assert wanted.replace(" ", "") in said.replace(" ", "")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder_is_refused_before_training(tmp_path: Path, folder: Path) -> None:
    tmp_path.chmod(0o500)
    assert cli.main(["train", str(folder / "data.txt"), "-o", str(tmp_path / "m")]) == 2


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_interrupted_training_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "labeltree", "train", str(folder / "data.txt"), "-v"]
    command += ["-o", str(tmp_path / "m"), "--nodes", "dense", "--epochs", "100000", "--dim", "400"]
    pipes: dict[str, Any] = dict(stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # tests that run in the background of a shell are deaf to the signal, and so would be their children
    heeded = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, preexec_fn=heeded, **pipes) as child:
        assert child.stderr is not None
        guard = threading.Timer(60, child.kill)  # so that a thread that never ends is a failure, not a wait
        guard.start()
        for line in child.stderr:  # until training has really begun
            if line.startswith("training"):
                break
        child.send_signal(signal.SIGINT)
        started = time.monotonic()
        errors = child.stderr.read()
        assert child.wait(30) == 130
        guard.cancel()
    assert time.monotonic() - started < 10
    assert errors.endswith("Interrupted.\n")
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_closed_pipe_is_quiet(folder: Path) -> None:
    lines = (folder / "data.txt").read_text() * 2000
    command = [sys.executable, "-m", "labeltree", "predict", str(folder / "good.labeltree")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        try:
            child.stdin.write(lines)
            child.stdin.close()
        except BrokenPipeError:
            pass
        assert child.stderr.read() == ""
        assert child.wait(30) == 1


@pytest.mark.parametrize(
    ("line", "function", "hint"),
    [
        ("train {data.txt} -o {out} -q", "labeltree.training.driver.train", "--dry-run"),
        ("test {good.labeltree} {data.txt}", "labeltree.model.load", "smaller -k"),
        ("predict {good.labeltree} {data.txt}", "labeltree.model.load", "smaller -k"),
        ("prob {good.labeltree} {data.txt}", "labeltree.model.load", "several files"),
        ("inspect {good.labeltree}", "labeltree.model.load", "not enough memory\n"),
    ],
)
def test_what_to_do_without_memory_depends_on_the_command(
    line: str,
    function: str,
    hint: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(function, fail)
    capsys.readouterr()
    assert cli.main(line.replace("{", f"{folder}{os.sep}").replace("}", "").split()) == 1
    message = capsys.readouterr().err
    assert hint in message
    assert ("--dry-run" in message) == line.startswith("train")


def test_trees_are_written_only_if_all_of_them_can_be(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    options = ["--trees", "3", "-q"]
    assert cli.main(["train", str(folder / "data.txt"), "-o", str(model), *options]) == 0
    (tmp_path / "t.2.txt").mkdir()
    assert cli.main(["inspect", str(model), "--tree", str(tmp_path / "t.txt")]) == 2
    assert sorted(os.listdir(tmp_path)) == ["m", "t.2.txt"]


def test_a_model_without_trees_of_labels_writes_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m"
    options = ["--preset", "fastxml", "--forest", "2", "-q"]
    assert cli.main(["train", str(folder / "data.txt"), "-o", str(model), *options]) == 0
    assert cli.main(["inspect", str(model), "--tree", str(tmp_path / "t.txt")]) == 1
    assert "no tree of labels" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the stream")
@pytest.mark.parametrize(
    "command", ["predict {good.labeltree} -", "train - -o {out}", "test {good.labeltree} -"]
)
def test_closed_standard_input(command: str, folder: Path) -> None:
    words = command.replace("{", f"{folder}{os.sep}").replace("}", "")
    shell = f'"{sys.executable}" -m labeltree {words} <&-'
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "standard input: is closed" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (folder / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="devices and named pipes")
def test_devices_and_pipes_are_refused_before_training(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/null", tmp_path / "pipe"):
        assert cli.main(["train", str(folder / "data.txt"), "-o", str(name)]) == 2
        assert "is a device or a pipe" in capsys.readouterr().err


def test_an_interrupt_while_modules_are_imported(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "labeltree", "--help"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("line", "near"),
    [("train x --thread 3", "'--threads'"), ("train x --depth 3", ""), ("train x --seeed 3", "'--seed'")],
)
def test_only_near_options_are_suggested(line: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line.split()) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.partition("Did you mean ")[2] == (f"{near}?" if near else "")
