"""Labels in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from labeltree.data.labels import label_rows
from labeltree.data.rows import LabelRows
from labeltree.errors import DataError


def lists(rows: LabelRows) -> list[list[int]]:
    assert [array.dtype for array in rows[:2]] == [np.int64, np.int32]
    return [rows.indices[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]


@pytest.mark.parametrize(
    ("Y", "expected", "names"),
    [
        ([["b", "a"], [], ["a", "c"]], [[0, 1], [], [1, 2]], ["b", "a", "c"]),
        ([[7, 3], (3,), np.array([7])], [[0, 1], [1], [0]], ["7", "3"]),
        ([np.array(["x", "y"]), {"y", "x"}], [[0, 1], [0, 1]], ["x", "y"]),
        ([["a", "a", "b", "a"]], [[0, 1]], ["a", "b"]),
        ([[1, "1"]], [[0]], ["1"]),
        (np.array([["a", "b"], ["b", "c"]]), [[0, 1], [1, 2]], ["a", "b", "c"]),
        ([[], []], [[], []], []),
        ([], [], []),
    ],
)
def test_lists_of_labels_are_numbered_as_they_appear(
    Y: Any, expected: list[list[int]], names: list[str]
) -> None:
    rows, found = label_rows(Y)
    assert lists(rows) == expected
    assert found == names
    assert rows.n_labels == len(names)
    assert all(type(name) is str for name in found)


def test_sets_do_not_depend_on_the_order_of_hashes() -> None:
    names = [f"name{number}" for number in range(50)]
    assert label_rows([set(names)])[1] == sorted(names)


def test_labels_a_model_does_not_know_are_counted_as_unknown() -> None:
    rows, names = label_rows([["b", "new", "newer", "a", "new"], ["a"]], ["a", "b"])
    assert lists(rows) == [[-1, -1, -1, 0, 1], [0]]
    assert names == ["a", "b"]
    assert rows.n_labels == 2


INDICATOR = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_array, np.array, lambda Y: Y.astype(bool)])
def test_indicator_matrices(convert: Any) -> None:
    rows, names = label_rows(convert(INDICATOR), n_rows=3)
    assert lists(rows) == [[1, 2], [], [0]]
    assert names == ["0", "1", "2"]
    assert label_rows(convert(INDICATOR), ["x", "y", "z"])[1] == ["x", "y", "z"]


def test_explicit_zeros_of_an_indicator_are_no_labels() -> None:
    Y = sp.csr_matrix((np.array([1, 0, 1]), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 3))
    assert lists(label_rows(Y)[0]) == [[0], [2]]


@pytest.mark.parametrize(
    ("Y", "reason"),
    [
        ("abc", "Y must be a list of lists of labels"),
        (None, "Y must be a list of lists of labels"),
        ([["a"], "abc"], r"Y, row 1: 'abc' is not a list of labels; wrap it in a list: \['abc'\]"),
        ([["a"], 3], r"Y, row 1: 3 is not a list of labels; wrap it in a list: \[3\]"),
        (np.array([1, 2]), "Y, row 0: .*1.* is not a list of labels"),
        ([["a"], None], r"Y, row 1: None instead of a list of labels; a row without labels is \[\]"),
        ([{"a": 1}], "Y, row 0: a dict"),
        ([["a", 1.5]], "Y, row 0: a label must be a string or an integer, but 1.5 is of type float"),
        ([["a"], [True]], "Y, row 1: a label must be .* bool"),
        ([[np.True_]], "Y, row 0: a label must be .* bool"),
        ([[b"a"]], "Y, row 0: a label must be .* bytes"),
        ([[None]], "Y, row 0: a label must be .* NoneType"),
        ([[["a"]]], "Y, row 0: a label must be .* list"),
        ([[""]], "Y, row 0: a label is empty"),
        (
            np.array([[0, 2], [1, 0]]),
            "Y, row 0, column 1: a matrix of labels has only 0 and 1, but this is 2",
        ),
        (sp.csr_matrix([[0, 1], [0.5, 0]]), "Y, row 1, column 0: .* is 0.5"),
        (np.array([[0, np.nan]]), "Y, row 0, column 1: the value is nan"),
        ([["ok"], ["\ud800"]], "Y: label '.ud800' is not valid Unicode"),
        ([np.array(3)], "Y, row 0: .* is not a list of labels"),
    ],
)
def test_bad_labels_are_named(Y: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        label_rows(Y)


def test_sizes_must_fit() -> None:
    with pytest.raises(DataError, match="X has 2 rows, but Y has 3"):
        label_rows(INDICATOR, n_rows=2)
    with pytest.raises(DataError, match="X has 2 rows, but Y has 1"):
        label_rows([["a"]], n_rows=2)
    with pytest.raises(DataError, match="Y has 3 columns, but there are 2 labels"):
        label_rows(INDICATOR, ["a", "b"])


@pytest.mark.parametrize("Y", [[["a"], ["b"], ["a"]], INDICATOR], ids=["lists", "indicator"])
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("abc", "label_names must be a list of strings, but is 'abc'"),
        (7, "label_names must be a list of strings"),
        ({"a", "b", "c"}, "label_names must be a list of strings"),
        (["a", "b", 3], "label_names, number 2: must be a string .* but is 3"),
        ([0, 1, 2], "label_names, number 0: must be a string"),
        (np.arange(3), "label_names, number 0: must be a string"),
        (["a", "", "b"], "label_names, number 1: must be a string that is not empty"),
        (["a", "b", "a"], "label_names, numbers 0 and 2: both are 'a'"),
        (["a", "b", "\ud800"], "label_names: label '.ud800' is not valid Unicode"),
    ],
)
def test_bad_names_are_named(Y: Any, names: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        label_rows(Y, names)


def test_names_of_numpy_are_names() -> None:
    _, names = label_rows(INDICATOR, np.array(["x", "y", "z"]))
    assert names == ["x", "y", "z"]
    assert all(type(name) is str for name in names)
