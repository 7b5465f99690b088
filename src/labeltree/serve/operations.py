"""The table of all that the service does: routes and `/openapi.json` are both made of it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from labeltree.serve import about, annif, corrections, inference, page_files, routes, schemas, walking
from labeltree.serve.requests import FORM, JSON, check_query

Endpoint = Callable[[Request], Awaitable[Response]]


class Operation(NamedTuple):
    """One method of one path; an endpoint belongs to one of them."""

    method: str
    path: str
    endpoint: Endpoint
    told: str
    answer: Any  # the type of what it gives; None: text
    request: Any = None
    takes: str = JSON
    gives: str = "text/plain"  # where the answer is text
    also_gives: str | None = None  # where that is asked for
    query: Any = None  # the class of what may stand after the ?
    is_open: bool = False  # to those without a token
    statuses: tuple[int, ...] = ()  # that others do not have


def _strict(operation: Operation) -> Operation:
    """One that refuses what it does not know after the ?: a misspelt name would have no effect."""
    endpoint, kind = operation.endpoint, operation.query
    known = () if kind is None else kind.__struct_fields__

    @functools.wraps(endpoint)
    async def checked(request: Request) -> Response:
        if request.scope["query_string"]:
            check_query(request, known)
        return await endpoint(request)

    return operation._replace(endpoint=checked)


_MODEL = "/v1/models/{name}"
_PROJECT = "/v1/projects/{name}"
_INFERENCE = "/v2/models/{name}"
_VERSION = f"{_INFERENCE}/versions/{{version}}"
_OWN = (
    Operation("GET", "/v1/models", routes.models, "All models.", schemas.ModelsAnswer),
    Operation("GET", _MODEL, routes.model, "What is known of a model.", schemas.ModelAnswer),
    Operation(
        "GET", f"{_MODEL}/labels", routes.labels, "Labels found by a part of their names.",
        schemas.LabelsAnswer, query=schemas.LabelsQuery,
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
    Operation(
        "POST", f"{_MODEL}/reload", routes.reload, "Look for a new file of a model now; needs a token.",
        schemas.ReloadAnswer, statuses=(403, 409),
    ),
    Operation(
        "GET", f"{_MODEL}/about", about.about, "A model's sizes, and how good it was in a test.",
        about.AboutAnswer,
    ),
    Operation(
        "GET", f"{_MODEL}/label", about.label, "What a model knows of a label.",
        about.LabelAnswer, query=about.LabelQuery,
    ),
    Operation(
        "GET", f"{_MODEL}/tree", about.tree, "A node of a model's tree and its children.",
        walking.TreeAnswer, query=walking.TreeQuery,
    ),
    Operation(
        "POST", f"{_MODEL}/corrections", corrections.correct, "Keep which labels a text should have.",
        corrections.CorrectionAnswer, corrections.CorrectionRequest,
    ),
    Operation("GET", "/v1/settings", page_files.settings, "What the page must know.", page_files.Settings),
    Operation("GET", "/health/live", routes.live, "Whether it runs.", schemas.Health, is_open=True),
    Operation(
        "GET", "/health/ready", routes.ready, "Whether every model has answered a test row.",
        schemas.Health, is_open=True,
    ),
    Operation("GET", "/metrics", routes.metrics, "What Prometheus reads.", None),
    Operation("GET", "/openapi.json", routes.openapi, "This description.", dict[str, Any], is_open=True),
    Operation(
        "GET", "/docs", routes.reference, "This description, to read.", None, gives="text/html", is_open=True
    ),
)  # fmt: skip
_OF_PROTOCOLS = (  # whose clients may know more than we do
    Operation("GET", "/v1/", annif.information, "As Annif: what this is.", annif.Information),
    Operation("GET", "/v1/projects", annif.projects, "As Annif: the models.", annif.Projects),
    Operation("GET", _PROJECT, annif.project, "As Annif: a model.", annif.Project),
    Operation(
        "POST", f"{_PROJECT}/suggest", annif.suggest, "As Annif: the labels of a text.",
        annif.Suggestions, annif.SuggestForm, takes=FORM,
    ),
    Operation(
        "POST", f"{_PROJECT}/suggest-batch", annif.suggest_batch, "As Annif: the labels of several texts.",
        list[annif.DocumentSuggestions], annif.SuggestBatch, query=annif.SuggestQuery,
    ),
    Operation("GET", "/v2", inference.server, "Inference protocol: what this is.", inference.ServerMetadata),
    Operation(
        "GET", "/v2/health/live", inference.server_live, "Inference protocol: whether it runs.",
        inference.Live, is_open=True,
    ),
    Operation(
        "GET", "/v2/health/ready", inference.server_ready, "Inference protocol: whether it can be asked.",
        inference.Ready, is_open=True,
    ),
    *(
        operation
        for path, metadata, ready, infer in (
            (_INFERENCE, inference.model_metadata, inference.model_ready, inference.infer),
            (_VERSION, inference.version_metadata, inference.version_ready, inference.version_infer),
        )
        for operation in (
            Operation("GET", path, metadata, "Inference protocol: a model.", inference.InferenceModel),
            Operation("GET", f"{path}/ready", ready, "Inference protocol: it can be asked.", inference.Ready),
            Operation(
                "POST", f"{path}/infer", infer, "Inference protocol: the labels of texts.",
                inference.InferAnswer, inference.InferRequest, also_gives=inference.BINARY,
            ),
        )
    ),
)  # fmt: skip

OPERATIONS = (*map(_strict, _OWN), *_OF_PROTOCOLS)
OPEN_PATHS = frozenset(each.path for each in OPERATIONS if each.is_open) | page_files.FILES.keys()
