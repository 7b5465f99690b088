"""What training tells while it runs: to a callback, as a bar or lines for a person, and to the log."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from labeltree.config import Config
from labeltree.experts.job import Callback, Progress
from labeltree.wording import counted, duration, size

if TYPE_CHECKING:
    from labeltree.training.needs import Estimate

_log = logging.getLogger(__name__)
_BAR_STEPS = 1000
_LEAST_BAR = 8  # columns
_USUAL_COLUMNS = 80
_SECONDS_PER_DRAWING = 0.1
_MUCH_LONGER = 3  # than with the default tree, which is worth a word
_STAGES = {
    "read": "reading",
    "tree": "building tree",
    "train": "training",
    "neighbours": "indexing rows",
    "forest": "growing forest",
}


@contextmanager
def listeners(callback: Callback | None, *, bar: bool) -> Iterator[Callback]:
    """One function that tells the callback, the bar (if there shall be one) and the log."""
    with ExitStack() as stack:
        heard_by = [] if callback is None else [callback]
        if bar:
            heard_by.append(stack.enter_context(ProgressBar(lines_instead=True)))
        if _log.isEnabledFor(logging.INFO):
            heard_by.append(stack.enter_context(ProgressLog()))

        def tell(progress: Progress) -> None:
            for listener in heard_by:
                listener(progress)

        yield tell


class ProgressLog:
    """A callback that logs each stage and its time; the last one at the end of its ``with`` block."""

    def __init__(self) -> None:
        self._last: Progress | None = None
        self._began = time.perf_counter()  # of this stage

    def __call__(self, progress: Progress) -> None:
        if self._last is not None and progress[:2] != self._last[:2]:  # another stage, or another tree
            self._tell(self._last)
            self._began = time.perf_counter()
        self._last = progress

    def _tell(self, progress: Progress) -> None:
        found = progress.estimate
        parts = details(progress._replace(seconds_left=math.nan))
        if found is not None:
            counts = {"row": found.n_rows, "feature": found.n_features, "label": found.n_labels}
            parts += [counted(number, noun) for noun, number in counts.items()]
        parts.append(duration(time.perf_counter() - self._began))
        _log.info("%s: %s", title(progress), ", ".join(parts))
        if found is not None:
            _log.info("%s", estimate_text(found))

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last is not None and kind is None:
            self._tell(self._last)


class ProgressBar:
    """A callback for :func:`labeltree.train`; leaving its ``with`` block clears the bar.

    The bar is for terminals and notebooks. Elsewhere it would fill a file, and ``lines_instead`` chooses
    between the lines of ``verbose`` and nothing.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        lines_instead: bool = False,
        stream: IO[str] | None = None,
    ) -> None:
        widget = _widget_class()
        default = sys.stderr if widget is None else sys.stdout  # notebooks show the former as an error
        self.stream = default if stream is None else stream
        quiet = quiet or self.stream is None  # where the shell closed it: 2>&-
        self.shows_bar = not quiet and not verbose and (widget is not None or self.stream.isatty())
        self.shows_lines = not quiet and (verbose or (lines_instead and not self.shows_bar))
        self.shows_estimate = not quiet
        self._widget = widget
        self._bar: Any = None
        self._drawn = -math.inf  # when
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
        now = time.monotonic()
        is_same = self._last is not None and _step(progress) == _step(self._last)
        if is_same and now < self._drawn + _SECONDS_PER_DRAWING:
            return
        self._drawn = now
        form = layout(progress, _columns(self.stream))
        if self._bar is None:
            from tqdm import tqdm

            self._bar = (self._widget or tqdm)(
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


def _widget_class() -> Any:
    """tqdm's bar for notebooks; None outside of one, and without ipywidgets."""
    if "IPython" not in sys.modules:
        return None
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm as widget

    return tqdm if issubclass(tqdm, widget) else None


def estimate_text(estimate: Estimate) -> str:
    """``Estimated: 1.2 GB of memory, 25 s on one core.`` How large the model will be only --dry-run knows."""
    text = f"Estimated: {size(estimate.peak_bytes)} of memory"
    if estimate.disk_bytes:
        text += f", {size(estimate.disk_bytes)} on the disk"
    if math.isfinite(estimate.cpu_seconds):
        text += f", {duration(estimate.cpu_seconds)} on one core"
    if estimate.times_of_default >= _MUCH_LONGER:
        text += f": {estimate.times_of_default:.0f} times as long as --tree {Config.tree}"
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
    left = columns - len(name) - len(" 100%||") - _LEAST_BAR
    if left < 0:
        return f"{name} {{percentage:3.0f}}%"
    while parts and len(" " + ", ".join(parts)) > left:
        # The loss is kept longest, and the speed is missed least.
        parts.pop(1 if len(parts) > 1 else 0)
    text = " " + ", ".join(parts) if parts else ""
    return f"{name} {{percentage:3.0f}}%|{{bar}}|{text}"


def _columns(stream: IO[str]) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):  # it only claims to be a terminal
        return _USUAL_COLUMNS


def _step(progress: Progress) -> tuple[str, int, int]:
    return progress.stage, progress.tree, progress.epoch
