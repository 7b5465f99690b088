"""The description of the service, made of the table of operations and the classes of requests and answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from labeltree import __version__
from labeltree.serve.operations import OPERATIONS, Operation
from labeltree.serve.problems import MEDIA_TYPE, is_inference
from labeltree.serve.requests import JSON
from labeltree.serve.schemas import InferenceError, ProblemDetails

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_VERSION = {"type": "string"}
_FOR_ALL = (400, 401, 404)
_FOR_BODIES = (408, 413, 415, 422, 429, 503)


def description(names: Sequence[str]) -> dict[str, Any]:
    """OpenAPI 3.1, of a service with models of these names."""
    types = [t for each in OPERATIONS for t in (each.answer, each.request) if t is not None]
    kinds = list(dict.fromkeys([*types, ProblemDetails, InferenceError]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema_of, names)
    bearer = {"type": "http", "scheme": "bearer", "description": "Where the service has a --token-file."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "labeltree", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"bearer": bearer}},
        "security": [{}, {"bearer": []}],
    }


def _query_schemas(kind: Any) -> list[tuple[str, dict[str, Any]]]:
    """The fields of a class, each by itself."""
    if kind is None:
        return []
    return list(msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"].items())


def _operation(each: Operation, schema_of: dict[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    named = {"type": "string", "enum": list(names)}
    media = each.gives if each.answer is None else JSON
    answered = {"type": "string"} if each.answer is None else schema_of[each.answer]
    problem = {MEDIA_TYPE: {"schema": schema_of[ProblemDetails]}}
    if is_inference(each.path):
        problem = {JSON: {"schema": schema_of[InferenceError]}}
    contents: dict[str, Any] = {media: {"schema": answered}}
    if each.also_gives is not None:
        contents[each.also_gives] = {}
    responses: dict[str, Any] = {"200": {"description": "Done.", "content": contents}}
    for status in sorted(
        {*_FOR_ALL, *each.statuses, *(_FOR_BODIES if each.request or each.query else (503,))}
    ):
        responses[str(status)] = {"description": "A problem, and what to do.", "content": problem}
    told: dict[str, Any] = {
        "operationId": each.endpoint.__name__,
        "summary": each.told,
        "parameters": [
            *(
                {
                    "name": n,
                    "in": "path",
                    "required": True,
                    "schema": named if n == "name" else _VERSION,
                }
                for n in _PARAMETER.findall(each.path)
            ),
            *({"name": n, "in": "query", "schema": schema} for n, schema in _query_schemas(each.query)),
        ],
        "responses": responses,
    }
    if each.request is not None:
        content = {each.takes: {"schema": schema_of[each.request]}}
        told["requestBody"] = {"required": True, "content": content}
    return told
