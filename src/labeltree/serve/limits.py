"""What a request may ask for, so that none can exhaust the memory or the time of a service."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Of one service. What is beyond them is refused with a message that names the limit."""

    body_bytes: int = 8_000_000
    documents: int = 256  # of a request
    text_characters: int = 1_000_000  # of a document
    labels: int = 1_000  # that may be asked for: k
    explained: int = 20  # labels of an explanation, which has every word for each
    explained_characters: int = 50_000  # of a text that is explained; an entry of a vector counts as five
    explained_product: int = 250_000  # these times labels: a second for the shortest words, else half of it
    connections: int = 2_000  # at a time
    queue_rows: int = 4_096  # documents that wait for an answer
    seconds: float = 30.0  # that a body may take to arrive, and an answer to come


USUAL_LIMITS = Limits()
