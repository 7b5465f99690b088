"""Where the machine code of kernels is kept: compiled once per machine, whoever runs it.

A kernel's code is a file of its own, named by what it was compiled from: all kernels' sources (helpers are
part of their callers), the kernel's signature, the processor, the versions of Python and Numba. Folders that
can only be read are used, too; what is in none of them is compiled, and written to the first that takes it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import inspect
import logging
import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
from llvmlite import binding, ir
from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from labeltree.storage.files import write_whole

try:
    import fcntl
except ImportError:  # Windows: two processes may then compile the same kernel, which costs time only
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

ENVIRONMENT = "LABELTREE_KERNELS"
NOTICE = "labeltree compiles kernels for this machine, which takes about 20 seconds, once."
_DIGEST_BYTES = 32
_LONGEST_WAIT = 120.0  # seconds for another process that compiles the same kernel
_UNUSED_DAYS = 30  # after which the code of another version is removed
_SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")  # of Numba

compiled: list[str] = []  # what this process had to compile
used: set[Path] = set()  # the folders that it read code from, or wrote code to


class MachineCode(_Cache):
    """The cache of one kernel, as Numba asks for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._turn: _Turn | None = None

    @property
    def cache_path(self) -> str:
        return str(next(iter(folders())))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code of a signature, or None: then Numba compiles it, and :meth:`save_overload` is next.

        Numba would import everything that it can compile, scipy.linalg among it, before it looks into its
        cache: a third of a second of every process. What machine code needs to run is the runtime alone, and
        whoever compiles loads the rest anyway.
        """
        try:
            rtsys.initialize(target_context)
        except AttributeError:  # a Numba of other inner names
            target_context.refresh()
        name = self._name(sig, target_context)
        found = _load(name, target_context)
        if found is None:
            _begin()
            self._turn = _Turn.wait_for(name)
            found = _load(name, target_context)  # by whoever had the turn before
        if found is None:
            compiled.append(self._function.__name__)
            log.debug("compiling %s", self._function.__name__)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        name = self._name(sig, data.target_context)
        content = dumps(_without_bitcode(data._reduce(), data.fndesc))
        for folder in folders():
            try:
                _write(folder / name, hashlib.sha256(content).digest() + content)
                used.add(folder)
                return
            except OSError as error:
                log.debug("machine code cannot be written to %s (%s)", folder, error)
        _warn_once(f"compiled kernels cannot be kept: set {ENVIRONMENT} to a folder that can be written")

    def end_turn(self) -> None:
        if self._turn is not None:
            self._turn.end()
            self._turn = None

    def _name(self, sig: Any, target_context: Any) -> str:
        """``total-0123456789abcdef``: the file of a signature."""
        settings = [getattr(config, name, None) for name in _SETTINGS]
        made_of = (
            self._function.__module__,
            self._function.__qualname__,
            str(sig),
            target_context.codegen().magic_tuple(),
            settings,
            sorted(set(map(_file_digest, _files_of(self._function, sig)))),
        )
        digest = hashlib.sha256(repr(made_of).encode()).hexdigest()
        return f"{self._function.__name__}-{digest[:16]}"

    # The rest of what Numba's class asks for: this cache is never switched off.

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass


_sources: dict[type, set[str]] = {}  # the files with what kernels do for a type of NamedTuple


def add_source(kind: type, body: Callable[..., Any]) -> None:
    """A kernel that has to do with this type may call this function."""
    _sources.setdefault(kind, set()).add(inspect.getfile(body))


def _files_of(function: Callable[..., Any], sig: Any) -> Iterator[str]:
    """Where a kernel, the helpers that it holds as a closure, and what it does with its types may live.

    All this can be elsewhere: :func:`version` has the kernels of this package alone.
    """
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    for one in (function, *(value.py_func for value in held if hasattr(value, "py_func"))):
        yield inspect.getfile(one)
    for kind in (*_classes_in(sig), *map(type, held)):
        yield from _sources.get(kind, ())


def _classes_in(found: Any) -> Iterator[type]:
    """The NamedTuples in a signature, also within each other."""
    for part in found:
        if hasattr(part, "instance_class"):
            yield part.instance_class
        yield from _classes_in(getattr(part, "types", ()))


def folders() -> Iterator[Path]:
    """Where machine code may be, in the order in which it is looked for, and in which it is written."""
    if _only is not None:
        yield _only / version()
        return
    for variable in (ENVIRONMENT, "NUMBA_CACHE_DIR"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / version()
    yield Path(__file__).parent / "__pycache__" / version()
    for root in _private_roots():
        if _is_safe(root) and _is_safe(root / version()):
            yield root / version()


_only: Path | None = None


def warm(folder: Path | None) -> None:
    """Compile without a word; look for code in this folder alone, so that it gets what others have, too."""
    global _only, when_compiling
    _only, when_compiling = folder, lambda: None


@functools.cache
def version() -> str:
    """A digest of everything that all kernels are made of."""
    made_of = [numba.__version__, llvmlite.__version__, str(sys.implementation.cache_tag)]
    made_of += [_file_digest(path) for path in sorted(Path(__file__).parent.rglob("*.py"))]
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]


@functools.cache
def _file_digest(path: str | Path) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # a notebook's cell, or a zipped package: Python's own name for it must do
        return str(path)


def _private_roots() -> Iterator[Path]:
    """Folders of one user, whose code nobody else may have written."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if root and os.path.isabs(root):
        yield Path(root) / "labeltree" / "kernels"
    user = os.getuid() if hasattr(os, "getuid") else "user"  # a temporary folder of Windows is the user's own
    with contextlib.suppress(OSError):  # there is none
        yield Path(tempfile.gettempdir()) / f"labeltree-kernels-{user}"


