"""What is shown while training: on a terminal, in a log, and before kernels are compiled."""

from __future__ import annotations

import io
import math
from types import SimpleNamespace
from typing import Any

import pytest

from labeltree.progress import ProgressBar, counted, duration, layout, size


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def step(stage: str, epoch: int = 0, fraction: float = 0.5, loss: float = math.nan) -> Any:
    speed = 1234.0 if stage == "train" else math.nan
    return SimpleNamespace(
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
