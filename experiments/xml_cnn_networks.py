"""Convolutional networks over words: Kim (2014), and XML-CNN (Liu et al., 2017) in two readings.

Both have windows of several widths over the vectors of a text's words. Kim's keeps the largest value of each
map; XML-CNN the largest of each of a few parts of it (dynamic pooling), and has a hidden layer behind. The
code that was released with XML-CNN takes the places of words for channels and lets the windows go along the
numbers of a word's vector ("published"); the paper's text describes windows along words ("corrected").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from labeltree.torch import PLTHead

PADDING = 0  # the id of no word


class Settings(NamedTuple):
    """Those of all runs; widths and dropouts are the papers'. Only the step is chosen, on held-out rows."""

    dim: int = 128  # of random word vectors; given ones have their own
    length: int = 200  # words of a text
    maps: int = 128
    windows: tuple[int, ...] = (2, 4, 8)
    parts: int = 2  # of a map, in dynamic pooling
    hidden: int = 512
    kim_maps: int = 100
    kim_windows: tuple[int, ...] = (3, 4, 5)
    word_dropout: float = 0.25
    dropout: float = 0.5
    rates: tuple[float, ...] = (0.001, 0.003, 0.01)  # steps of Adam: the best one after ...
    trial_epochs: int = 3  # ... so many passes over ...
    trial_rows: int = 10_000  # ... so many rows at most
    batch: int = 64
    epochs: int = 60  # at most
    patience: int = 3  # epochs without a better one on held-out rows


class Encoder(nn.Module):
    """Numbers of words (n_rows, length) to vectors (n_rows, out_features)."""

    out_features: int

    def __init__(self, vectors: Tensor, settings: Settings) -> None:
        super().__init__()
        # Sparse gradients: a batch has few of the words.
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=PADDING, sparse=True)
        self.settings = settings

    @property
    def shortest(self) -> int:
        """As many words as the widest window and the pooling need."""
        return 16

    def embed(self, words: Tensor) -> Tensor:
        """(n_rows, length, dim)"""
        return functional.dropout(self.words(words), self.settings.word_dropout, self.training)


class KimCNN(Encoder):
    def __init__(self, vectors: Tensor, settings: Settings) -> None:
        super().__init__(vectors, settings)
        size, maps = vectors.shape[1], settings.kim_maps
        self.windows = nn.ModuleList(nn.Conv1d(size, maps, width) for width in settings.kim_windows)
        self.out_features = maps * len(self.windows)

    def forward(self, words: Tensor) -> Tensor:
        rows = self.embed(words).transpose(1, 2)
        found = torch.cat([window(rows).amax(dim=2) for window in self.windows], dim=1)
        return functional.dropout(functional.relu(found), self.settings.dropout, self.training)


class CorrectedXMLCNN(Encoder):
    """Windows along words."""

    def __init__(self, vectors: Tensor, settings: Settings) -> None:
        super().__init__(vectors, settings)
        channels = self.n_channels(vectors.shape[1])
        self.windows = nn.ModuleList(
            nn.Conv1d(channels, settings.maps, width, stride=2) for width in settings.windows
        )
        self.hidden = nn.Linear(settings.maps * settings.parts * len(self.windows), settings.hidden)
        self.out_features = settings.hidden

    def n_channels(self, dim: int) -> int:
        return dim

    def rows(self, words: Tensor) -> Tensor:
        """(n_rows, channels, places)"""
        return self.embed(words).transpose(1, 2)

    def forward(self, words: Tensor) -> Tensor:
        rows, parts = self.rows(words), self.settings.parts
        pooled = [functional.adaptive_max_pool1d(window(rows), parts) for window in self.windows]
        found = functional.relu(self.hidden(functional.relu(torch.cat(pooled, dim=1)).flatten(1)))
        return functional.dropout(found, self.settings.dropout, self.training)


class PublishedXMLCNN(CorrectedXMLCNN):
    """Windows along the numbers of word vectors: a place in the text is a channel, so all have one length."""

    def n_channels(self, dim: int) -> int:
        return self.settings.length

    @property
    def shortest(self) -> int:
        return self.settings.length

    def rows(self, words: Tensor) -> Tensor:
        return self.embed(words)


class FlatHead(nn.Linear):
    """A sigmoid for each label."""

    def loss(self, h: Tensor, labels: list[np.ndarray]) -> Tensor:
        target = torch.zeros(len(h), self.out_features)
        rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
        target[torch.from_numpy(rows), torch.from_numpy(np.concatenate(labels).astype(np.int64))] = 1.0
        return functional.binary_cross_entropy_with_logits(self(h), target, reduction="sum") / len(h)

    def best(self, h: Tensor, k: int) -> np.ndarray:
        return torch.topk(self(h), k).indices.numpy()


class TreeHead(nn.Module):
    """A label tree."""

    def __init__(self, head: PLTHead) -> None:
        super().__init__()
        self.head = head

    def loss(self, h: Tensor, labels: list[np.ndarray]) -> Tensor:
        return self.head(h, labels).loss

    def best(self, h: Tensor, k: int) -> np.ndarray:
        return self.head.predict(h, k, threads=1)[0].numpy()


ENCODERS: dict[str, type[Encoder]] = {
    "Kim-CNN": KimCNN,
    "XML-CNN, published": PublishedXMLCNN,
    "XML-CNN, corrected": CorrectedXMLCNN,
}
OUTPUTS = ("flat", "plt")


class Network(nn.Module):
    """An encoder and its output layer."""

    def __init__(self, encoder: Encoder, output: Any) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output

    def optimizers(self, rate: float) -> list[torch.optim.Optimizer]:
        """One for parameters whose gradients are sparse, one for the others."""
        sparse = [self.encoder.words.weight]
        if isinstance(self.output, TreeHead):
            sparse += list(self.output.parameters())
        numbers = {id(parameter) for parameter in sparse}
        dense = [parameter for parameter in self.parameters() if id(parameter) not in numbers]
        return [torch.optim.SparseAdam(sparse, lr=rate), torch.optim.Adam(dense, lr=rate)]
