"""Loops of kernels that sum floats write nothing (why: ``FAST_MATH`` in ``kernels/jit.py``).

Sums are found by how they are written: ``total += x`` and ``total = total + x``, also with ``-`` and ``*``.
Not found are sums
- in a name that no assignment shows to be a float: an argument, an array's item, what a function returns;
- over two names (``a = b + x; b = a``), or within a call (``total = add(total, x)``);
- in a place of an array whose index is computed in the loop, even if it is the same in each round;
- of loops that write only within a helper which is compiled into them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import labeltree

ROOT = Path(labeltree.__file__).parent / "kernels"
KERNELS = sorted(ROOT.rglob("*.py"))
LOOPS = (ast.For, ast.While)
FLOATS = ("np.float32", "np.float64")
SUMS = (ast.Add, ast.Sub, ast.Mult)


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


def assigned(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The targets of an assignment, each with its value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from pairs(target, node.value)


def float_names(function: ast.AST) -> set[str]:
    """Local numbers that are floats somewhere."""
    return {
        target.id
        for node in ast.walk(function)
        for target, value in assigned(node)
        if isinstance(target, ast.Name) and is_float(value)
    }


def operands(value: ast.AST) -> Iterator[str]:
    """What is added, subtracted and multiplied in an expression: ``a, b, c`` of ``np.float32(a + b * c)``."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, SUMS):
        yield from operands(value.left)
        yield from operands(value.right)
    elif isinstance(value, ast.Call) and ast.unparse(value.func) in FLOATS:
        yield from operands(value.args[0])
    else:
        yield ast.unparse(value)


def goes_on(target: ast.AST, value: ast.AST) -> bool:
    """Whether the value is the target's own with something added, as in ``total = total + x``."""
    return ast.unparse(target) in operands(value)


def summed(node: ast.AST) -> Iterator[ast.AST]:
    """The names and places of arrays that a statement adds to."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, SUMS):
        yield node.target
    yield from (target for target, value in assigned(node) if goes_on(target, value))


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def is_innermost(loop: ast.For | ast.While) -> bool:
    """Only such loops do several rounds at a time."""
    inner = (node for node in ast.walk(loop) if isinstance(node, LOOPS) and node is not loop)
    return all(map(is_unrolled, inner))


def sums_of(loop: ast.For | ast.While, floats: set[str]) -> Iterator[ast.AST]:
    """The statements by which a loop that writes to arrays sums: in a name, or in one place of an array."""
    nodes = list(own_nodes(loop))
    stored = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
    begun = names_in(
        target for node in loop.body for target, value in assigned(node) if not goes_on(target, value)
    )
    changing = names_in([*stored, *([loop.target] if isinstance(loop, ast.For) else [])])
    writes = any(isinstance(node, ast.Subscript) for node in stored)
    for node in nodes:
        for target in summed(node):
            if isinstance(target, ast.Name):
                if writes and target.id in floats - begun:
                    yield node
            elif isinstance(target, ast.Subscript) and not names_in([target.slice]) & changing:
                yield node  # the same place in each round


def faults_of(source: str) -> list[str]:
    faults = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for loop in ast.walk(function):
                if isinstance(loop, LOOPS) and is_innermost(loop):
                    faults |= {(s.lineno, ast.unparse(s)) for s in sums_of(loop, float_names(function))}
    return [f"line {line}: {text}" for line, text in sorted(faults)]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: str(path.relative_to(ROOT)))
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

def four(numbers, out):
    total, product, n = 0.0, np.float32(1.0), 0
    for i in range(len(numbers)):
        total = numbers[i] * 2 + total
        product, n = np.float32(product * numbers[i]), n + 1
        out[1] = out[1] - numbers[i]
        out[i] = n

def good(numbers, places, out):
    for i in range(len(numbers)):
        out[places[i]] += numbers[i]
    for i in range(len(numbers)):
        total = 0.0
        for j in range(i):
            total += numbers[j]
        out[i] = total
    for i in range(len(numbers)):
        half = 0.5
        half = half * numbers[i]
        out[i] = out[i] + half
"""
    assert faults_of(source) == [
        "line 6: total += out[c]",
        "line 12: out[0] += numbers[i]",
        "line 18: total *= numbers[i]",
        "line 24: total = numbers[i] * 2 + total",
        "line 25: product, n = (np.float32(product * numbers[i]), n + 1)",
        "line 26: out[1] = out[1] - numbers[i]",
    ]
