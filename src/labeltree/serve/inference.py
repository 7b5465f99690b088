"""The Open Inference Protocol, version 2, which KServe, Triton and MLServer speak, and their clients.

A model takes one tensor of texts and gives two, a row for each text: its labels and their probabilities. Of
the protocol's extensions it has binary tensors: clients send and want such unless they are told not to.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from labeltree import __version__
from labeltree.serve.problems import Problem, busy
from labeltree.serve.requests import JSON, check_most, decode, read_body
from labeltree.serve.routes import answer, asked_of, encode, results_of
from labeltree.serve.schemas import Number, PredictRequest, Probability, Result
from labeltree.serve.served import Served
from labeltree.serve.service import Service

BINARY = "application/octet-stream"
LABELS, PROBABILITIES = "labels", "probabilities"
_K = 5
_HEADER_LENGTH = b"inference-header-content-length"
_SIZE = struct.Struct("<I")  # before each text of a binary tensor


class ServerMetadata(Struct):
    """What answers."""

    name: str
    version: str
    extensions: list[str]


class Live(Struct):
    """Whether it runs."""

    live: bool


class Ready(Struct):
    """Whether it can be asked."""

    ready: bool


class TensorMetadata(Struct):
    """A tensor that a model takes or gives; -1: any number."""

    name: str
    datatype: str
    shape: list[int]


class InferenceModel(Struct):
    """A model, its version, and its tensors."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class TensorParameters(Struct):
    """How a tensor is sent."""

    binary_data_size: int | None = None  # bytes of it that stand behind the JSON


class InputTensor(Struct):
    """Texts, of shape [n] or [n, 1]."""

    name: str
    datatype: str
    shape: list[int]
    parameters: TensorParameters | None = None
    data: list[Any] | None = None


class OutputParameters(Struct):
    """How a tensor is wanted."""

    binary_data: bool | None = None


class OutputTensor(Struct):
    """One that is wanted."""

    name: str
    parameters: OutputParameters | None = None


class InferParameters(Struct, forbid_unknown_fields=True):
    """What is asked of each text."""

    k: Number = _K
    threshold: Probability = 0.0
    binary_data_output: bool = False  # behind the JSON, where an output does not say it
    priority: int | None = None  # this and the next are Triton's, and change nothing here
    timeout: int | None = None


class InferRequest(Struct):
    """A tensor of texts."""

    inputs: list[InputTensor]
    id: str | None = None
    parameters: InferParameters | None = None
    outputs: list[OutputTensor] | None = None


class GivenTensor(Struct, omit_defaults=True):
    """Labels or probabilities, row by row; empty labels and 0 where a text has fewer."""

    name: str
    datatype: str
    shape: list[int]
    parameters: TensorParameters | None = None
    data: list[Any] | None = None


class InferAnswer(Struct, omit_defaults=True):
    """The tensors that were wanted."""

    model_name: str
    model_version: str
    outputs: list[GivenTensor]
    id: str | None = None


async def server(request: Request) -> Response:
    return answer(ServerMetadata("labeltree", __version__, ["binary_tensor_data"]))


async def server_live(request: Request) -> Response:
    return answer(Live(True))


async def server_ready(request: Request) -> Response:
    _check_ready(request.app.state.service)
    return answer(Ready(True))


async def model_metadata(request: Request) -> Response:
    served = _asked_of(request)[1]
    outputs = [TensorMetadata(LABELS, "BYTES", [-1, -1]), TensorMetadata(PROBABILITIES, "FP32", [-1, -1])]
    texts = [TensorMetadata("text", "BYTES", [-1])] if served.takes_text else []
    return answer(InferenceModel(served.name, [served.version], "labeltree", texts, outputs), served)


async def version_metadata(request: Request) -> Response:
    return await model_metadata(request)


async def model_ready(request: Request) -> Response:
    service, served = _asked_of(request)
    _check_ready(service)
    return answer(Ready(True), served)


async def version_ready(request: Request) -> Response:
    return await model_ready(request)


async def infer(request: Request) -> Response:
    service, served = _asked_of(request)
    if not served.takes_text:
        name = served.name
        raise Problem(422, f"{name} takes sparse vectors, not texts: POST /v1/models/{name}/predict instead")
    head, binary = _parts(request, await read_body(request, service.limits))
    asked: InferRequest = decode(head, InferRequest)
    texts = _texts(asked, binary)
    settings = asked.parameters or InferParameters()
    k = min(check_most("k", settings.k, service.limits.labels), served.model.n_labels)
    wanted = PredictRequest(texts=texts, k=k, threshold=settings.threshold, rule="none")
    tensors = _tensors(await results_of(service, served, wanted), k)
    given = _wanted(asked, tensors)
    binary = b"".join(content for _, content in given)
    told = InferAnswer(served.name, served.version, [tensor for tensor, _ in given], asked.id)
    if not binary:
        return answer(told, served)
    head = encode(told)
    headers = {"Inference-Header-Content-Length": str(len(head))}
    headers |= {name.decode(): value.decode() for name, value in served.headers}
    return Response(head + binary, media_type=BINARY, headers=headers)