def _is_safe(folder: Path) -> bool:
    """Whether nobody but this user and root can have put code into a folder, which need not exist."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):  # a link, for example, that leads to somebody's folder
        return False
    return not hasattr(os, "getuid") or (
        status.st_uid in (0, os.getuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _make(folder: Path) -> None:
    """Make the folder of this version; those of others that nobody has used for a while go."""
    if folder.is_dir():
        return
    if folder.parent in _private_roots():
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
            if not _is_safe(path):
                raise PermissionError(errno.EPERM, "others can write to it", str(path))
    else:
        folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        is_version = len(other.name) == len(folder.name) and set(other.name) <= set("0123456789abcdef")
        if is_version and other.stat().st_mtime < time.time() - _UNUSED_DAYS * 86_400:
            shutil.rmtree(other, ignore_errors=True)


def _load(name: str, target_context: Any) -> Any:
    """What :meth:`MachineCode.save_overload` wrote, from the first folder that has it whole."""
    for folder in folders():
        try:
            content = (folder / name).read_bytes()
            if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
                log.debug("machine code in %s is damaged", folder / name)
                continue
            found = CompileResult._rebuild(target_context, *pickle.loads(content[_DIGEST_BYTES:]))
        except FileNotFoundError:
            continue
        except Exception as error:  # whatever is wrong with it, compiling helps
            log.debug("machine code in %s cannot be used (%s)", folder / name, error)
            continue
        _mark_used(folder)
        used.add(folder)
        return found
    return None


def _without_bitcode(reduced: tuple[Any, ...], described: Any) -> tuple[Any, ...]:
    """What Numba keeps of a kernel, less its bitcode, which it would parse and list with every start.

    That is for callers that link the kernel; ours link its helper (:class:`.jit.Kernel`). Its names must
    stay: what Numba has not seen defined, it does not look up in the machine code.
    """
    name, kind, (machine_code, _) = reduced[0]
    names_alone = ir.Module(name)
    for defined in (described.llvm_func_name, described.llvm_cpython_wrapper_name):
        function = ir.Function(names_alone, ir.FunctionType(ir.VoidType(), ()), defined)
        ir.IRBuilder(function.append_basic_block()).ret_void()
    bitcode = binding.parse_assembly(str(names_alone)).as_bitcode()
    return ((name, kind, (machine_code, bitcode)), *reduced[1:])


def _write(path: Path, content: bytes) -> None:
    """Readable by all, as others may use what they need not compile; a damaged file is compiled again."""
    _make(path.parent)
    write_whole(path, [content], mode=0o644, durable=False)


@functools.cache
def _mark_used(folder: Path) -> None:
    """So that it is not removed; once per process, and only where that is allowed."""
    with contextlib.suppress(OSError):
        os.utime(folder)


class _Turn:
    """The right to compile a kernel, so that processes that start together do not all do it."""

    _file: IO[bytes] | None = None  # one for all: closing it would end all turns of this process

    def __init__(self, file: IO[bytes] | None, place: int) -> None:
        assert file is not None
        self._lock = file, place
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)

    @classmethod
    def wait_for(cls, name: str) -> _Turn | None:
        """None where there are no locks, or whoever has the turn takes much too long."""
        if not cls.are_kept():
            return None
        until = time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < until:
            try:
                return cls(cls._file, place=int(name[-8:], 16))
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                return None
        return None

    @classmethod
    def are_kept(cls) -> bool:
        """Whether there are locks: in the folder that code would be written to."""
        for folder in folders() if cls._file is None and fcntl is not None else ():
            with contextlib.suppress(OSError):
                _make(folder)
                cls._file = open(folder / "lock", "ab")  # noqa: SIM115
                break
        return cls._file is not None

    def end(self) -> None:
        file, place = self._lock
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


def can_share() -> bool:
    """Whether what another process compiles can be used here."""
    return _Turn.are_kept()


def announce(*, everywhere: bool = False) -> None:
    """Tell who may be waiting, at a terminal or in a notebook, why nothing happens."""
    log.info(NOTICE)
    with contextlib.suppress(OSError, ValueError):  # nobody is there any more, or the stream is closed
        is_read = "ipykernel" in sys.modules or everywhere
        if sys.stderr is not None and (is_read or sys.stderr.isatty()):
            from tqdm import tqdm

            tqdm.write(NOTICE, file=sys.stderr)  # above a bar, if there is one


when_compiling: Callable[[], None] = announce  # called when a process first finds no code for a kernel
_has_begun = False


def _begin() -> None:
    global _has_begun
    if not _has_begun:
        _has_begun = True
        when_compiling()


@functools.cache
def _warn_once(message: str) -> None:
    log.warning(message)
