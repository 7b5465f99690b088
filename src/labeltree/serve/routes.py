"""What each path answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from labeltree.query import EXPLAINED
from labeltree.serve import schemas
from labeltree.serve.predicting import question_of
from labeltree.serve.problems import Problem, busy
from labeltree.serve.reference import POLICY, whole_page
from labeltree.serve.requests import (
    JSON,
    check_explained,
    check_most,
    document_of,
    documents_of,
    given_rows,
    read_json,
    read_query,
    rows_of,
)
from labeltree.serve.schemas import Vector
from labeltree.serve.served import Served
from labeltree.serve.service import Service


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


encode = msgspec.json.Encoder(enc_hook=_plain).encode  # JSON; numbers of NumPy are numbers


def answer(value: Any, served: Served | None = None, status: int = 200) -> Response:
    return _Json(encode(value), status, () if served is None else served.headers)


class _Json(Response):
    """Starlette's own takes longer to put its headers together than to send them."""

    def __init__(self, body: bytes, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.body, self.status_code, self.background = body, status, None
        length = (b"content-length", b"%d" % len(body))
        self.raw_headers = [length, (b"content-type", JSON.encode()), *headers]


class Asked(NamedTuple):
    """A request about a model."""

    service: Service
    served: Served


def asked_of(request: Request) -> Asked:
    service: Service = request.app.state.service
    return Asked(service, service.registry[request.path_params["name"]])


async def predict(request: Request) -> Response:
    service, served = asked_of(request)
    asked = await read_json(request, schemas.PredictRequest, service.limits)
    results = await results_of(service, served, asked)
    return answer(schemas.PredictAnswer(results, served.model_name), served)


async def results_of(service: Service, served: Served, asked: schemas.PredictRequest) -> list[schemas.Result]:
    """By the thread that predicts, perhaps together with other requests."""
    documents = documents_of(asked, service.limits, served)
    if asked.k is not None:
        check_most("k", asked.k, service.limits.labels)
    question = question_of(served, asked, documents)
    service.numbers.asked(served.name, len(documents))
    worker = service.predictions
    submit = worker.submit_short if service.is_ready and question.is_short(documents) else worker.submit
    results: list[schemas.Result] = await submit(question, question.answer, documents, len(documents))
    return results


async def explain(request: Request) -> Response:
    service, served = asked_of(request)
    asked = await read_json(request, schemas.ExplainRequest, service.limits)
    given = document_of(asked, service.limits, served)
    most = service.limits.explained
    n = check_most("k", EXPLAINED if asked.k is None else asked.k, most)
    if asked.labels is not None:
        n = check_most("the number of labels", len(asked.labels), most)
    check_explained(given, n, service.limits)
    k = asked.k if asked.labels is None else None

    def work() -> dict[str, Any]:
        return served.model.explain(_single(served, given), asked.labels, k, rule=asked.rule).to_dict()

    return answer(schemas.ExplainAnswer(await service.explanations.call(work), served.model_name), served)


async def why_not(request: Request) -> Response:
    service, served = asked_of(request)
    asked = await read_json(request, schemas.WhyNotRequest, service.limits)
    given = document_of(asked, service.limits, served)
    check_explained(given, 1, service.limits)

    def work() -> dict[str, Any]:
        return served.model.why_not(_single(served, given), asked.label, rule=asked.rule).to_dict()

    return answer(schemas.WhyNotAnswer(await service.explanations.call(work), served.model_name), served)


async def neighbours(request: Request) -> Response:
    service, served = asked_of(request)
    asked = await read_json(request, schemas.NeighboursRequest, service.limits)
    given = document_of(asked, service.limits, served)
    n = check_most("n", asked.n, service.limits.labels)

    def work() -> list[schemas.SimilarRow]:
        rows = given_rows(served.model, [given])
        return [schemas.SimilarRow(*pair) for pair in served.model.neighbours(rows, n, threads=1)[0]]

    return answer(schemas.NeighboursAnswer(await service.explanations.call(work), served.model_name), served)


def _single(served: Served, given: str | Vector) -> Any:
    """As `Model.explain` takes it: a text keeps its words."""
    return given if isinstance(given, str) else rows_of([given], served.model.n_features)


async def models(request: Request) -> Response:
    service: Service = request.app.state.service
    return answer(schemas.ModelsAnswer([served.card() for served in service.registry]))


async def model(request: Request) -> Response:
    _, served = asked_of(request)
    return answer(schemas.ModelAnswer(served.card()), served)


async def labels(request: Request) -> Response:
    service, served = asked_of(request)
    asked = read_query(request, schemas.LabelsQuery)
    limit = check_most("limit", asked.limit, service.limits.labels)

    def work() -> schemas.LabelsAnswer:
        found, n_found = served.model.first_labels(asked.q, limit)
        listed = [schemas.FoundLabel(label, n_rows) for label, n_rows in found]
        return schemas.LabelsAnswer(listed, n_found, served.model_name)

    return answer(await service.lookups.call(work), served)


async def live(request: Request) -> Response:
    return answer(schemas.Health("live"))


async def ready(request: Request) -> Response:
    if not request.app.state.service.is_ready:
        raise busy(503, "models are being checked, and kernels compiled; ask again in a moment")
    return answer(schemas.Health("ready"))


async def metrics(request: Request) -> Response:
    return Response(request.app.state.service.metrics_text(), media_type="text/plain; version=0.0.4")


async def reload(request: Request) -> Response:
    """Only with a token, whoever may ask for labels: the page of another site could send this too."""
    service, served = asked_of(request)
    if not service.tokens:
        raise Problem(
            403, "only a service with --token-file reloads on request; replace the file, or send SIGHUP"
        )
    if served.signature is None:
        raise Problem(409, f"{served.name} is a model in memory; there is no file to load")
    service.is_reload_asked = True
    outcome = {each.name: each for each in await service.reload()}.get(served.name)
    service.ask_others()
    if outcome is not None and not outcome.is_done:
        raise Problem(409, f"version {served.version} stays: {outcome.told}")
    now = service.registry[served.name]
    return answer(schemas.ReloadAnswer(outcome is not None, now.model_name), now)


async def reference(request: Request) -> Response:
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}
    return Response(whole_page(), media_type="text/html", headers=headers)


async def openapi(request: Request) -> Response:
    return Response(request.app.state.openapi, media_type=JSON)
