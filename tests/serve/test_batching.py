"""What arrives while the thread works is answered together, and as if it had come alone."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.serving import TEXTS, text_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")

from labeltree.decisions.rule import RankingRule
from labeltree.errors import DataError
from labeltree.serve.batching import Worker
from labeltree.serve.predicting import question_of
from labeltree.serve.problems import Problem
from labeltree.serve.schemas import PredictRequest
from labeltree.serve.served import Served


class Slow:
    """Work that waits to be let go, and remembers its batches."""

    def __init__(self) -> None:
        self.go, self.begun, self.batches = threading.Event(), threading.Event(), list[list[Any]]()

    def __call__(self, payloads: Sequence[Any]) -> list[Any]:
        self.batches.append(list(payloads))
        self.begun.set()
        assert self.go.wait(20)
        if "bad" in payloads:
            raise DataError("something is wrong with it")
        return [f"answer to {payload}" for payload in payloads]


async def begun(slow: Slow) -> None:
    assert await asyncio.to_thread(slow.begun.wait, 20)


def run(test: Any) -> Any:
    """On a thread of its own: a browser that other tests have open may have a loop on this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(asyncio.wait_for(test, 60))).result()


def test_requests_that_arrive_meanwhile_are_the_next_batch() -> None:
    sizes: list[int] = []

    async def test() -> list[Any]:
        worker, slow = Worker("test", 100, 20, batch_rows=4, observe=sizes.append), Slow()
        first = asyncio.create_task(worker.submit("key", slow, "0", 1))
        await begun(slow)
        rest = [asyncio.create_task(worker.submit("key", slow, str(n), 1)) for n in range(1, 7)]
        other = asyncio.create_task(worker.submit("another key", slow, "x", 1))
        await asyncio.sleep(0)
        assert worker.n_waiting == 8
        slow.go.set()
        answers = await asyncio.gather(first, *rest, other)
        assert slow.batches == [["0"], ["1", "2", "3", "4"], ["5", "6"], ["x"]]
        assert worker.n_waiting == 0
        worker.close()
        return answers

    assert run(test()) == [f"answer to {n}" for n in (0, 1, 2, 3, 4, 5, 6, "x")]
    assert sizes == [1, 4, 2, 1]


def test_a_bad_request_fails_alone() -> None:
    async def test() -> list[Any]:
        worker, slow = Worker("test", 100, 20), Slow()
        first = asyncio.create_task(worker.submit("key", slow, "0", 1))
        await begun(slow)
        rest = [asyncio.create_task(worker.submit("key", slow, payload, 1)) for payload in ("1", "bad", "2")]
        await asyncio.sleep(0)
        slow.go.set()
        return await asyncio.gather(first, *rest, return_exceptions=True)

    first, second, bad, last = run(test())
    assert [first, second, last] == ["answer to 0", "answer to 1", "answer to 2"]
    assert isinstance(bad, DataError)


def test_the_queue_and_the_time_are_limited() -> None:
    async def test() -> None:
        worker, slow = Worker("test", 2, 0.05), Slow()
        first = asyncio.create_task(worker.submit("key", slow, "0", 2))
        await begun(slow)
        with pytest.raises(Problem) as full:
            await worker.submit("key", slow, "1", 1)
        assert (full.value.status, full.value.headers) == (429, {"Retry-After": "1"})
        with pytest.raises(Problem) as late:
            await first
        assert (late.value.status, late.value.headers) == (503, {"Retry-After": "1"})
        slow.go.set()
        assert await worker.call(lambda: "still there") == "still there"

    run(test())


def test_whoever_gave_up_is_left_out() -> None:
    async def test() -> None:
        worker, slow = Worker("test", 100, 20), Slow()
        first = asyncio.create_task(worker.submit("key", slow, "0", 1))
        await begun(slow)
        gone = asyncio.create_task(worker.submit("key", slow, "gone", 1))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        last = asyncio.create_task(worker.submit("key", slow, "last", 1))
        await asyncio.sleep(0)
        slow.go.set()
        await asyncio.gather(first, last)
        assert slow.batches == [["0"], ["last"]]

    run(test())


