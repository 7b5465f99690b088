"""What Prometheus reads at `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from labeltree.serve.numbers import ROWS, SECONDS, Histogram, Numbers
from labeltree.serve.served import Served


def metrics_text(numbers: Numbers, models: Iterable[Served]) -> bytes:
    """In the format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Numbers(numbers, models))
    return generate_latest(registry)


class _Numbers(Collector):
    def __init__(self, numbers: Numbers, models: Iterable[Served]) -> None:
        self._numbers, self._models = numbers, models

    def collect(self) -> Iterable[Metric]:
        numbers = self._numbers
        yield _counter(
            "labeltree_requests", "Answered requests.", ("route", "method", "status"),
            [((route, method, str(status)), n) for (route, method, status), n in numbers.requests.items()],
        )  # fmt: skip
        seconds = HistogramMetricFamily(
            "labeltree_request_seconds", "From the head of a request to the last byte of its answer.",
            labels=("route",),
        )  # fmt: skip
        for route, histogram in numbers.seconds.items():
            _add(seconds, (route,), SECONDS, histogram)
        yield seconds
        yield _counter(
            "labeltree_documents", "Documents that were asked about.", ("model",),
            [((model,), n) for model, n in numbers.documents.items()],
        )  # fmt: skip
        batches = HistogramMetricFamily("labeltree_batch_rows", "Documents that were answered together.")
        _add(batches, (), ROWS, numbers.batches)
        yield batches
        yield GaugeMetricFamily(
            "labeltree_waiting_rows", "Documents that are not answered yet.", numbers.waiting
        )
        yield GaugeMetricFamily(
            "labeltree_ready", "1 when every model has answered a test row.", float(numbers.is_ready)
        )
        yield GaugeMetricFamily("labeltree_workers", "Processes that answer.", numbers.n_workers)
        yield _counter(
            "labeltree_reloads", "Files that were replaced.", ("model", "outcome"), numbers.reloads.items()
        )
        versions = GaugeMetricFamily(
            "labeltree_model_info", "The models that are served.", labels=("model", "version")
        )
        for served in self._models:
            versions.add_metric([served.name, served.version], 1.0)
        yield versions


def _counter(
    name: str, told: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], int]]
) -> Metric:
    family = CounterMetricFamily(name, told, labels=labels)
    for of_labels, value in values:
        family.add_metric(of_labels, value)
    return family


def _add(
    family: HistogramMetricFamily, labels: Sequence[str], bounds: Sequence[float], histogram: Histogram
) -> None:
    names = [*(str(float(bound)) for bound in bounds), "+Inf"]
    buckets = list(zip(names, accumulate(histogram.counts), strict=True))
    family.add_metric(labels, buckets, histogram.total)
