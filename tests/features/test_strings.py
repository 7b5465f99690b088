"""Tables of strings: ids, growth, tensors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeltree.errors import CorruptedModelError, DataError
from labeltree.features.strings import StringTable, pack_strings

strings = st.lists(st.binary(max_size=20), max_size=60)


@given(strings, strings)
def test_ids_are_those_of_a_dict(inserted: list[bytes], asked: list[bytes]) -> None:
    table = StringTable(1, 1)
    ids = table.insert(pack_strings(inserted), len(inserted))
    expected: dict[bytes, int] = {}
    assert ids.tolist() == [expected.setdefault(string, len(expected)) for string in inserted]
    assert len(table) == len(expected)
    assert table.ids(asked).tolist() == [expected.get(string, -1) for string in asked]


def test_grows_over_many_insertions() -> None:
    names = [f"name {k}" * (1 + k % 5) for k in range(5000)]
    table = StringTable(1, 1)
    for start in range(0, len(names), 700):
        part = names[start : start + 700] + names[:3]
        ids = table.insert(pack_strings(part), len(part))
        assert ids[-3:].tolist() == [0, 1, 2]
    assert table.strings() == names
    assert 2 * len(table) <= len(table.arrays.slots)


def test_strings_that_differ_in_length_only() -> None:
    names = [b"a" * k for k in range(40)] + [b"a\0", b"a\0\0", b"\0"]
    table = StringTable.from_strings(names)
    assert table.ids(names).tolist() == list(range(len(names)))


@pytest.mark.parametrize("name", ["y", "x\0", "", "x" * 8, "x" * 9])
def test_equal_hashes_do_no_harm(name: str) -> None:
    table = StringTable(1, 4)
    assert table.insert(pack_strings(["x"]), 1).tolist() == [0]
    assert table.ids(["y", "x", "z", ""]).tolist() == [-1, 0, -1, -1]
    forged = pack_strings([name])
    forged.hashes[:] = table.arrays.hashes[0]
    assert table.find(forged, 1).tolist() == [-1]
    assert table.insert(forged, 1).tolist() == [1]
    assert table.strings() == ["x", name]


def test_items_and_bounds() -> None:
    table = StringTable.from_strings(["alpha", "βήτα", ""])
    assert [table[k] for k in range(3)] == ["alpha", "βήτα", ""]
    for k in (-1, 3):
        with pytest.raises(IndexError, match=f"string {k} of a table of 3"):
            table[k]


def test_select_renumbers() -> None:
    table = StringTable.from_strings(["a", "b", "c"]).select(np.array([2, 0]))
    assert table.strings() == ["c", "a"]
    assert table.ids(["a", "b", "c"]).tolist() == [1, -1, 0]


def test_a_listed_string_twice_is_an_error() -> None:
    with pytest.raises(DataError, match="string 2 is the same as string 0 \\('a'\\)"):
        StringTable.from_strings(["a", "b", "a"])


@given(st.lists(st.text(max_size=12), unique=True, max_size=40))
def test_tensors_round_trip(names: list[str]) -> None:
    names = [name for name in names if name.isprintable()]
    table = StringTable.from_strings(names)
    again = StringTable.from_tensors(*table.tensors())
    assert again.strings() == names
    assert again.ids(names).tolist() == list(range(len(names)))


DATA = np.frombuffer(b"ab\xc3\xa9", np.uint8)


@pytest.mark.parametrize(
    ("data", "offsets", "message"),
    [
        (DATA, [0, 2], "do not rise from 0"),
        (DATA, [1, 4], "do not rise from 0"),
        (DATA, [0, 3, 2, 4], "do not rise from 0"),
        (DATA, [0, 9, 4], "do not rise from 0"),
        (DATA, [], "do not rise from 0"),
        (DATA, [0, 3, 4], "not valid UTF-8"),
        (np.frombuffer(b"a\xff", np.uint8), [0, 2], "not valid UTF-8"),
        (np.frombuffer(b"aba", np.uint8), [0, 1, 2, 3], "string 2 is the same as string 0"),
        (DATA.astype(np.int8), [0, 4], "expected bytes"),
    ],
)
def test_corrupted_tensors_are_refused(data: np.ndarray, offsets: list[int], message: str) -> None:
    with pytest.raises(CorruptedModelError, match=message) as error:
        StringTable.from_tensors(data, np.array(offsets, np.int64), "labels")
    assert str(error.value).startswith("labels: ")
