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
from labeltree.config import BY_DATA, Config, parameters
from labeltree.decisions.rule import Rule, rule_from_saved
from labeltree.errors import CorruptedModelError, ModelFileError, NewerModelError, ParameterError, show
from labeltree.experts import EXPERTS
from labeltree.experts.combination import Combination
from labeltree.experts.expert import Expert, Saved
from labeltree.features import FEATURES
from labeltree.features.features import Features
from labeltree.features.strings import StringTable
from labeltree.storage.card import check_card
from labeltree.storage.container import read_model, write_model
from labeltree.storage.tensors import take_kind, take_tensor
from labeltree.storage.upgrade import upgrade

_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,64}")


class Parts(NamedTuple):
    """Everything that a model file holds."""

    config: Config
    features: Features
    labels: StringTable
    label_counts: NDArray[np.int64]  # (n_labels,) training rows of each label
    n_examples: int
    experts: Sequence[Expert]
    combination: Combination
    card: Mapping[str, str]
    version: str | None  # of the labeltree that wrote the file; older files do not say
    rule: Rule | None = None  # that the model was tuned with


def write_parts(path: str | Path, parts: Parts) -> None:
    """Write one file, completely or not at all, in the name of this version of labeltree."""
    tensors = parts.features.tensors() | _label_tensors(parts)
    experts = []
    weights = parts.combination.weights.tolist()
    for number, (expert, weight) in enumerate(zip(parts.experts, weights, strict=True)):
        tensors |= expert.tensors(number)
        own = {"kind": expert.kind, "number": number, "weight": weight, "config": dict(expert.chosen)}
        experts.append(expert.metadata() | own)
    metadata = {
        "config": parts.config.to_dict(),
        "experts": experts,
        "map": parts.combination.map.tolist(),
        "features": parts.features.input,
        "n_examples": parts.n_examples,
        "card": check_card(parts.card),
        **({} if parts.rule is None else {"rule": parts.rule.metadata()}),
        "version": __version__,
    }
    if parts.rule is not None:
        tensors |= parts.rule.tensors()
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
    features = take_kind(FEATURES, metadata["features"], "features").from_tensors(tensors, config)
    labels, counts = _take_labels(tensors, metadata["n_examples"])
    experts = [
        _take_expert(Saved(tensors, entry["number"], entry, config, features.n_columns, len(labels)))
        for entry in _take_entries(metadata["experts"])
    ]
    weights = [entry["weight"] for entry in metadata["experts"]]
    combination = Combination.from_saved(weights, metadata["map"])
    card, version = check_card(metadata.get("card", {})), metadata.get("version")
    if version is not None and not (isinstance(version, str) and _VERSION.fullmatch(version)):
        raise CorruptedModelError(f"version is {show(version)}, which is none of labeltree")
    return Parts(
        config=config, features=features, labels=labels, label_counts=counts,
        n_examples=metadata["n_examples"], experts=experts, combination=combination, card=card,
        version=version, rule=rule_from_saved(metadata.get("rule"), tensors, len(labels)),
    )  # fmt: skip


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


def _take_entries(entries: Any) -> list[dict[str, Any]]:
    """What the file says of each expert; no two have the same number, so that tensors bound how many."""
    if not isinstance(entries, list) or not entries:
        raise CorruptedModelError(f"experts is {show(entries)}, but must be a list of at least one")
    numbers = set()
    for entry in entries:
        number = entry["number"]
        if type(number) is not int or not 0 <= number < 1 << 31 or number in numbers:
            raise CorruptedModelError(
                f"the number of an expert is {show(number)}, but each has its own from 0"
            )
        numbers.add(number)
    return entries


def _take_expert(saved: Saved) -> Expert:
    chosen = _take_chosen(saved)
    own = saved._replace(config=dataclasses.replace(saved.config, **chosen).validate())
    expert = take_kind(EXPERTS, saved.metadata["kind"], "expert").from_saved(own)
    expert.chosen = chosen
    return expert


def _take_chosen(saved: Saved) -> dict[str, Any]:
    """What the data chose for an expert, where the config leaves it to the data by a 0."""
    chosen = saved.metadata["config"]
    told = f"expert {saved.number} has config {show(chosen)}"
    left_to_data = {name for name in BY_DATA if not getattr(saved.config, name)}
    if not isinstance(chosen, dict) or not set(chosen) <= left_to_data:
        raise CorruptedModelError(f"{told}, which the model's config does not leave to the data")
    if not all(chosen.values()):
        raise CorruptedModelError(f"{told}, but what is chosen is above 0")
    return chosen
