"""Random numbers for kernels: the state is an argument, so that a task's numbers are its own."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined

_STEP = np.uint64(0x9E3779B97F4A7C15)


@inlined
def _below(number, bound):
    """A number below ``bound`` for any number (SplitMix64)."""
    mixed = number
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return np.int64(mixed % np.uint64(bound))


@inlined
def next_random(state, bound):
    """A number below ``bound``; ``state`` (1,) uint64 moves on."""
    state[0] += _STEP
    return _below(state[0], bound)


@inlined
def random_at(seed, place, bound):
    """The number below ``bound`` at a place of the sequence that a seed stands for."""
    return _below(np.uint64(seed) + _STEP * np.uint64(place + 1), bound)


@inlined
def shuffle(order, state):
    """Put ``order`` into a random order (Fisher and Yates)."""
    for i in range(len(order) - 1, 0, -1):
        other = next_random(state, i + 1)
        order[i], order[other] = order[other], order[i]
