"""Tests mirror the package, stand by themselves, and are all found by pytest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeltree

TESTS, SOURCE = Path(__file__).parent, Path(labeltree.__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
# torch_heads tests the folder torch: so named, it would be what `import torch` finds where there is no other.
NOT_OF_THE_PACKAGE = {
    "benchmarks",
    "benchmarks/scaling",
    "browser",
    "experiments",
    "storage/golden",
    "support",
    "torch_heads",
}


def name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def defined_tests(path: Path) -> list[str]:
    """What pytest would take for a test, if it looked into the file."""
    named = (
        node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    return [node.name for node in named if node.name.startswith(("test_", "Test"))]


def test_every_folder_is_one_of_the_package() -> None:
    folders = {name(path) for path in TESTS.rglob("*") if path.is_dir() and path.name != "__pycache__"}
    extra = {folder for folder in folders - NOT_OF_THE_PACKAGE if not (SOURCE / folder).is_dir()}
    assert not extra, "a folder of tests has the name of the folder that it tests"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_modules_share_only_what_is_in_support(path: Path) -> None:
    """A test module that another one imports cannot be moved, or run, by itself."""
    parts = {part for other in imported(path) for part in other.split(".")}
    assert not parts & {"tests", "conftest", *(file.stem for file in FILES if file.stem.startswith("test_"))}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_pytest_collects_it(path: Path) -> None:
    """By its name: tests in other files would never run."""
    assert bool(defined_tests(path)) == path.name.startswith("test_")
