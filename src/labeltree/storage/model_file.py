"""What a model is made of, and how that is written to its file and read back."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree import __version__
from labeltree.config import BY_DATA, Config
from labeltree.errors import CorruptedModelError, ParameterError, show
from labeltree.experts.tree_search import Parameters
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures
from labeltree.nodes import KINDS
from labeltree.storage.card import check_card
from labeltree.storage.container import read_model, write_model
from labeltree.storage.tensors import take_tensor
from labeltree.tree import LabelTree

_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,64}")


class Parts(NamedTuple):
    """Everything that a model file holds."""

    config: Config
    features: TextFeatures | VectorFeatures
    labels: StringTable
    label_counts: NDArray[np.int64]  # (n_labels,) training rows of each label
    n_examples: int
    trees: Sequence[tuple[LabelTree, Parameters]]  # for each tree, all its kinds of nodes
    card: Mapping[str, str]
    version: str | None  # of the labeltree that wrote the file; older files do not say
    chosen: Mapping[str, Mapping[str, Any]]  # of each kind of nodes: what the data chose


def write_parts(path: str | Path, parts: Parts) -> None:
    """Write one file, completely or not at all, in the name of this version of labeltree."""
    data, offsets = parts.labels.tensors()
    tensors: dict[str, NDArray] = dict(parts.features.tensors())
    tensors |= {"labels.names": data, "labels.offsets": offsets, "labels.counts": parts.label_counts}
    for number, (tree, parameters) in enumerate(parts.trees):
        tensors |= tree.tensors(f"tree.{number}")
        tensors |= {f"nodes.{number}.{name}": array for name, array in parameters._asdict().items()}
    metadata = {
        "chosen": parts.chosen,
        "config": parts.config.to_dict(),
        "features": "vectors" if isinstance(parts.features, VectorFeatures) else "text",
        "n_examples": parts.n_examples,
        "n_trees": parts.config.trees,
        "card": check_card(parts.card),
        "version": __version__,
    }
    write_model(path, tensors, metadata)


def read_parts(path: str | Path, *, verify: bool = True) -> Parts:
    """The parts of a file, checked; their arrays stay on the disk until they are used."""
    tensors, metadata = read_model(path, verify=verify)
    try:
        return _assemble(tensors, metadata)
    except CorruptedModelError as error:
        raise CorruptedModelError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ParameterError) as error:
        raise CorruptedModelError(
            f"{path}: its contents do not make a model ({type(error).__name__}: {error}); train it again"
        ) from error


def parts_to_bytes(parts: Parts) -> bytes:
    """The content of the model file, for pickles."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        write_parts(path, parts)
        return path.read_bytes()


def parts_of_bytes(content: bytes) -> Parts:
    """The parts of a model file that is in memory."""
    # Where a mapped file cannot be removed (Windows) it stays until the system clears its temporary folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model"
        path.write_bytes(content)
        return read_parts(path)


def _assemble(tensors: dict[str, NDArray], metadata: dict[str, Any]) -> Parts:
    config = Config(**metadata["config"]).validate()
    kind = metadata["features"]
    if kind not in ("text", "vectors"):
        raise CorruptedModelError(f"unknown kind of features {show(kind)}")
    features: TextFeatures | VectorFeatures = (
        TextFeatures.from_tensors(tensors, config)
        if kind == "text"
        else VectorFeatures.from_tensors(tensors, config)
    )
    labels = StringTable.from_tensors(
        take_tensor(tensors, "labels.names", np.uint8),
        take_tensor(tensors, "labels.offsets", np.int64),
        "labels.names",
    )
    counts = take_tensor(tensors, "labels.counts", np.int64)
    n_examples, n_trees = metadata["n_examples"], metadata["n_trees"]
    if type(n_trees) is not int or n_trees != config.trees:
        raise CorruptedModelError(f"n_trees is {show(n_trees)}, but the config has {config.trees} trees")
    if len(counts) != len(labels) or len(labels) == 0 or counts.min() < 0:
        raise CorruptedModelError(f"labels.counts does not give {len(labels)} counts")
    if type(n_examples) is not int or not counts.max() <= n_examples < 1 << 63:
        raise CorruptedModelError(
            f"n_examples is {show(n_examples)}, but a label has {counts.max()} examples"
        )
    trees: list[tuple[LabelTree, Parameters]] = []
    for number, kind in enumerate(n_trees * KINDS.parts_of(config.nodes)):
        tree = LabelTree.from_tensors(tensors, f"tree.{number}")
        if tree.n_labels != len(labels):
            raise CorruptedModelError(f"tree.{number} has {tree.n_labels} labels instead of {len(labels)}")
        taken = KINDS[kind].take(tensors, f"nodes.{number}", tree, features.n_columns, config)
        trees.append((tree, taken))
    card, version = check_card(metadata.get("card", {})), metadata.get("version")
    if version is not None and not (isinstance(version, str) and _VERSION.fullmatch(version)):
        raise CorruptedModelError(f"version is {show(version)}, which is none of labeltree")
    chosen = _take_chosen(metadata, config)
    return Parts(config, features, labels, counts, n_examples, trees, card, version, chosen)


def _take_chosen(metadata: dict[str, Any], config: Config) -> dict[str, dict[str, Any]]:
    """What the data chose for each kind of nodes, where the config leaves it to the data by a 0."""
    chosen = metadata.get("chosen", {})  # older files do not have it
    if not isinstance(chosen, dict):
        raise CorruptedModelError(f"chosen is {show(chosen)}, but must be an object by kinds of nodes")
    left_to_data = {name for name in BY_DATA if not getattr(config, name)}
    for kind, values in chosen.items():
        told = f"chosen has {show(kind)}: {show(values)}"
        if (
            kind not in KINDS.parts_of(config.nodes)
            or not isinstance(values, dict)
            or not set(values) <= left_to_data
        ):
            raise CorruptedModelError(f"{told}, which this config does not leave to the data")
        dataclasses.replace(config, **values).validate()
        if not all(values.values()):
            raise CorruptedModelError(f"{told}, but what is chosen is above 0")
    return chosen
