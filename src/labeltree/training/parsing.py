"""Files read by themselves, at the same time or on other machines; each is kept when it is read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from labeltree.config import AskedConfig, Config, check_effects
from labeltree.data.bad_lines import BadLines
from labeltree.data.files import Files
from labeltree.data.formats import FORMATS, Format, Reading, find_format
from labeltree.data.opening import Source
from labeltree.experts.job import Work
from labeltree.features import features_for
from labeltree.nodes.kind import Parts
from labeltree.parallel import Pool
from labeltree.storage.space import Space
from labeltree.storage.work_dir import WorkDir
from labeltree.training.data import TrainingData, check_same_input, check_trainable, place_of

READ = "read"  # the name of the parts
_FILES = "files"  # and of what says which files they are


def can_read_in_parts(files: Sequence[str], asked: AskedConfig, reading: Reading) -> bool:
    """Whether there are several, of a kind that can; what was asked for must have an effect on it."""
    if len(files) < 2:
        return False
    found = _format_of(files[0], reading)
    check_effects(asked.config, asked.given, input=found.input, beside="nothing")
    return features_for(found.input, asked.config.embed).has_parts


def read_in_parts(
    files: Files,
    config: Config,
    reading: Reading,
    skip_bad_lines: bool,
    work: Work,
    pool: Pool,
    progress: Callable[[float], None],
) -> TrainingData:
    """As if the files were read one after another."""
    what = {"files": [os.path.abspath(file) for file in files], "reading": list(reading)}
    work.folder.write(_FILES, {}, what | {"skip_bad_lines": skip_bad_lines})
    parts, n_done, lock = Parts(work.folder, READ), 0, threading.Lock()

    def tell(number: int) -> None:
        nonlocal n_done
        with lock:  # who listens hears of one at a time
            n_done += 1
            progress(n_done / len(files))

    def read(number: int) -> None:
        read_file(work.folder, number, config, pool.space)
        tell(number)

    missing = [number for number in range(len(files)) if not parts.has_sound(number)]
    if work.elsewhere is None:
        pool.map(read, missing)
    elif missing:
        work.elsewhere(READ, missing, tell)
    return _joined(files, config, parts, skip_bad_lines, pool.space)


def read_file(folder: WorkDir, number: int, config: Config, space: Space) -> None:
    """Read one of the files, and keep what training needs of it."""
    what = folder.read(_FILES)[1]
    reading, bad_lines = Reading(*what["reading"]), BadLines(skip=what["skip_bad_lines"])
    file = what["files"][number]
    with Source(file, columns=reading.columns, wants_labels=True, space=space) as source:
        found = find_format(reading.format, source)
        kind = features_for(found.input, config.embed)
        tensors = kind.read_part(found.content(source, bad_lines), config, bad_lines, space)
        is_empty = not source.first_bytes
    told = {"skipped": bad_lines.skipped, "messages": bad_lines.messages}
    Parts(folder, READ).write(number, tensors, {"format_of_file": found.name, "is_empty": is_empty} | told)


def _joined(
    files: Sequence[str], config: Config, parts: Parts, skip_bad_lines: bool, space: Space
) -> TrainingData:
    bad_lines, formats = BadLines(skip=skip_bad_lines), list[str]()

    def tensors() -> Iterator[Mapping[str, NDArray[Any]]]:
        for number, file in enumerate(files):
            own, what = parts.folder.read(parts.part(number), verify=False)
            formats.append(what["format_of_file"])
            check_same_input((files[0], formats[0]), (file, formats[-1]), what["is_empty"])
            bad_lines.skipped += what["skipped"]
            bad_lines.messages += what["messages"][: bad_lines.keep - len(bad_lines.messages)]
            yield own

    first = parts.folder.read(parts.part(0), verify=False)[1]["format_of_file"]
    kind = features_for(FORMATS[first].input, config.embed)
    fitted = kind.fit_parts(tensors(), config, space)
    data = TrainingData(fitted.features, fitted.rows, fitted.Y, fitted.labels, bad_lines, first)
    return check_trainable(data, place_of(files), config)


def _format_of(file: str, reading: Reading) -> Format:
    with Source(file, columns=reading.columns, wants_labels=True) as source:
        return find_format(reading.format, source)
