"""The table of all that the service does: routes and `/openapi.json` are both made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from labeltree.serve import routes, schemas
from labeltree.serve.requests import JSON

Endpoint = Callable[[Request], Awaitable[Response]]


class Parameter(NamedTuple):
    """Of the query."""

    name: str
    schema: dict[str, Any]
    told: str


class Operation(NamedTuple):
    """One method of one path; an endpoint belongs to one of them."""

    method: str
    path: str
    endpoint: Endpoint
    told: str
    answer: Any  # the type of what it gives; None: text
    request: Any = None
    takes: str = JSON
    query: tuple[Parameter, ...] = ()
    is_open: bool = False  # to those without a token


_MODEL = "/v1/models/{name}"
_WHOLE = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20}
_SEARCH = (
    Parameter("q", {"type": "string", "default": ""}, "A part of the labels' names, in any case."),
    Parameter("limit", _WHOLE, "At most so many labels."),
)
OPERATIONS = (
    Operation("GET", "/v1/models", routes.models, "All models.", schemas.ModelsAnswer),
    Operation("GET", _MODEL, routes.model, "What is known of a model.", schemas.ModelAnswer),
    Operation(
        "GET", f"{_MODEL}/labels", routes.labels, "Labels found by a part of their names.",
        schemas.LabelsAnswer, query=_SEARCH,
    ),
    Operation(
        "POST", f"{_MODEL}/predict", routes.predict, "The labels of documents, with their probabilities.",
        schemas.PredictAnswer, schemas.PredictRequest,
    ),
    Operation(
        "POST", f"{_MODEL}/explain", routes.explain, "Why a document has its labels.",
        schemas.ExplainAnswer, schemas.ExplainRequest,
    ),
    Operation(
        "POST", f"{_MODEL}/why-not", routes.why_not, "Why a document does not have a label.",
        schemas.WhyNotAnswer, schemas.WhyNotRequest,
    ),
    Operation(
        "POST", f"{_MODEL}/neighbours", routes.neighbours, "Similar training rows.",
        schemas.NeighboursAnswer, schemas.NeighboursRequest,
    ),
    Operation("GET", "/health/live", routes.live, "Whether it runs.", schemas.Health, is_open=True),
    Operation(
        "GET", "/health/ready", routes.ready, "Whether every model has answered a test row.",
        schemas.Health, is_open=True,
    ),
    Operation("GET", "/metrics", routes.metrics, "What Prometheus reads.", None),
    Operation("GET", "/openapi.json", routes.openapi, "This description.", dict[str, Any]),
)  # fmt: skip

OPEN_PATHS = frozenset(operation.path for operation in OPERATIONS if operation.is_open)
