"""What is shown while training: on a terminal, in a log, and before kernels are compiled."""

from __future__ import annotations

import io
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import tqdm.notebook
import tqdm.std
from support.small_data import make_toy

import labeltree
from labeltree.errors import ParameterError
from labeltree.experts.job import Progress
from labeltree.training import progress
from labeltree.training.progress import ProgressBar, layout
from labeltree.wording import counted, duration, size


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def step(stage: str, epoch: int = 0, fraction: float = 0.5, loss: float = math.nan) -> Progress:
    speed = 1234.0 if stage == "train" else math.nan
    return Progress(
        stage=stage,
        tree=1,
        trees=2,
        epoch=epoch,
        epochs=3,
        fraction=fraction,
        loss=loss,
        examples_per_second=speed,
        seconds_left=9.0 if stage == "train" else math.nan,
        estimate=None,
    )


STEPS = [
    step("read"),
    step("tree"),
    step("train", 1, 0.1),
    step("train", 1, 0.3, 0.5),
    step("train", 2, 0.6, 0.25),
]


def shown(stream: io.StringIO, **options: bool) -> str:
    with ProgressBar(stream=stream, **options) as bar:
        for item in STEPS:
            bar(item)
    return stream.getvalue()


def test_bar_on_a_terminal() -> None:
    text = shown(Terminal())
    assert "training 1/2, epoch 2/3" in text
    assert "60%" in text
    assert "loss 0.2500, 1,234 examples/s, 9.0 s left" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("stream", "options"),
    [(io.StringIO(), {}), (Terminal(), {"quiet": True}), (io.StringIO(), {"quiet": True})],
)
def test_nothing_without_terminal_or_when_quiet(stream: io.StringIO, options: dict[str, bool]) -> None:
    assert shown(stream, **options) == ""


def test_verbose_writes_the_last_state_of_each_step() -> None:
    assert shown(io.StringIO(), verbose=True).splitlines() == [
        "reading: done",
        "building tree 1/2: done",
        "training 1/2, epoch 1/3: loss 0.5000, 1,234 examples/s, 9.0 s left",
        "training 1/2, epoch 2/3: loss 0.2500, 1,234 examples/s, 9.0 s left",
    ]


def test_bar_is_removed_when_training_fails() -> None:
    stream = Terminal()
    bar = ProgressBar(stream=stream)
    bar(STEPS[-1])
    bar.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert stream.getvalue().rsplit("\r", 2)[-2].strip() == ""  # overwritten with spaces


def test_numbers_for_people() -> None:
    assert [duration(seconds) for seconds in (4.21, 75, 7500)] == ["4.2 s", "1 min 15 s", "2 h 5 min"]
    assert [size(n) for n in (812, 3_400_000, 2.5e12)] == ["812 B", "3.4 MB", "2.5 TB"]
    assert [counted(n, "line") for n in (0, 1, 2000)] == ["0 lines", "1 line", "2,000 lines"]


def test_a_closed_error_stream_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    for verbose in (False, True):
        with ProgressBar(verbose=verbose) as bar:
            for item in STEPS:
                bar(item)


def test_frames_begin_with_the_stage_and_have_no_stray_comma() -> None:
    frames = [frame for frame in shown(Terminal()).split("\r") if frame.strip()]
    assert all(frame.startswith(("reading", "building tree", "training")) for frame in frames)
    assert not any("| ," in frame or "|," in frame for frame in frames)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (100, "training 1/2, epoch 2/3 {percentage:3.0f}%|{bar}| loss 0.2500, 1,234 examples/s, 9.0 s left"),
        (70, "training 1/2, epoch 2/3 {percentage:3.0f}%|{bar}| loss 0.2500, 9.0 s left"),
        (52, "training 1/2, epoch 2/3 {percentage:3.0f}%|{bar}| loss 0.2500"),
        (45, "training 1/2, epoch 2/3 {percentage:3.0f}%|{bar}|"),
        (30, "training 1/2, epoch 2/3 {percentage:3.0f}%"),
    ],
)
def test_narrow_terminals_show_less(columns: int, expected: str) -> None:
    assert layout(STEPS[-1], columns) == expected


def test_the_first_and_last_loss_of_each_tree_are_kept() -> None:
    bar = ProgressBar(stream=io.StringIO())
    for item in [*STEPS, step("train", 3, 0.9, 0.125)]:
        bar(item)
    assert bar.losses == {1: (0.5, 0.125)}


