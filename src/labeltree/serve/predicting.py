"""What is asked of documents, and the answers of many requests at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from labeltree.data.rows import SparseRows, without_entries
from labeltree.model import Model
from labeltree.query import DEFAULT_SEARCH, USUAL_K, Query, make_query
from labeltree.serve.requests import given_rows
from labeltree.serve.schemas import PredictRequest, Result, ScoredLabel, Vector
from labeltree.serve.served import Served

Documents = Sequence[str | Vector]  # all of one kind
_SHORT_DOCUMENTS = 4  # of a request, and ...
_SHORT_SIZE = 4_000  # ... characters or entries, that the event loop answers itself
_ONE_BY_ONE = 10  # documents: so few are quicker by the way of single rows, whose answers are the same


class Question(NamedTuple):
    """What requests must have in common to be answered together."""

    served: Served
    is_text: bool
    k: int | None
    threshold: float
    allowed: tuple[str, ...] | None
    without: tuple[str, ...] | None
    rule: str
    search: str
    if_unknown: str

    def answer(self, requests: Sequence[Documents]) -> list[list[Result]]:
        """The results of each request, the same as if it had come alone."""
        model, query, documents = self.served.model, self._query(), list(chain.from_iterable(requests))
        if query.mask is None and query.rule is None and len(documents) <= _ONE_BY_ONE:
            every = iter([_single_result(model, document, query) for document in documents])
        else:
            every = iter(_results(model, given_rows(model, documents), query))
        return [[next(every) for _ in each] for each in requests]

    def is_short(self, documents: Documents) -> bool:
        """Whether an answer takes so little that the event loop may wait for it."""
        if len(documents) > _SHORT_DOCUMENTS or not self.served.is_quick or self.search != DEFAULT_SEARCH:
            return False
        if self.allowed is not None or self.without is not None:  # what follows from them may take long
            return False
        return sum(_size(document) for document in documents) <= _SHORT_SIZE

    def _query(self) -> Query:
        model, asked = self.served.model, USUAL_K if self.k is None else self.k
        query = make_query(asked, self.threshold, search=self.search, if_unknown=self.if_unknown)
        if self.allowed is not None or self.without is not None:
            query = query._replace(mask=self.served.mask(self.allowed, self.without))
        return model.ruled(query, self.rule, is_usual=self.k is None)


def _size(document: str | Vector) -> int:
    return len(document) if isinstance(document, str) else len(document.indices)


def _single_result(model: Model, document: str | Vector, query: Query) -> Result:
    found = model.answer_known(document, query) if isinstance(document, str) else None
    if found is None:
        return _results(model, given_rows(model, [document]), query)[0]
    labels, is_exact = found
    return Result([ScoredLabel(*pair) for pair in labels], is_exact, True)


def _results(model: Model, rows: SparseRows, query: Query) -> list[Result]:
    answers, is_exact = model.answer(rows, query, 1)
    is_known = (~without_entries(rows)).tolist()
    return [
        Result([ScoredLabel(*pair) for pair in labels], exact, known)
        for labels, exact, known in zip(answers, is_exact.tolist(), is_known, strict=True)
    ]


def question_of(served: Served, asked: PredictRequest, documents: Documents) -> Question:
    """Of a request that is checked."""
    return Question(
        served, isinstance(documents[0], str), asked.k, asked.threshold,
        None if asked.allowed is None else tuple(asked.allowed),
        None if asked.without is None else tuple(asked.without),
        asked.rule, asked.search, asked.if_unknown,
    )  # fmt: skip
