"""What is taken from a model file is of the expected kind, or told with its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labeltree.errors import CorruptedModelError, NewerModelError
from labeltree.storage.tensors import take_kind, take_tensor
from labeltree.table import Entry, Table

TENSORS = {"list": np.zeros(3, np.int32), "pairs": np.zeros((4, 2), np.float32), "one": np.array(1.0)}
TABLE: Table[Any] = Table(
    near=Entry("errors:LabelTreeError"), far=Entry("errors:DataError"), all=Entry(parts=("near", "far"))
)


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("list", np.int32, (None,)),
        ("list", np.int32, (3,)),
        ("pairs", np.float32, (None, 2)),
        ("pairs", np.float32, (4, None)),
        ("pairs", np.float32, (None, None)),
        ("one", np.float64, ()),
    ],
)
def test_a_tensor_of_the_shape(name: str, dtype: Any, shape: tuple[int | None, ...]) -> None:
    assert take_tensor(TENSORS, name, dtype, shape) is TENSORS[name]


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "message"),
    [
        ("none", np.int32, (None,), "none is missing"),
        ("list", np.int64, (None,), "list should be a list of int64, but is int32 (3,)"),
        ("list", np.int32, (4,), "list should be int32 (4), but is int32 (3,)"),
        ("list", np.int32, (None, 2), "list should be int32 (any, 2), but is int32 (3,)"),
        ("pairs", np.float32, (None, 3), "pairs should be float32 (any, 3), but is float32 (4, 2)"),
        ("pairs", np.float32, (None,), "pairs should be a list of float32, but is float32 (4, 2)"),
        ("one", np.float64, (None,), "one should be a list of float64, but is float64 ()"),
    ],
)
def test_other_tensors_are_refused(
    name: str, dtype: Any, shape: tuple[int | None, ...], message: str
) -> None:
    with pytest.raises(CorruptedModelError) as caught:
        take_tensor(TENSORS, name, dtype, shape)
    assert str(caught.value) == message


def test_kinds() -> None:
    assert take_kind(TABLE, "far", "place") is TABLE["far"]
    for unknown in ("all", "beyond"):  # a name for several is no kind
        with pytest.raises(NewerModelError) as caught:
            take_kind(TABLE, unknown, "place")
        assert str(caught.value) == (
            f"the kind of place '{unknown}' is unknown: this version of labeltree has near, far; "
            "install a newer labeltree"
        )
    for wrong in (None, 3, ["near"], {}):
        with pytest.raises(CorruptedModelError, match="must be a name"):
            take_kind(TABLE, wrong, "place")
