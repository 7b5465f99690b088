"""Features: how texts or vectors become the sparse rows that experts judge.

``FEATURES`` is the table of their kinds, by what they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.features.features import Features

FEATURES: Table[type[Features]] = Table(
    joined=Entry("features.joined:JoinedFeatures"),  # before the others, which would take its pair for theirs
    embedded=Entry("features.embedded:EmbeddedFeatures"),
    text=Entry("features.text:TextFeatures"),
    vectors=Entry("features.vectors:VectorFeatures"),
)
_PLAIN = "text"  # what nobody recognises, whose messages say what X may be


def features_for(input: str, embed: str) -> type[Features]:
    """Those that take an input, where the config wants texts to be embedded or not ("none")."""
    return FEATURES["embedded" if input == _PLAIN and embed != "none" else input]


def input_in_memory(X: Any) -> str:
    """The name of the features that take what someone has in memory."""
    return next((name for name, features in FEATURES.items() if features.recognises(X)), _PLAIN)
