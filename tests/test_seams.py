"""What differs between the choices of an axis is in their objects: no code compares their names.

The reference is left out: it says the method in plain words, and stands by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeltree
from labeltree.data.formats import FORMATS
from labeltree.experts import EXPERTS
from labeltree.features import FEATURES
from labeltree.nodes import KINDS, LINKS
from labeltree.trees import BUILDERS

SOURCE = Path(labeltree.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "reference" not in path.parts)
TABLES = {
    "trees": BUILDERS,
    "nodes": KINDS,
    "links": LINKS,
    "experts": EXPERTS,
    "formats": FORMATS,
    "features": FEATURES,
}
NAMES = {name for table in TABLES.values() for name in table}
# Where a name is no choice of an axis, or is frozen: what files of an earlier format meant.
ALLOWED = {
    ("storage/upgrade.py", "both"),
    ("data/jsonl.py", "text"),  # a key
    ("training/progress.py", "tree"),  # a stage
}


def compared_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each choice that is compared with something, or looked for among strings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                for part in ast.walk(side) if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else (side,):
                    if isinstance(part, ast.Constant) and part.value in NAMES:
                        yield node.lineno, part.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_name_of_a_choice_is_compared(path: Path) -> None:
    part = str(path.relative_to(SOURCE))
    found = [(line, name) for line, name in compared_names(path) if (part, name) not in ALLOWED]
    assert found == [], "ask the object in the table"


@pytest.mark.parametrize("axis", TABLES)
def test_every_choice_can_be_imported(axis: str) -> None:
    table = TABLES[axis]
    assert [table[name] for name in table.single()]


def test_no_kind_is_told_by_its_class() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = ast.unparse(node.args[1])
                assert not asked.endswith(("Parameters", "Features", "Expert")), f"{path}:{node.lineno}"
