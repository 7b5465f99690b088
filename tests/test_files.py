"""Files are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from labeltree.files import write_whole


def test_chunks_become_the_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for chunks in ([], [b"one"], [b"one", memoryview(b"two"), b""]):
        write_whole(path, chunks)
        assert path.read_bytes() == b"".join(chunks)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, RuntimeError])
def test_what_fails_leaves_the_old_content(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def chunks() -> Iterator[bytes]:
        yield b"x" * 10_000_000
        raise error

    with pytest.raises(error):
        write_whole(path, chunks())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "no" / "file", [b"x"])
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path, [b"x"])


@pytest.mark.skipif(os.name != "posix", reason="links and modes")
def test_links_stay_and_the_mode_is_that_of_the_umask(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_whole(link, [b"new"])
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    (tmp_path / "plain").write_bytes(b"")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode
