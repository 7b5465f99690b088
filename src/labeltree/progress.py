"""What a person sees while a model is trained: a bar on a terminal, lines with ``--verbose``."""

from __future__ import annotations

import math
import os
import sys
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeltree.estimating import Estimate
    from labeltree.training import Progress

_BAR_STEPS = 1000
_LEAST_BAR = 8  # columns
_USUAL_COLUMNS = 80
_MUCH_LONGER = 3  # than a k-means tree takes, which is worth a word
_STAGES = {"read": "reading", "tree": "building tree", "train": "training"}


class ProgressBar:
    """A callback for :func:`labeltree.train`; leaving its ``with`` block clears the bar."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False, stream: IO[str] | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        quiet = quiet or self.stream is None  # where the shell closed it: 2>&-
        self.shows_bar = not quiet and not verbose and self.stream.isatty()
        self.shows_lines = verbose and not quiet
        self.shows_estimate = not quiet
        self._bar: Any = None
        self._last: Progress | None = None
        self.losses: dict[int, tuple[float, float]] = {}  # tree -> the first and the last loss reported

    def __call__(self, progress: Progress) -> None:
        if math.isfinite(progress.loss):
            first, _ = self.losses.get(progress.tree, (progress.loss, 0.0))
            self.losses[progress.tree] = first, progress.loss
        if self.shows_bar:
            self._draw(progress)
        if progress.estimate is not None and self.shows_estimate:
            self._write(estimate_text(progress.estimate))
        if self.shows_lines and self._last is not None and _step(progress) != _step(self._last):
            self._write_line(self._last)
        self._last = progress

    def _draw(self, progress: Progress) -> None:
        form = layout(progress, _columns(self.stream))
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=_BAR_STEPS, file=self.stream, bar_format=form, leave=False, dynamic_ncols=True
            )
        # The bar's own rates and times are of its thousand steps, so the form holds ours.
        self._bar.bar_format = form
        self._bar.n = round(_BAR_STEPS * min(max(progress.fraction, 0.0), 1.0))
        self._bar.refresh()

    def _write_line(self, progress: Progress) -> None:
        self._write(f"{title(progress)}: {', '.join(details(progress)) or 'done'}")

    def _write(self, line: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        self.stream.write(f"{line}\n")
        self.stream.flush()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self.shows_lines and self._last is not None:
            self._write_line(self._last)


def estimate_text(estimate: Estimate) -> str:
    """``Estimated: a model file of 94 MB, 1.2 GB of memory, 25 s on one core.``"""
    text = f"Estimated: a model file of {size(estimate.model_bytes)}, {size(estimate.peak_bytes)} of memory"
    if math.isfinite(estimate.cpu_seconds):
        text += f", {duration(estimate.cpu_seconds)} on one core"
    if estimate.times_of_kmeans >= _MUCH_LONGER:
        text += f": {estimate.times_of_kmeans:.0f} times as long as --tree kmeans"
    return text + "."


def title(progress: Progress) -> str:
    """``training tree 2/3, epoch 4/20``."""
    text = _STAGES.get(progress.stage, progress.stage)
    if progress.trees > 1 and progress.stage in ("tree", "train"):
        text += f" {progress.tree}/{progress.trees}"
    if progress.epochs > 0 and progress.stage == "train":
        text += f", epoch {progress.epoch}/{progress.epochs}"
    return text


def details(progress: Progress) -> list[str]:
    """What is known besides the stage: loss, speed, time left."""
    parts = []
    if math.isfinite(progress.loss):
        parts.append(f"loss {progress.loss:.4f}")
    if math.isfinite(progress.examples_per_second) and progress.examples_per_second > 0:
        parts.append(f"{progress.examples_per_second:,.0f} examples/s")
    if math.isfinite(progress.seconds_left):
        parts.append(f"{duration(progress.seconds_left)} left")
    return parts


def layout(progress: Progress, columns: int) -> str:
    """The form of the bar; where a terminal is narrow the details go first, then the bar itself."""
    name, parts = title(progress), details(progress)
    room = columns - len(name) - len(" 100%||") - _LEAST_BAR
    if room < 0:
        return f"{name} {{percentage:3.0f}}%"
    while parts and len(" " + ", ".join(parts)) > room:
        # The loss is kept longest, and the speed is missed least.
        parts.pop(1 if len(parts) > 1 else 0)
    text = " " + ", ".join(parts) if parts else ""
    return f"{name} {{percentage:3.0f}}%|{{bar}}|{text}"


def _columns(stream: IO[str]) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):  # it only claims to be a terminal
        return _USUAL_COLUMNS


def duration(seconds: float) -> str:
    """``4.2 s``, ``3 min 10 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(n_bytes: float) -> str:
    """``812 B``, ``3.4 MB``: powers of 1000, as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _step(progress: Progress) -> tuple[str, int, int]:
    return progress.stage, progress.tree, progress.epoch
