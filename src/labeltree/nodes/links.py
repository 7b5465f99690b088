"""Links: how the scores of siblings become probabilities."""

from __future__ import annotations

from typing import NamedTuple


class Link(NamedTuple):
    """What training and search have to know of a link."""

    name: str
    # Of a row's labels one is picked, and siblings are alternatives: trained together, one of them certain.
    # Rows without labels are then no examples.
    picks_label: bool


PLT = Link("plt", picks_label=False)  # a logistic for each node
HSM = Link("hsm", picks_label=True)  # a softmax over siblings
