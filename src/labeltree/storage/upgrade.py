"""The metadata of earlier model files in the present version of the format.

A file means for ever what it meant when it was written, whatever becomes of the parameters. It holds the
value of each, so a new default changes nothing. What is frozen here:

- A parameter is added: files without it were trained as some value of it says. :data:`ADDED` has that value,
  under the present version.
- A parameter is renamed or removed, takes fewer values, or anything else means something new: the version
  rises, and a function in :data:`UPGRADES` makes the new metadata from that of the version before. Parameters
  are in ``config`` and, as the data chose them, in that of each expert.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labeltree.errors import CorruptedModelError, show

Metadata = dict[str, Any]

# For each version of the format: parameters that its first files lack, and what these files mean. Lines are
# added for the present version, and none is ever changed.
ADDED: dict[int, dict[str, Any]] = {
    1: dict(
        balanced=True,
        collapse=0,
        profiles="features",
        solver="dual",
        loss="squared-hinge",
        C=0.0,
        positive_weight=1.0,
        rare_weight=30.0,
        l1=0.0,
        bias=0.2,
        tolerance=0.05,
        max_iterations=20,
        prune=0.1,
        eta=2.0,
        eta_power=0.5,
    ),
    2: dict(
        calibrate=True,
        tokens="spaces",
        neighbours=0,
        char_weight=0.0,
        char_ngrams=4,
        pair_weight=0.0,
        min_rows=2,
        strongest=0,
    ),
    3: dict(),
    4: dict(
        forest=0,
        forest_leaf=10,
        forest_labels=100,
        forest_split="l2",
        forest_cost=0.0,
        forest_prune=0.2,
        forest_propensity=False,
        forest_tail=0.0,
        initial_range=0.1,
        embed="none",
        dense_weight=0.15,
    ),
}


def upgrade(metadata: Metadata) -> Metadata:
    """The same in the present version, with every parameter; what comes out is not checked."""
    metadata = _with_every_parameter(metadata)
    while metadata["format"] in UPGRADES:
        metadata = _with_every_parameter(UPGRADES[metadata["format"]](metadata))
    return metadata


def _with_every_parameter(metadata: Metadata) -> Metadata:
    return {**metadata, "config": {**ADDED.get(metadata["format"], {}), **metadata["config"]}}


def _from_1(metadata: Metadata) -> Metadata:
    """Version 2 tells of each expert what it is; before, that followed from its place and the config."""
    config, n_trees, chosen = metadata["config"], metadata["n_trees"], metadata.get("chosen", {})
    if type(n_trees) is not int or n_trees != config["trees"] or not 1 <= n_trees <= 1000:
        raise CorruptedModelError(
            f"n_trees is {show(n_trees)}, but the config has {show(config['trees'])} trees"
        )
    kinds = ["dense", "sparse"] if config["nodes"] == "both" else [config["nodes"]]
    experts = [
        {
            "kind": "tree",
            "number": number,
            "nodes": nodes,
            "link": config["link"],
            "config": chosen.get(nodes, {}),
        }
        for number, nodes in enumerate(n_trees * kinds)
    ]
    kept = {key: value for key, value in metadata.items() if key not in ("n_trees", "chosen")}
    return {**kept, "format": 2, "experts": experts}


def _from_2(metadata: Metadata) -> Metadata:
    """Version 3 says how experts are combined; before, all counted the same."""
    experts = [{**entry, "weight": 1.0} for entry in metadata["experts"]]
    return {**metadata, "format": 3, "experts": experts, "map": []}


def _from_3(metadata: Metadata) -> Metadata:
    """Version 4 may bend the map of the average, and says by which power of its similarity a neighbour
    counts; before, maps were not bent and it was the third."""
    new = {"neighbours": {"power": 3}}
    experts = [{**new.get(entry["kind"], {}), **entry} for entry in metadata["experts"]]
    return {**metadata, "format": 4, "experts": experts}


# Each to the version after.
UPGRADES: dict[int, Callable[[Metadata], Metadata]] = {1: _from_1, 2: _from_2, 3: _from_3}
