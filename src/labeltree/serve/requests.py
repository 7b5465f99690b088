"""Reading requests: bodies within limits, and the documents in them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

import msgspec
import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from labeltree.data.rows import SparseRows
from labeltree.errors import show
from labeltree.model import Model
from labeltree.serve.limits import Limits
from labeltree.serve.problems import Problem
from labeltree.serve.schemas import Document, PredictRequest, Vector
from labeltree.serve.served import Served
from labeltree.wording import did_you_mean, near_names

Asked = TypeVar("Asked", bound=msgspec.Struct)
Query = TypeVar("Query", bound=msgspec.Struct)
JSON = "application/json"
_ENUM = re.compile(r"Invalid enum value .* - at `\$\.(\w+)`", re.DOTALL)
_HALF = re.compile(  # a first half without a second, or a second without a first
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)
_LARGEST = float(np.finfo(np.float32).max)
FORM = "application/x-www-form-urlencoded"
_ENTRY_CHARACTERS = 5  # that take as long to explain as an entry of a vector


async def read_json(request: Request, kind: type[Asked], limits: Limits) -> Asked:
    """The body as what it must be, or a problem that says where it is something else."""
    check_media_type(request, JSON)
    return decode(await read_body(request, limits), kind)


@lru_cache(None)  # to make one takes longer than to use it
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(body: bytes, kind: Any) -> Any:
    try:
        return _decoder(kind).decode(body)
    except msgspec.ValidationError as error:
        told = f"{error}{_choices(str(error), kind)}; GET /openapi.json says what a request may hold"
        raise Problem(422, told) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if _HALF.search(body) and ("truncated" in str(error) or "surrogate" in str(error)):
            raise Problem(
                400, "a text has half of a surrogate pair, as \\ud800; send whole characters"
            ) from error
        raise Problem(400, f"the body is no JSON in UTF-8 ({error}); send one object") from error


def _choices(told: str, kind: Any) -> str:
    """What a field may be, where the decoder says only that it may not be what it is."""
    found = _ENUM.fullmatch(told)
    if found is None:
        return ""
    fields = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    return f", which may be {' or '.join(map(repr, fields[found[1]]['enum']))}"


def check_query(request: Request, known: Sequence[str]) -> None:
    """Whether all names of a query are known."""
    for name in request.query_params:
        if name not in known:
            hint = did_you_mean(near_names(name, known, 1))
            takes = f"this path takes {', '.join(known)}" if known else "this path takes none"
            raise Problem(400, f"there is no query parameter {show(name)}: {takes}{hint}")


def read_query(request: Request, kind: type[Query]) -> Query:
    """What stands after the ? of an address."""
    return convert(dict(request.query_params), kind)


def convert(values: dict[str, str], kind: type[Query]) -> Query:
    """Texts of a query or a form as what they must be; others are left out."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(422, f"{error}; GET /openapi.json says what may be given") from error


def check_media_type(request: Request, wanted: str) -> None:
    """JSON only, too, so that the page of another site cannot send it: a browser would ask us first."""
    headers = dict(request.scope["headers"])
    given = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if given != wanted:
        raise Problem(415, f"the body must be {wanted}, but Content-Type is {given[:80]!r}; set that header")
    encoding = headers.get(b"content-encoding", b"identity").decode("latin-1").lower()
    if encoding != "identity":
        raise Problem(415, f"Content-Encoding {encoding[:80]!r} is not taken; send the body as it is")


async def read_body(request: Request, limits: Limits) -> bytes:
    """The whole body, if it is not too large and does not take too long."""
    most = limits.body_bytes
    length = dict(request.scope["headers"]).get(b"content-length", b"")
    if length.isdigit() and (len(length) > 18 or int(length) > most):
        raise _too_large(most)
    parts, total, loop = [], 0, asyncio.get_running_loop()
    end = loop.time() + limits.seconds
    while True:
        message = await _message(request.receive, end - loop.time(), limits)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body: bytes = message.get("body", b"")
        parts.append(body)
        total += len(body)
        if total > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return body if len(parts) == 1 else b"".join(parts)


async def _message(receive: Receive, seconds: float, limits: Limits) -> Message:
    """The next part of a body. `asyncio.timeout` would take three times as long as this."""
    task = asyncio.current_task()
    assert task is not None
    is_late = False

    def end() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(max(0.0, seconds), end)
    try:
        return await receive()
    except asyncio.CancelledError:
        if not is_late or task.uncancel() > 0:
            raise
        detail = f"the body took longer than {limits.seconds:g} s to arrive; send it again"
        raise Problem(408, detail, {"Connection": "close"}) from None
    finally:
        timer.cancel()


