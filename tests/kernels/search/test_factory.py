"""Kernels are made for a kind of nodes and a link, once, with names of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labeltree.kernels.jit import kernel_of
from labeltree.kernels.links import Logistic, NormalizedLogistic, Softmax
from labeltree.kernels.search.dense import dense_kernels
from labeltree.kernels.search.sparse import sparse_kernels


class Scaled(NamedTuple):
    factor: int


def make(link: Scaled):
    @kernel_of("toy", link)
    def scale(number):
        return number * link.factor

    return scale


def test_kernels_are_made_once_for_each_kind_and_link() -> None:
    """All links without fields are equal, as empty tuples are."""
    links = Logistic(), NormalizedLogistic(), Softmax()
    made = [make(link) for make in (dense_kernels, sparse_kernels) for link in links]
    assert len({id(kernels) for kernels in made}) == 6
    assert dense_kernels(Softmax()) is made[2]
    assert sparse_kernels(Logistic()) is made[3]
    functions = [kernel.py_func for kernels in made for kernel in kernels]
    names = [function.__name__ for function in functions]
    assert names[:2] == ["dense_logistic_topk", "dense_logistic_topk_row"]
    assert len(set(names)) == len({function.__qualname__ for function in functions}) == 48


def test_what_a_closure_holds_is_part_of_its_code() -> None:
    """Also of the name by which the machine code is found again."""
    twice, thrice = make(Scaled(2)), make(Scaled(3))
    assert (twice(5), thrice(5)) == (10, 15)
    assert twice.py_func.__name__ == thrice.py_func.__name__ == "toy_scaled_scale"
    signature = twice.signatures[0]
    context = twice.targetctx
    assert twice._cache._name(signature, context) != thrice._cache._name(signature, context)
    again = make(Scaled(2))
    assert again(np.int64(5)) == 10
    assert again.stats.cache_hits
