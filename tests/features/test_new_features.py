"""A new kind of features is a class and a line in the table: training, reading and files take it then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import labeltree
from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import FORMATS, Format
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, pointers
from labeltree.errors import ParameterError
from labeltree.features import FEATURES
from labeltree.features.features import Features, Fitted
from labeltree.features.strings import StringTable
from labeltree.kernels.text.rows import NORM_NONE
from labeltree.storage.space import IN_MEMORY, Space

Content = list[tuple[bytes, bytes]]  # a label, or nothing, and the bytes of a row


class ByteFeatures(Features):
    """Rows are bytes; each that occurs is a feature."""

    input = "bytes"
    norm_of_rows = NORM_NONE
    n_columns = 256

    def __init__(self, config: Config) -> None:
        self.config = config

    @classmethod
    def recognises(cls, X: Any) -> bool:
        return isinstance(X, list) and all(isinstance(row, bytes) for row in X)

    @classmethod
    def content(cls, X: Any) -> Content:
        return [(b"", row) for row in X]

    @classmethod
    def fit(
        cls,
        content: Content,
        config: Config,
        bad_lines: BadLines | None = None,
        space: Space = IN_MEMORY,
    ) -> Fitted:
        labels = StringTable.from_strings(sorted({label.decode() for label, _ in content if label}))
        return Fitted(cls(config), labels, _rows(content), _labels(content, labels))

    def given_rows(self, X: Any) -> SparseRows:
        return _rows(self.content(X)) if self.recognises(X) else X

    def prepared(self, rows: SparseRows) -> SparseRows:
        return rows

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        content = FORMATS["hex"].content(source, bad_lines)
        yield _rows(content), _labels(content, labels)

    def tensors(self) -> dict[str, NDArray]:
        return {}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> ByteFeatures:
        return cls(config)


def _rows(content: Content) -> SparseRows:
    found = [sorted(set(row)) for _, row in content]
    indices = np.array([byte for row in found for byte in row], np.int32)
    return SparseRows(pointers([len(row) for row in found]), indices, np.ones(len(indices), np.float32), 256)


def _labels(content: Content, labels: StringTable) -> LabelRows:
    ids = labels.ids([label.decode() for label, _ in content if label])
    return LabelRows(pointers([bool(label) for label, _ in content]), ids, len(labels))


class Hex(Format):
    """``label:6f6e65``"""

    name = "hex"
    input = "bytes"
    extensions = (".hex",)
    example = "a:6f6e65\nb:74776f\n"

    def begins(self, line: bytes) -> bool:
        return False

    def where_labels_are(self, label_prefix: str) -> str:
        return "labels are what is before the colon"

    def content(
        self, source: Source, bad_lines: BadLines, n_columns: int | None = None, n_labels: int | None = None
    ) -> Content:
        lines = b"".join(block.tobytes() for block in source.blocks(1 << 16)).split()
        parts = [line.partition(b":") for line in lines]
        return [(label, bytes.fromhex(row.decode())) for label, _, row in parts]


WORDS = {"one": b"abc", "two": b"cde", "three": b"xyz"}
Y = [[label] for label in WORDS] * 20
X = [WORDS[label] for [label] in Y]


@pytest.fixture(autouse=True)
def added() -> Iterator[None]:
    FEATURES.add("bytes", ByteFeatures)
    FORMATS.add("hex", Hex())
    yield
    FEATURES.remove("bytes")
    FORMATS.remove("hex")


def answers(model: labeltree.Model) -> Sequence[str]:
    return [row[0][0] for row in model.predict(list(WORDS.values()), 1)]


def test_memory_files_and_models_take_it(tmp_path: Path) -> None:
    in_memory = labeltree.train(X, Y)
    data, file = tmp_path / "data.hex", tmp_path / "model"
    data.write_text("".join(f"{label}:{row.hex()}\n" for [label], row in zip(Y, X, strict=True)))
    of_file = labeltree.train(data)
    of_file.save(file)
    loaded = labeltree.load(file)
    for model in (in_memory, of_file, loaded):
        assert model.inspect()["input"] == "bytes"
        assert answers(model) == list(WORDS)
    assert loaded.test(data)["p@1"] == 1.0


def test_parameters_of_text_have_no_effect_on_it() -> None:
    with pytest.raises(ParameterError, match="min_count=2 has no effect where input is bytes: it needs"):
        labeltree.train(X, Y, min_count=2)
