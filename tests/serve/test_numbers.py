"""What processes count, alone and together, and as Prometheus reads it."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec", reason="no msgspec: pip install 'labeltree[serve]'")
pytest.importorskip("prometheus_client", reason="no prometheus-client: pip install 'labeltree[serve]'")

from labeltree.serve.board import Board
from labeltree.serve.metrics import metrics_text
from labeltree.serve.numbers import Numbers


def counted() -> Numbers:
    numbers = Numbers()
    numbers.answered("/a", "GET", 200, 0.001)
    numbers.answered("/a", "GET", 200, 0.002)
    numbers.answered("/a", "GET", 404, 99.0)
    numbers.asked("kitchen", 7)
    numbers.batch(7)
    numbers.reloaded("kitchen", is_done=True)
    numbers.waiting, numbers.is_ready = 3, True
    return numbers


def test_the_format_of_prometheus() -> None:
    lines = metrics_text(counted(), []).decode().splitlines()
    for expected in (
        'labeltree_requests_total{method="GET",route="/a",status="200"} 2.0',
        'labeltree_request_seconds_bucket{le="0.0005",route="/a"} 0.0',
        'labeltree_request_seconds_bucket{le="0.001",route="/a"} 1.0',
        'labeltree_request_seconds_bucket{le="10.0",route="/a"} 2.0',
        'labeltree_request_seconds_bucket{le="+Inf",route="/a"} 3.0',
        'labeltree_request_seconds_count{route="/a"} 3.0',
        'labeltree_documents_total{model="kitchen"} 7.0',
        'labeltree_batch_rows_bucket{le="8.0"} 1.0',
        "labeltree_batch_rows_sum 7.0",
        "labeltree_waiting_rows 3.0",
        "labeltree_ready 1.0",
        'labeltree_reloads_total{model="kitchen",outcome="done"} 1.0',
    ):
        assert expected in lines


def test_workers_are_added_up() -> None:
    board = Board(3)
    assert board.read(0) is None
    assert not board.is_ready
    for slot in range(2):
        board.write(slot, counted())
    assert not board.is_ready
    board.write(2, counted())
    assert board.is_ready
    total = board.total()
    assert (total.requests["/a", "GET", 200], total.documents["kitchen"], total.waiting) == (6, 21, 9)
    assert (total.batches.total, total.n_workers) == (21.0, 3)
    assert total.reloads == {("kitchen", "done"): 1}, "each worker replaces a file for itself"
    assert total.seconds["/a"].counts[1] == 3


def test_what_does_not_fit_or_is_half_written_is_not_read() -> None:
    board, many = Board(1), counted()
    board.write(0, many)
    for number in range(10_000):
        many.answered(f"/{number}", "GET", 200, 0.1)
    board.write(0, many)
    assert board.read(0) == counted()
    board._memory[20] ^= 1
    assert board.read(0) is None
