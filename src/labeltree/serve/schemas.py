"""What requests and answers hold. These classes decode and check, and `/openapi.json` is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from labeltree.parameter import MOST_IDS

Column = Annotated[int, Meta(ge=0, le=MOST_IDS)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[int, Meta(ge=1, le=MOST_IDS)]


class Vector(Struct, forbid_unknown_fields=True):
    """A sparse vector: columns of the training data, and their values."""

    indices: list[Column]
    values: list[float]


class Document(Struct, forbid_unknown_fields=True, kw_only=True):
    """One document: `text` or `vector`."""

    text: str | None = None
    vector: Vector | None = None


class PredictRequest(Document, forbid_unknown_fields=True, kw_only=True):
    """One of `text`, `texts`, `vector` and `vectors`, and what is asked of each document."""

    texts: list[str] | None = None
    vectors: list[Vector] | None = None
    k: Number | None = None  # 5, or what the model's rule says
    threshold: Probability = 0.0
    allowed: list[str] | None = None
    without: list[str] | None = None
    rule: Literal["model", "none"] = "model"
    search: Literal["auto", "exact"] = "auto"  # a beam is for experiments
    if_unknown: Literal["labels", "nothing"] = "labels"


class ExplainRequest(Document, forbid_unknown_fields=True, kw_only=True):
    """A document, and the labels to explain: those given, or the best k that are predicted."""

    labels: list[str] | None = None
    k: Number | None = None  # 3, or fewer where the model's rule says so
    rule: Literal["model", "none"] = "model"


class WhyNotRequest(Document, forbid_unknown_fields=True, kw_only=True):
    """A document, and a label that it did not get."""

    label: str
    rule: Literal["model", "none"] = "model"  # by which it has other labels instead


class NeighboursRequest(Document, forbid_unknown_fields=True, kw_only=True):
    """A document, and how many similar training rows are wanted."""

    n: Number = 10


class LabelsQuery(Struct):
    """Of `/labels`: a part of the labels' names, in any case, and how many are wanted."""

    q: str = ""
    limit: Number = 20


class ModelName(Struct):
    """Which model answered: the version changes with the content of its file."""

    name: str
    version: str


class ModelCard(ModelName):
    """What is known of a model."""

    n_labels: int
    n_features: int
    n_examples: int
    calibrated: bool
    rule: str | None  # the measure that it was tuned for
    input: str
    card: dict[str, str]


class ModelAnswer(Struct):
    """One model."""

    model: ModelCard


class ModelsAnswer(Struct):
    """All models."""

    models: list[ModelCard]


class ReloadAnswer(Struct):
    """Whether there was a new file, and the version that answers now."""

    reloaded: bool
    model: ModelName


class ScoredLabel(Struct):
    """A label and its probability."""

    label: str
    probability: float


class Result(Struct):
    """Of one document."""

    labels: list[ScoredLabel]
    exact: bool  # proven to be the most probable ones
    known_words: bool  # whether the model knows anything of the document


class PredictAnswer(Struct):
    """Results in the order of the documents."""

    results: list[Result]
    model: ModelName


class ExplainAnswer(Struct):
    """As `labeltree explain --json` prints it."""

    explanation: dict[str, Any]
    model: ModelName


class WhyNotAnswer(Struct):
    """Where a label was lost, to which words, and what the document got instead."""

    why_not: dict[str, Any]
    model: ModelName


class SimilarRow(Struct):
    """A training row, counted from 0."""

    row: int
    similarity: float


class NeighboursAnswer(Struct):
    """The most similar rows first."""

    neighbours: list[SimilarRow]
    model: ModelName


class FoundLabel(Struct):
    """A label and how many training rows have it."""

    label: str
    rows: int


class LabelsAnswer(Struct):
    """The best matches first."""

    labels: list[FoundLabel]
    n_found: int
    model: ModelName


class ProblemDetails(Struct):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


class InferenceError(Struct):
    """What the Open Inference Protocol has for a problem."""

    error: str


class Health(Struct):
    """Whether the service can be used."""

    status: str
