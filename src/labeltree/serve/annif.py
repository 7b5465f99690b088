"""Annif's REST API (v1), so that its clients work unchanged, and Annif itself with a project of backend http.

A model is a project. What labeltree calls a label, the string of the training data, is both `uri` and `label`
here: Annif's own training files have URIs, and Annif looks their names up in its vocabulary.
"""

from __future__ import annotations

import urllib.parse
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from labeltree import __version__
from labeltree.serve.problems import Problem
from labeltree.serve.requests import (
    FORM,
    check_media_type,
    check_most,
    convert,
    read_body,
    read_json,
    read_query,
)
from labeltree.serve.routes import Asked, answer, asked_of, results_of
from labeltree.serve.schemas import Number, PredictRequest, Probability, Result
from labeltree.serve.served import Served
from labeltree.serve.service import Service

_MOST_FIELDS = 100  # of a form


class Information(Struct):
    """What answers."""

    title: str
    version: str


class Backend(Struct):
    """What a project is made with."""

    backend_id: str = "labeltree"


class Project(Struct):
    """A model."""

    project_id: str
    name: str
    language: str
    backend: Backend
    is_trained: bool
    modification_time: str | None


class Projects(Struct):
    """All models."""

    projects: list[Project]


class SuggestQuery(Struct):
    """How many labels are wanted, of which probability."""

    limit: Number = 10
    threshold: Probability = 0.0


class SuggestForm(SuggestQuery, kw_only=True):
    """The fields of a form; others, such as language, are left out."""

    text: str


class BatchDocument(Struct):
    """A text, and what its answer is to be known by."""

    text: str
    document_id: str | None = None


class SuggestBatch(Struct):
    """Several texts."""

    documents: list[BatchDocument]


class Suggestion(Struct):
    """A label and its probability."""

    uri: str
    label: str
    notation: str | None
    score: float


class Suggestions(Struct):
    """The labels of a text, the most probable first."""

    results: list[Suggestion]


class DocumentSuggestions(Suggestions):
    """The labels of one of several texts."""

    document_id: str | None


async def information(request: Request) -> Response:
    return answer(Information("labeltree", __version__))


async def projects(request: Request) -> Response:
    service: Service = request.app.state.service
    return answer(Projects([_project(served) for served in service.registry if served.takes_text]))


async def project(request: Request) -> Response:
    _, served = _asked_of(request)
    return answer(_project(served), served)


def _asked_of(request: Request) -> Asked:
    """A model that can be a project: Annif has nothing but texts."""
    asked = asked_of(request)
    if not asked.served.takes_text:
        name = asked.served.name
        raise Problem(404, f"{name} takes vectors, so it is no project; POST /v1/models/{name}/predict")
    return asked


def _project(served: Served) -> Project:
    modified = None
    if served.signature is not None:
        modified = datetime.fromtimestamp(served.signature.modified // 10**9, UTC).isoformat()
    language = served.model.card.get("language", "und")  # undetermined, as ISO 639 has it
    return Project(served.name, served.name, language, Backend(), True, modified)


async def suggest(request: Request) -> Response:
    service, served = _asked_of(request)
    check_media_type(request, FORM)
    form = convert(_fields(await read_body(request, service.limits)), SuggestForm)
    (result,) = await _results(service, served, [form.text], form)
    return answer(Suggestions(_suggestions(result)), served)


async def suggest_batch(request: Request) -> Response:
    service, served = _asked_of(request)
    asked = read_query(request, SuggestQuery)
    documents = (await read_json(request, SuggestBatch, service.limits)).documents
    results = await _results(service, served, [document.text for document in documents], asked)
    return answer(
        [
            DocumentSuggestions(_suggestions(result), document.document_id)
            for document, result in zip(documents, results, strict=True)
        ],
        served,
    )


async def _results(service: Service, served: Served, texts: list[str], asked: SuggestQuery) -> list[Result]:
    """The most probable labels, whatever a model was tuned for; none for a text without a known word."""
    check_most("limit", asked.limit, service.limits.labels)
    wanted = PredictRequest(
        texts=texts, k=asked.limit, threshold=asked.threshold, rule="none", if_unknown="nothing"
    )
    return await results_of(service, served, wanted)


def _suggestions(result: Result) -> list[Suggestion]:
    return [Suggestion(found.label, found.label, None, found.probability) for found in result.labels]


def _fields(body: bytes) -> dict[str, Any]:
    """Of a form; where one is given twice, the last counts."""
    try:
        given = urllib.parse.parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError as error:
        raise Problem(400, f"the body is no form in UTF-8 ({error}); send text=... URL-encoded") from error
    return dict(given)