def test_a_bar_is_drawn_every_tenth_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 0.01)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    stream = Terminal()
    with ProgressBar(stream=stream) as bar:
        for number in range(1000):
            bar(step("train", 1, number / 1000))
    assert 90 <= stream.getvalue().count("training") <= 110


# From Python: progress=True, and the log.

TOY = make_toy(60)
TREE = dict(arity=2, max_leaves=3)


def in_a_notebook(monkeypatch: pytest.MonkeyPatch, *, with_widgets: bool) -> list[str]:
    """As if a notebook ran this; what its bar shows is the list that is returned."""
    shown: list[str] = []

    class Widget(tqdm.notebook.tqdm):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            tqdm.std.tqdm.__init__(self, **{**options, "gui": True})  # without the widgets

        def display(self, *_: Any, **options: Any) -> None:
            shown.append(self.format_meter(**{**self.format_dict, "ncols": 80}))

        def close(self) -> None:
            shown.append("closed")

    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setattr("tqdm.auto.tqdm", Widget if with_widgets else tqdm.std.tqdm)
    return shown


def test_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = in_a_notebook(monkeypatch, with_widgets=True)
    labeltree.train(TOY.texts, TOY.Y, progress=True, **TREE)
    assert any(text.startswith("building tree") for text in shown)
    assert any("training" in text and "examples/s" in text for text in shown)
    assert shown[-1] == "closed"
    captured = capsys.readouterr()
    assert captured.out.startswith("Estimated: ")  # not on the stream that notebooks paint red
    assert captured.err == ""


def test_lines_in_a_notebook_without_widgets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_a_notebook(monkeypatch, with_widgets=False)
    labeltree.train(TOY.texts, TOY.Y, progress=True, **TREE)
    assert "building tree: done\n" in capsys.readouterr().err


def test_progress_and_callback_together(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, heard = Terminal(), list[Progress]()
    monkeypatch.setattr("sys.stderr", terminal)
    labeltree.train(TOY.texts, TOY.Y, progress=True, callback=heard.append, **TREE)
    assert "building tree   0%|" in terminal.getvalue()
    assert {progress.stage for progress in heard} == {"read", "tree", "train", "neighbours"}


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    labeltree.train(TOY.texts, TOY.Y, progress=True, **TREE)
    captured = capsys.readouterr()
    starts = [line.partition(":")[0] for line in captured.err.splitlines()]
    assert starts == ["Estimated", "reading", "building tree", "training", "indexing rows"]
    assert captured.out == ""


@pytest.mark.parametrize("progress", [1, None, "yes", print])
def test_progress_is_yes_or_no(progress: Any) -> None:
    with pytest.raises(ParameterError, match="progress must be True or False"):
        labeltree.train(TOY.texts, TOY.Y, progress=progress)


def test_the_log_tells_stages(caplog: pytest.LogCaptureFixture) -> None:
    labeltree.train(TOY.texts, TOY.Y, **TREE)
    assert caplog.text == ""  # nobody listens
    caplog.set_level("INFO", logger="labeltree")
    labeltree.train(TOY.texts, TOY.Y, trees=2, nodes="both", dim=4, epochs=2, **TREE)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    lines = [re.sub(r" [^,:]+$", " T", line) for line in caplog.messages]  # however long each stage took
    assert re.fullmatch(r"reading: 60 rows, \d+ features, 12 labels, T", lines[0])
    assert lines[1].startswith("Estimated: ")
    assert [line for line in lines if line.startswith("building")] == [
        f"building tree {number}/2: T" for number in (1, 1, 2, 2)
    ]
    trained = [line for line in lines if line.startswith("training")]
    assert trained == lines[3::2]
    assert re.fullmatch(r"training 1/2, epoch 2/2: loss [\d.]+, [\d,]+ examples/s, T", trained[0])
    assert re.fullmatch(r"training 1/2: [\d,]+ examples/s, T", trained[1])


def test_the_log_warns_of_skipped_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text('{"text": "word0 word1", "labels": ["topic-0"]}\n' * 9 + "{broken\n" * 7)
    labeltree.train(data, skip_bad_lines=True)
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "labeltree.data.bad_lines")
    assert record.getMessage().startswith("Skipped 7 bad rows. The first of them:\n")
    assert record.getMessage().count(f"{data}, line ") == 5


def test_a_plain_script_sees_nothing(tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text('{"text": "a b", "labels": ["x"]}\n' * 9 + "{broken\n")
    script = f"import labeltree; labeltree.train({str(data)!r}, skip_bad_lines=True).predict(['a'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
