"""Loops of kernels that sum floats write nothing (why: ``FAST_MATH`` in ``kernels/jit.py``)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import labeltree

KERNELS = sorted((Path(labeltree.__file__).parent / "kernels").glob("*.py"))
LOOPS = (ast.For, ast.While)
FLOATS = ("np.float32", "np.float64")


def own_nodes(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    """What is done in each round, without the loops inside, which are loops of their own.

    But for loops of a fixed number of rounds: these are unrolled and so a part of the one around them.
    """
    waiting: list[ast.AST] = [*loop.body, *loop.orelse]
    while waiting:
        node = waiting.pop()
        if isinstance(node, LOOPS) and not is_unrolled(node):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def is_unrolled(loop: ast.For | ast.While) -> bool:
    """Over a range of constants, which are numbers or names in capitals."""
    if not (isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)):
        return False
    bounds = loop.iter.args
    return all(isinstance(b, ast.Constant) or (isinstance(b, ast.Name) and b.id.isupper()) for b in bounds)


def is_float(value: ast.AST) -> bool:
    """Whether an expression shows that it is one: a number with a point in it, a call of ``np.float32``."""
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in FLOATS)
        for node in ast.walk(value)
    )


def pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from pairs(one, other)
    else:
        yield target, value


def float_names(function: ast.AST) -> set[str]:
    """Local numbers that are floats somewhere."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for one, value in pairs(target, node.value):
                    if isinstance(one, ast.Name) and is_float(value):
                        names.add(one.id)
    return names


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def is_innermost(loop: ast.For | ast.While) -> bool:
    """Only such loops do several rounds at a time."""
    inner = (node for node in ast.walk(loop) if isinstance(node, LOOPS) and node is not loop)
    return all(map(is_unrolled, inner))


def sums_of(loop: ast.For | ast.While, floats: set[str]) -> Iterator[ast.AugAssign]:
    """What a loop that writes to arrays sums up: in a name, or in one place of an array."""
    nodes = list(own_nodes(loop))
    stored = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
    begun = names_in(target for node in loop.body if isinstance(node, ast.Assign) for target in node.targets)
    changing = names_in([*stored, *([loop.target] if isinstance(loop, ast.For) else [])])
    for node in nodes:
        if not (isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))):
            continue
        if isinstance(node.target, ast.Name):
            is_sum = node.target.id in floats - begun
            writes = any(isinstance(other, ast.Subscript) for other in stored)
            if is_sum and writes:
                yield node
        elif not names_in([node.target.slice]) & changing:  # the same place in each round
            yield node


def faults_of(source: str) -> list[str]:
    faults = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for loop in ast.walk(function):
                if isinstance(loop, LOOPS) and is_innermost(loop):
                    faults |= {(s.lineno, ast.unparse(s)) for s in sums_of(loop, float_names(function))}
    return [f"line {line}: {text}" for line, text in sorted(faults)]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_loops_that_sum_floats_write_nothing(path: Path) -> None:
    assert faults_of(path.read_text()) == []


def test_what_is_found() -> None:
    source = """
def one(scores, out):
    total, n = np.float32(0.0), 0
    for c in range(len(scores)):
        out[c] = scores[c]
        total += out[c]
        n += 1
    return total, n

def two(numbers, out):
    for i in range(len(numbers)):
        out[0] += numbers[i]

def three(numbers, out):
    total = 1.0
    for i in range(len(numbers)):
        for _ in range(3):
            total *= numbers[i]
        out[i] = 1

def good(numbers, places, out):
    for i in range(len(numbers)):
        out[places[i]] += numbers[i]
    for i in range(len(numbers)):
        total = 0.0
        for j in range(i):
            total += numbers[j]
        out[i] = total
"""
    assert faults_of(source) == [
        "line 6: total += out[c]",
        "line 12: out[0] += numbers[i]",
        "line 18: total *= numbers[i]",
    ]
