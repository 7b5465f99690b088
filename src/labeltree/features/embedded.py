"""Texts with dense vectors beside their words that a package makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.opening import Source
from labeltree.data.rows import Block, LabelRows, SparseRows
from labeltree.errors import CorruptedModelError, ModelFileError
from labeltree.features.embedding import EMBEDDERS
from labeltree.features.features import Features, Fitted, is_list
from labeltree.features.joined import Dense, JoinedFeatures, check_norm
from labeltree.features.splitting import texts_of
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.storage.space import IN_MEMORY, Space
from labeltree.storage.tensors import take_tensor

PROBE = "A text of nine words shows which weights are installed."
NO_PROBE: Dense = np.empty(0, np.float32)
_MOST_APART = 1e-3  # of the probe's length: another machine rounds otherwise


class EmbeddedFeatures(JoinedFeatures):
    """Texts, and beside their words vectors that a package makes of them.

    The vector of a fixed text, the probe, is kept: it shows whether a package still has the weights that the
    model was trained with.
    """

    input = "embedded"
    takes_texts, takes_pairs = True, False
    base: TextFeatures

    def __init__(self, config: Config, base: Features, n_dense: int, probe: Dense = NO_PROBE) -> None:
        super().__init__(config, base, n_dense)
        self.probe, self._is_checked = probe, False

    def facts(self) -> dict[str, str]:
        return self.base.facts()

    @classmethod
    def recognises(cls, X: Any) -> bool:
        return False  # they are texts; the config wants vectors of them

    @classmethod
    def content(cls, X: Any) -> Iterator[Block]:
        return TextFeatures.content(X)

    @classmethod
    def fit(
        cls,
        content: Iterable[Block],
        config: Config,
        bad_lines: BadLines | None = None,
        space: Space = IN_MEMORY,
    ) -> Fitted:
        check_norm(config)
        embedder, parts = EMBEDDERS[config.embed], list[Dense]()

        def watched() -> Iterator[Block]:
            for block in content:
                parts.append(embedder(texts_of(block, config)))
                yield block

        fitted = TextFeatures.fit(watched(), config, bad_lines, space)
        dense = np.concatenate([np.empty((0, embedder.length), np.float32), *parts])
        probe = embedder([PROBE])[0]
        return cls(config, fitted.features, embedder.length, probe)._with(fitted, dense)

    def embedded(self, texts: Sequence[str]) -> Dense:
        """By the package that is installed, if it still makes the vectors that it made for training."""
        embedder = EMBEDDERS[self.config.embed]
        if len(self.probe) and not self._is_checked:
            apart = float(np.linalg.norm(embedder([PROBE])[0] - self.probe))
            if not apart <= _MOST_APART * float(np.linalg.norm(self.probe)):
                raise ModelFileError(
                    f"the model was trained with other vectors than those that embed={embedder.name} makes "
                    "now: install the version of its package that was used then, or train again"
                )
            self._is_checked = True
        return embedder(texts)

    def given_rows(self, X: Any) -> SparseRows:
        if type(X) is SparseRows or is_sparse(X):
            return sparse_rows(X, self.n_columns)
        if is_list(X) and type(X) is not list:
            X = list(X)
        rows = self.base.given_rows(X)  # which checks X
        return self._join(rows, self.embedded(X))

    def single(self, X: Any) -> SparseRows:
        return self.given_rows([X] if isinstance(X, str) else X)

    def text_of(self, X: Any) -> str | None:
        return self.base.text_of(X)

    def read_single(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[Any]:
        return self.base.read_single(source, labels, fmt, bad_lines)

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        for block, rows, Y in self.base.read_blocks(source, labels, fmt, bad_lines):
            yield self._join(rows, self.embedded(texts_of(block, self.config))), Y

    def tensors(self) -> dict[str, NDArray]:
        return super().tensors() | {"features.probe": self.probe}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> EmbeddedFeatures:
        features = super().from_tensors(tensors, config)
        assert isinstance(features, cls)
        embedder = EMBEDDERS.get(config.embed)
        if embedder is None or features.n_dense != embedder.length:
            raise CorruptedModelError(
                f"features.n_dense is {features.n_dense}, but embed is {config.embed}, of another length"
            )
        if "features.probe" in tensors:
            features.probe = take_tensor(tensors, "features.probe", np.float32)
        if len(features.probe) not in (0, features.n_dense) or not np.all(np.isfinite(features.probe)):
            raise CorruptedModelError(f"features.probe is not {features.n_dense} finite numbers, or none")
        return features