def test_short_ones_that_arrive_together_are_answered_together_by_the_loop() -> None:
    sizes: list[int] = []
    batches: list[list[Any]] = []

    def run_batch(payloads: Sequence[Any]) -> list[Any]:
        assert asyncio.get_running_loop().is_running()
        batches.append(list(payloads))
        if "bad" in payloads:
            raise DataError("something is wrong with it")
        return [f"answer to {payload}" for payload in payloads]

    async def test() -> list[Any]:
        worker = Worker("test", 100, 20, observe=sizes.append)
        asked = [asyncio.create_task(worker.submit_short("key", run_batch, n, 1)) for n in ("0", "1")]
        await asyncio.sleep(0)
        asked.append(asyncio.create_task(worker.submit_short("key", run_batch, "2", 1)))  # a turn later
        first = await asyncio.gather(*asked)
        assert batches == [["0", "1", "2"]]
        rest = [worker.submit_short("key", run_batch, n, 1) for n in ("3", "bad")]
        both = await asyncio.gather(*rest, return_exceptions=True)
        assert worker.n_waiting == 0
        return [*first, *both]

    *good, bad = run(test())
    assert good == [f"answer to {n}" for n in range(4)]
    assert isinstance(bad, DataError)
    assert sizes == [3, 1, 1]


def test_many_short_ones_take_turns_with_the_rest_of_the_loop() -> None:
    batches: list[int] = []

    async def test() -> None:
        worker = Worker("test", 150, 20)

        def run_batch(payloads: Sequence[Any]) -> Sequence[Any]:
            batches.append(len(payloads))
            return payloads

        asked = [asyncio.create_task(worker.submit_short("key", run_batch, n, 1)) for n in range(150)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as full:
            await worker.submit_short("key", run_batch, -1, 1)
        assert full.value.status == 429
        gone = asked.pop()
        gone.cancel()
        assert await asyncio.gather(*asked) == list(range(149))

    run(test())
    assert batches == [64, 64, 21]


def test_which_requests_are_short() -> None:
    served = Served("text", text_model(), "1").check()
    assert served.is_quick

    def is_short(documents: list[str], **settings: Any) -> bool:
        return question_of(served, PredictRequest(**settings), documents).is_short(documents)

    assert is_short(["a"])
    assert is_short(["a"] * 4, threshold=0.5, if_unknown="nothing")
    assert not is_short(["a"] * 5)
    assert not is_short(["a" * 4_001])
    assert not is_short(["a"], search="exact")
    assert not is_short(["a"], allowed=["tea"])
    served.is_quick = False
    assert not is_short(["a"])


def test_the_check_warms_up_and_times_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the event loop would wait for the first answer by it."""

    class Slow(RankingRule):
        def decide(self, *how: Any) -> Any:
            time.sleep(0.01)
            return super().decide(*how)

    model = copy.copy(text_model())
    arrays = np.ones(model.n_labels, np.float32), np.zeros(model.n_labels, np.float32)
    model.rule = RankingRule("p@2", 2, *arrays)
    served = Served("text", model, "1").check()
    assert served.is_quick
    monkeypatch.delattr("labeltree.decisions.rule.WeightedSearch")
    found = question_of(served, PredictRequest(), TEXTS[:1]).answer([TEXTS[:1]])
    assert len(found[0][0].labels) == 2
    monkeypatch.undo()
    model.rule = Slow("p@2", 2, *arrays)
    assert not Served("text", model, "1").check().is_quick


@pytest.mark.parametrize(
    "settings", [{}, {"k": 1}, {"threshold": 0.3}, {"allowed": ["tea", "soup"]}, {"search": "exact"}]
)
def test_answers_of_batches_are_those_of_single_requests(settings: dict[str, Any]) -> None:
    """Bit for bit; and they are those of the model."""
    served, asked = Served("text", text_model(), "1"), PredictRequest(**settings)
    requests = [[text] for text in TEXTS[:9]] + [["unknown"], [TEXTS[3], "", TEXTS[1]]]
    question = question_of(served, asked, requests[0])
    together = question.answer(requests)
    assert together == [question.answer([documents])[0] for documents in requests]
    texts = [text for documents in requests for text in documents]
    found = [
        [(label.label, label.probability) for label in result.labels] for each in together for result in each
    ]
    assert found == text_model().predict(texts, **settings)
    assert found == [text_model().predict([text], **settings)[0] for text in texts]