def _too_large(most: int) -> Problem:
    detail = f"the body has more than {most:,} bytes; send fewer documents at a time"
    return Problem(413, detail, {"Connection": "close"})  # the rest of the body is not read


def documents_of(asked: PredictRequest, limits: Limits, served: Served) -> list[str] | list[Vector]:
    """The texts or vectors of a request, of which there must be one kind."""
    texts = asked.texts if asked.text is None else [asked.text]
    vectors = asked.vectors if asked.vector is None else [asked.vector]
    given = [asked.text, asked.texts, asked.vector, asked.vectors]
    if sum(value is not None for value in given) != 1:
        raise Problem(422, "give exactly one of text, texts, vector and vectors")
    if texts is not None:
        check_takes_text(served)
        _check_number(len(texts), limits)
        check_texts(texts, limits)
        return texts
    assert vectors is not None
    _check_number(len(vectors), limits)
    _check_vectors(vectors, served)
    return vectors


def document_of(asked: Document, limits: Limits, served: Served) -> str | Vector:
    """The only text or vector of a request."""
    if (asked.text is None) == (asked.vector is None):
        raise Problem(422, "give exactly one of text and vector")
    if asked.text is not None:
        check_takes_text(served)
        check_texts([asked.text], limits)
        return asked.text
    assert asked.vector is not None
    _check_vectors([asked.vector], served)
    return asked.vector


def _check_number(n: int, limits: Limits) -> None:
    if n == 0:
        raise Problem(422, "there is no document; give at least one")
    if n > limits.documents:
        raise Problem(
            422, f"{n:,} documents are more than {limits.documents:,}; send them in several requests"
        )


def check_takes_text(served: Served) -> None:
    if not served.takes_text:
        last = served.model.n_features - 1
        raise Problem(
            422, f"{served.name} takes vectors, not texts: send vector with indices (0 to {last}) and values"
        )


def check_texts(texts: Sequence[str], limits: Limits) -> None:
    longest = max(map(len, texts), default=0)
    if longest > limits.text_characters:
        most = limits.text_characters
        raise Problem(422, f"a text has {longest:,} characters, more than {most:,}; cut it, or split it up")


def _check_vectors(vectors: Sequence[Vector], served: Served) -> None:
    n = served.model.n_features
    for number, vector in enumerate(vectors):
        if len(vector.indices) != len(vector.values):
            told = f"{len(vector.indices):,} indices, but {len(vector.values):,} values"
            raise Problem(422, f"vector {number} has {told}; give one value for each index")
        if max(vector.indices, default=-1) >= n:
            told = f"index {max(vector.indices)}, but {served.name} has indices from 0 to {n - 1}"
            raise Problem(422, f"vector {number} has {told}; leave out what it was not trained with")
        if max(map(abs, vector.values), default=0.0) > _LARGEST:
            raise Problem(422, f"vector {number} has a value beyond 32-bit floats; replace or remove it")


def check_most(name: str, value: int, most: int) -> int:
    """A number within the limits of the service."""
    if value > most:
        raise Problem(422, f"{name} is {value:,}, more than {most:,}; ask for fewer")
    return value


def check_explained(given: str | Vector, n_labels: int, limits: Limits) -> None:
    """An explanation has every word for each label, and nobody else's is begun before it is done."""
    size, unit, weight = len(given) if isinstance(given, str) else len(given.indices), "characters", 1
    if isinstance(given, Vector):
        unit, weight = "entries", _ENTRY_CHARACTERS
    if size * weight > limits.explained_characters:
        most = limits.explained_characters // weight
        raise Problem(422, f"{size:,} {unit} are more than the {most:,} that are explained; send a part")
    if size * weight * n_labels > limits.explained_product:
        n_most = limits.explained_product // (size * weight)
        detail = f"{n_labels} labels of {size:,} {unit} are too much to explain at once"
        raise Problem(422, f"{detail}; ask for at most {n_most} labels, or send less")


def given_rows(model: Model, documents: Sequence[str | Vector]) -> SparseRows:
    """Documents in the features of a model, checked: errors tell what it takes."""
    texts = [document for document in documents if isinstance(document, str)]
    if texts:
        return model.features.given_rows(texts)
    return model.features.given_rows(
        rows_of([d for d in documents if isinstance(d, Vector)], model.n_features)
    )


def rows_of(vectors: Sequence[Vector], n_columns: int) -> SparseRows:
    """Vectors as they were sent: what their indices and values may be is for the model to say."""
    lengths = [len(vector.indices) for vector in vectors]
    indptr = np.zeros(len(vectors) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    indices = np.fromiter(chain.from_iterable(vector.indices for vector in vectors), np.int64)
    values = np.fromiter(chain.from_iterable(vector.values for vector in vectors), np.float64)
    return SparseRows(indptr, indices, values, n_columns)  # type: ignore[arg-type]