async def version_infer(request: Request) -> Response:
    return await infer(request)


def _asked_of(request: Request) -> tuple[Service, Served]:
    """The model, which must be of the version that the path names, if it does."""
    service, served = asked_of(request)
    version = request.path_params.get("version", served.version)
    if version != served.version:
        raise Problem(404, f"{served.name} has no version {version[:64]!r}; it has {served.version}")
    return service, served


def _check_ready(service: Service) -> None:
    if not service.is_ready:
        raise busy(503, "models are being checked, and kernels compiled; ask again in a moment")


def _parts(request: Request, body: bytes) -> tuple[bytes, bytes]:
    """The JSON of a request, and the binary tensors behind it."""
    headers = dict(request.scope["headers"])
    media_type = headers.get(b"content-type", JSON.encode()).partition(b";")[0].strip().lower()
    if media_type not in (JSON.encode(), BINARY.encode()):  # Triton's client says nothing
        raise Problem(415, f"the body must be {JSON}; set the header Content-Type")
    length = headers.get(_HEADER_LENGTH)
    if length is None:
        return body, b""
    if not length.isdigit() or len(length) > 18 or int(length) > len(body):
        raise Problem(400, "Inference-Header-Content-Length is not the number of bytes of the JSON")
    return body[: int(length)], body[int(length) :]


def _texts(asked: InferRequest, binary: bytes) -> list[str]:
    if len(asked.inputs) != 1:
        raise Problem(400, f"inputs has {len(asked.inputs)} tensors; send one, of texts")
    (tensor,) = asked.inputs
    if tensor.datatype != "BYTES":
        raise Problem(400, f"datatype is {tensor.datatype[:64]!r}; send texts, which are BYTES")
    size = None if tensor.parameters is None else tensor.parameters.binary_data_size
    texts = _strings(tensor.data or []) if size is None else _binary_texts(binary, size)
    if tensor.shape not in ([len(texts)], [len(texts), 1]):
        raise Problem(400, f"shape is {str(tensor.shape)[:64]}, but there are {len(texts)} texts; give [n]")
    return texts


def _strings(data: list[Any]) -> list[str]:
    """Texts, or lists of one text each."""
    try:
        flat = [each[0] if isinstance(each, list) and len(each) == 1 else each for each in data]
        return msgspec.convert(flat, list[str])
    except msgspec.ValidationError as error:
        raise Problem(400, "data must be texts, or be sent in binary form") from error


def _binary_texts(binary: bytes, size: int) -> list[str]:
    texts, place = list[str](), 0
    if size != len(binary):
        raise Problem(400, f"binary_data_size is {size}, but {len(binary)} bytes follow the JSON")
    while place < len(binary):
        start = place + _SIZE.size
        end = start + (_SIZE.unpack_from(binary, place)[0] if start <= len(binary) else 0)
        if max(start, end) > len(binary):
            raise Problem(400, "a text of the binary tensor is longer than what was sent of it")
        try:
            texts.append(binary[start:end].decode())
        except UnicodeDecodeError as error:
            raise Problem(400, f"text {len(texts)} of the binary tensor is not in UTF-8") from error
        place = end
    return texts


def _wanted(asked: InferRequest, tensors: dict[str, GivenTensor]) -> list[tuple[GivenTensor, bytes]]:
    """The tensors that are asked for, each with what of it is to stand behind the JSON."""
    outputs = asked.outputs or [OutputTensor(name) for name in tensors]
    is_binary = asked.parameters is not None and asked.parameters.binary_data_output
    found: dict[str, tuple[GivenTensor, bytes]] = {}
    for output in outputs:
        if output.name not in tensors:
            raise Problem(400, f"there is no output {output.name[:64]!r}; there are {', '.join(tensors)}")
        tensor = tensors[output.name]
        own = None if output.parameters is None else output.parameters.binary_data
        found[output.name] = _binary(tensor) if (is_binary if own is None else own) else (tensor, b"")
    return list(found.values())


def _binary(tensor: GivenTensor) -> tuple[GivenTensor, bytes]:
    data = tensor.data or []
    if tensor.datatype == "BYTES":
        texts = [text.encode() for text in data]
        content = b"".join(_SIZE.pack(len(text)) + text for text in texts)
    else:
        content = struct.pack(f"<{len(data)}f", *data)
    kept = GivenTensor(tensor.name, tensor.datatype, tensor.shape, TensorParameters(len(content)))
    return kept, content


def _tensors(results: list[Result], k: int) -> dict[str, GivenTensor]:
    labels, probabilities, shape = list[str](), list[float](), [len(results), k]
    for result in results:
        n_more = k - len(result.labels)
        labels += [found.label for found in result.labels] + [""] * n_more
        probabilities += [found.probability for found in result.labels] + [0.0] * n_more
    return {
        LABELS: GivenTensor(LABELS, "BYTES", shape, data=labels),
        PROBABILITIES: GivenTensor(PROBABILITIES, "FP32", shape, data=probabilities),
    }
