"""What a model is made of, and how that is written to its file and read back."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree import __version__
from labeltree.config import Config, parameters
from labeltree.errors import CorruptedModelError, ModelFileError, NewerModelError, ParameterError, show
from labeltree.experts.tree_search import Parameters
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures
from labeltree.nodes import LINKS
from labeltree.nodes.defaults import CHOSEN
from labeltree.nodes.dense.quantized import QuantizedParameters
from labeltree.nodes.dense.tensors import take as take_dense
from labeltree.nodes.sparse.tensors import take as take_sparse
from labeltree.storage.card import check_card
from labeltree.storage.container import read_model, write_model
from labeltree.storage.tensors import take_kind, take_tensor
from labeltree.storage.upgrade import upgrade
from labeltree.tree import LabelTree

_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,64}")
_FEATURES: dict[str, type[TextFeatures | VectorFeatures]] = {"text": TextFeatures, "vectors": VectorFeatures}
_NODES: dict[str, Callable[..., Parameters]] = {"dense": take_dense, "sparse": take_sparse}


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
    tensors = parts.features.tensors() | _label_tensors(parts)
    experts = []
    for number, (tree, weights) in enumerate(parts.trees):
        tensors |= tree.tensors(f"tree.{number}")
        tensors |= {f"nodes.{number}.{name}": array for name, array in weights._asdict().items()}
        nodes = "dense" if isinstance(weights, QuantizedParameters) else "sparse"
        own = {"nodes": nodes, "link": parts.config.link, "config": parts.chosen.get(nodes, {})}
        experts.append({"kind": "tree", "number": number, **own})
    metadata = {
        "config": parts.config.to_dict(),
        "experts": experts,
        "features": "vectors" if isinstance(parts.features, VectorFeatures) else "text",
        "n_examples": parts.n_examples,
        "card": check_card(parts.card),
        "version": __version__,
    }
    write_model(path, tensors, metadata)


def read_parts(path: str | Path, *, verify: bool = True) -> Parts:
    """The parts of a file, checked; their arrays stay on the disk until they are used."""
    tensors, metadata = read_model(path, verify=verify)
    try:
        return _assemble(tensors, upgrade(metadata))
    except ModelFileError as error:
        raise type(error)(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ParameterError) as error:
        raise CorruptedModelError(
            f"{path}: its contents do not make a model ({type(error).__name__}: {error}); train it again, "
            "or install a newer labeltree"
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
    config = _take_config(metadata["config"])
    features: TextFeatures | VectorFeatures
    features = take_kind(_FEATURES, metadata["features"], "features").from_tensors(tensors, config)
    labels, counts = _take_labels(tensors, metadata["n_examples"])
    trees: list[tuple[LabelTree, Parameters]] = []
    chosen: dict[str, dict[str, Any]] = {}
    for expert in _take_experts(metadata["experts"]):
        number, nodes = expert["number"], expert["nodes"]
        take_kind({"tree": LabelTree}, expert["kind"], "expert")
        take_kind(LINKS, expert["link"], "link")
        take = take_kind(_NODES, nodes, "nodes")
        tree = LabelTree.from_tensors(tensors, f"tree.{number}")
        if tree.n_labels != len(labels):
            raise CorruptedModelError(f"tree.{number} has {tree.n_labels} labels instead of {len(labels)}")
        trees.append((tree, take(tensors, f"nodes.{number}", tree, features.n_columns, config.link)))
        chosen[nodes] = _take_chosen(expert, config)
    card, version = check_card(metadata.get("card", {})), metadata.get("version")
    if version is not None and not (isinstance(version, str) and _VERSION.fullmatch(version)):
        raise CorruptedModelError(f"version is {show(version)}, which is none of labeltree")
    return Parts(config, features, labels, counts, metadata["n_examples"], trees, card, version, chosen)


def _take_config(values: dict[str, Any]) -> Config:
    """Every parameter as the file has it: none gets the default of the day."""
    names = [parameter.name for parameter in parameters()]
    for name in values:
        if name not in names:
            raise NewerModelError(f"config has the unknown parameter {show(name)}; install a newer labeltree")
    for name in names:
        if name not in values:
            raise CorruptedModelError(f"config has no {name}")
    return Config(**values).validate()


def _label_tensors(parts: Parts) -> dict[str, NDArray]:
    names, offsets = parts.labels.tensors()
    return {"labels.names": names, "labels.offsets": offsets, "labels.counts": parts.label_counts}


def _take_labels(tensors: Mapping[str, NDArray], n_examples: Any) -> tuple[StringTable, NDArray[np.int64]]:
    """The labels, and the training rows of each, which are no more than all."""
    labels = StringTable.from_tensors(
        take_tensor(tensors, "labels.names", np.uint8),
        take_tensor(tensors, "labels.offsets", np.int64),
        "labels.names",
    )
    counts = take_tensor(tensors, "labels.counts", np.int64)
    if len(counts) != len(labels) or len(labels) == 0 or counts.min() < 0:
        raise CorruptedModelError(f"labels.counts does not give {len(labels)} counts")
    if type(n_examples) is not int or not counts.max() <= n_examples < 1 << 63:
        raise CorruptedModelError(
            f"n_examples is {show(n_examples)}, but a label has {counts.max()} examples"
        )
    return labels, counts


def _take_experts(experts: Any) -> list[dict[str, Any]]:
    """What the file says of each expert; no two have the same number, so that tensors bound how many."""
    if not isinstance(experts, list) or not experts:
        raise CorruptedModelError(f"experts is {show(experts)}, but must be a list of at least one")
    numbers = set()
    for expert in experts:
        number = expert["number"]
        if type(number) is not int or number < 0 or number in numbers:
            raise CorruptedModelError(
                f"the number of an expert is {show(number)}, but each has its own from 0"
            )
        numbers.add(number)
    return experts


def _take_chosen(expert: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """What the data chose for an expert, where the config leaves it to the data by a 0."""
    chosen = expert["config"]
    told = f"expert {expert['number']} has config {show(chosen)}"
    left_to_data = {name for name in CHOSEN if not getattr(config, name)}
    if not isinstance(chosen, dict) or not set(chosen) <= left_to_data:
        raise CorruptedModelError(f"{told}, which the model's config does not leave to the data")
    dataclasses.replace(config, **chosen).validate()
    if not all(chosen.values()):
        raise CorruptedModelError(f"{told}, but what is chosen is above 0")
    return chosen
