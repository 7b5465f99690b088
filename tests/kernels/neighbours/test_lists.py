"""Lists of ids in few bits are read as they were written."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.data.rows import pointers
from labeltree.experts.neighbours_index import LENGTHS, open_lists, pack_sorted
from labeltree.kernels.neighbours.lists import GROUP, PADDING, lists_fit
from labeltree.reference.neighbours import decode_list


def random_lists(n_ids: int, lengths: list[int], seed: int = 0) -> list[dict[int, int]]:
    random = np.random.default_rng(seed)
    return [
        dict(
            zip(
                sorted(random.choice(n_ids, n, replace=False).tolist()),
                random.integers(0, 16, n).tolist(),
                strict=True,
            )
        )
        for n in lengths
    ]


def packed(lists: list[dict[int, int]], n_ids: int) -> tuple[np.ndarray, np.ndarray]:
    start = pointers([len(each) for each in lists])
    ids = np.array([id for each in lists for id in each], np.int32)
    levels = np.array([level for each in lists for level in each.values()], np.uint8)
    return pack_sorted(start, ids, levels, n_ids)


def decoded(length: np.ndarray, data: np.ndarray, n_ids: int) -> list[dict[int, int]]:
    found, place = [], 0
    for n in LENGTHS[length].tolist():
        entries, n_bytes = decode_list(data[place:].tobytes(), n, n_ids) if n else ({}, 0)
        found.append(entries)
        place += n_bytes
    assert place + PADDING == len(data)
    return found


@pytest.mark.parametrize(
    ("n_ids", "lengths"),
    [
        (1, [1, 0, 1]),
        (2, [2, 1, 0]),
        (128, [128, 127, 64, 1]),
        (100_000, [0, 1, 2, 3, 63, 64, 65, 128, 0]),
        (2**31 - 1, [1, 5]),
        (40, [3] * (3 * GROUP + 1)),
        (5, []),
    ],
)
def test_lists_are_as_they_were(n_ids: int, lengths: list[int]) -> None:
    lists = (
        random_lists(n_ids, lengths)
        if n_ids < 1 << 20
        else [{0: 3}, {1: 0, 5: 15, 1 << 20: 1, (1 << 31) - 3: 2, (1 << 31) - 2: 9}]
    )
    length, data = packed(lists, n_ids)
    assert decoded(length, data, n_ids) == lists
    assert lists_fit(open_lists(length, data, n_ids), n_ids)


def test_long_lists_are_cut_to_the_highest_levels() -> None:
    """A length is a byte: of 1,000 entries about 5 % may be lost."""
    (full,) = random_lists(5000, [1000])
    length, data = packed([full], 5000)
    (kept,) = decoded(length, data, 5000)
    assert 950 <= len(kept) < 1000
    expected = sorted(full, key=lambda id: (-full[id], id))[: len(kept)]
    assert kept == {id: full[id] for id in sorted(expected)}


def test_damage_is_found() -> None:
    """Bits of upper parts that are missing, ids that are too large, that do not rise."""
    n_ids = 1000
    length, data = packed(random_lists(n_ids, [40, 3, 0, 130]), n_ids)
    assert not lists_fit(open_lists(length, np.zeros_like(data), n_ids), n_ids)
    assert not lists_fit(open_lists(length, np.full_like(data, 255), n_ids), n_ids)
    largest = max(max(each, default=0) for each in random_lists(n_ids, [40, 3, 0, 130]))
    assert not lists_fit(open_lists(length, data, n_ids), largest)
    random = np.random.default_rng(0)
    for _ in range(200):  # whatever they hold, nothing else is read
        lists_fit(open_lists(length, random.integers(0, 256, len(data)).astype(np.uint8), n_ids), n_ids)
