"""What is known of a model: its sizes, how good it was in a test, its labels, and a look at its trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from labeltree.errors import LabelTreeError, ParameterError
from labeltree.serve.problems import Problem
from labeltree.serve.requests import check_most, read_query
from labeltree.serve.routes import answer, asked_of
from labeltree.serve.schemas import FoundLabel, ModelName
from labeltree.serve.served import Served
from labeltree.serve.walking import TreeAnswer, TreeQuery

_FREQUENT = 12  # labels that are listed


class CurvePoint(Struct):
    """Of predictions that are about as probable: how often they are right."""

    probability: float
    right: float
    n: int


class JudgedLabel(Struct):
    """How well a label is found."""

    label: str
    f1: float
    rows: int
    training_rows: int


class Scorecard(Struct):
    """What `labeltree test --scorecard` writes."""

    rows: int
    k: int
    measures: dict[str, float]
    calibration: list[CurvePoint]
    labels_judged: int
    least_rows: int
    best: list[JudgedLabel]
    worst: list[JudgedLabel]
    rule: str | None = None  # the measure of the rule whose labels these are
    threshold: float | None = None  # without one: of the labels that are judged together


class LabelsByRows(Struct):
    """How many labels have so many training rows."""

    least: int
    most: int
    n_labels: int


class AboutAnswer(Struct):
    """Facts as `labeltree inspect --json` prints them, and what else is known."""

    facts: dict[str, Any]
    n_trees: int
    file_bytes: int | None
    labels_by_rows: list[LabelsByRows]
    frequent: list[FoundLabel]
    scorecard: Scorecard | None
    model: ModelName


class LabelQuery(Struct):
    """A label's whole name."""

    label: str


class LabelAnswer(Struct):
    """What the model knows of a label."""

    label: dict[str, Any]
    model: ModelName


def read_scorecard(path: Path) -> Scorecard:
    """A file of `labeltree test --scorecard`, checked."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Scorecard)
    except OSError as error:
        raise ParameterError(
            f"scorecard {path}: cannot be read ({error.strerror}); "
            "labeltree test MODEL DATA --scorecard FILE writes one"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"{path}: is no scorecard ({error}); labeltree test MODEL DATA --scorecard FILE writes one"
        ) from error


def labels_by_rows(counts: NDArray[np.int64]) -> list[LabelsByRows]:
    """Labels in classes whose bounds double: 0, 1, 2 to 3, 4 to 7 and so on."""
    classes = np.zeros(len(counts), np.int64)
    classes[counts > 0] = np.floor(np.log2(counts[counts > 0])).astype(np.int64) + 1
    return [
        LabelsByRows(2 ** (number - 1) if number else 0, 2**number - 1, n)
        for number, n in enumerate(np.bincount(classes).tolist())
    ]


async def about(request: Request) -> Response:
    service, served = asked_of(request)
    scorecard = service.scorecards.get(served.name)
    return answer(await service.lookups.call(_about, served, scorecard), served)


def _about(served: Served, scorecard: Scorecard | None) -> AboutAnswer:
    model = served.model
    return AboutAnswer(
        facts=model.inspect(), n_trees=len(model.label_trees),
        file_bytes=None if served.signature is None else served.signature.size,
        labels_by_rows=labels_by_rows(model.label_counts),
        frequent=[FoundLabel(*found) for found in model.first_labels("", _FREQUENT)[0]],
        scorecard=scorecard, model=served.model_name,
    )  # fmt: skip


async def tree(request: Request) -> Response:
    service, served = asked_of(request)
    asked = read_query(request, TreeQuery)
    check_most("limit", asked.limit, service.limits.labels)

    def work() -> TreeAnswer:
        labels = served.model.check_labels([] if asked.label is None else [asked.label])
        return served.walk.look(asked, labels, served.model_name)

    return answer(await service.lookups.call(work), served)


async def label(request: Request) -> Response:
    service, served = asked_of(request)
    asked = read_query(request, LabelQuery)
    try:
        told = await service.lookups.call(lambda: served.model.label(asked.label).to_dict())
    except LabelTreeError as error:  # with names near it
        raise Problem(404, str(error)) from error
    return answer(LabelAnswer(told, served.model_name), served)
