"""What Prometheus reads at `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from labeltree.serve.served import Served

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class _Models(Collector):
    """The version of each model, whichever it is at the moment."""

    def __init__(self, models: Iterable[Served]) -> None:
        self._models = models

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "labeltree_model_info", "The models that are served.", labels=["model", "version"]
        )
        for served in self._models:
            family.add_metric([served.name, served.version], 1.0)
        yield family


class Metrics:
    """Of one service: there may be several in a process."""

    def __init__(self, models: Iterable[Served]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Models(models))
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._requests = Counter(
            "labeltree_requests", "Answered requests.", ["route", "method", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "labeltree_request_seconds", "From the first byte of a request to the last of its answer.",
            ["route"], buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self._documents = Counter(
            "labeltree_documents", "Documents that were asked about.", ["model"], registry=self._registry
        )
        self._batch = Histogram(
            "labeltree_batch_rows", "Documents that were answered together.", buckets=_ROWS,
            registry=self._registry,
        )  # fmt: skip
        self._waiting = Gauge(
            "labeltree_waiting_rows", "Documents that are not answered yet.", registry=self._registry
        )
        self._ready = Gauge(
            "labeltree_ready", "1 when every model has answered a test row.", registry=self._registry
        )
        self._reloads = Counter(
            "labeltree_reloads", "Files that were replaced.", ["model", "outcome"], registry=self._registry
        )

    def watch(self, waiting: Callable[[], float], ready: Callable[[], float]) -> None:
        """What is asked for whenever the metrics are."""
        self._waiting.set_function(waiting)
        self._ready.set_function(ready)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        counts = self._answered.get((route, method, status))
        if counts is None:  # to look them up takes a good part of a short request's time
            counts = self._requests.labels(route, method, str(status)), self._seconds.labels(route)
            self._answered[route, method, status] = counts
        counts[0].inc()
        counts[1].observe(seconds)

    def asked(self, model: str, n_documents: int) -> None:
        self._documents.labels(model).inc(n_documents)

    def batch(self, n_rows: int) -> None:
        self._batch.observe(n_rows)

    def reloaded(self, model: str, *, is_done: bool) -> None:
        self._reloads.labels(model, "done" if is_done else "refused").inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)
