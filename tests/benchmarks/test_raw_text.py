"""The set of raw text: what is taken from a listing of packages."""

from __future__ import annotations

from pathlib import Path

from benchmarks.raw_text import Package, packages, write_files

LISTING = """\
Package: 0ad-data
Source: 0ad (0.0.26)
Description: Real-time strategy (data files)
Tag: game::strategy, interface::x11,
 role::app-data

Package: untagged
Description: no tags here

Package: hello
Description: says "hello": a demo
Tag: role::program
"""


def test_tagged_packages_become_rows(tmp_path: Path) -> None:
    found = list(packages(LISTING))
    assert found == [
        Package(
            "0ad",
            "0ad-data: Real-time strategy (data files)",
            ["game::strategy", "interface::x11", "role::app-data"],
        ),
        Package("hello", 'hello: says "hello": a demo', ["role::program"]),
    ]
    train, test = write_files(found, tmp_path)
    lines = (train.read_text() + test.read_text()).splitlines()
    assert '__label__role::program hello: says "hello": a demo' in lines
    assert len(lines) == 2
