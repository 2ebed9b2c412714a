"""What Prometheus reads: counters of what happened here, and gauges that are read from the controller when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LATENCIES_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
Sample = tuple[tuple[str, ...], float]
Family = tuple[str, str, tuple[str, ...], list[Sample]]
"""(name, what it says, names of labels, samples)."""


class ServiceMetrics:
    """All metrics of one service; two services of one process share nothing.

    >>> metrics = ServiceMetrics()
    >>> metrics.answered("GET", "/v1/status", 200, 0.001)
    >>> b'route="/v1/status",status="200"} 1.0' in metrics.text()
    True
    """

    def __init__(self) -> None:
        # Looking a metric up by its labels costs as much as counting: what was found is kept.
        self._of_request: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._of_operation: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("ropewalk_http_requests", "Requests answered.", ["method", "route", "status"], **own)
        self.request_s = Histogram(
            "ropewalk_http_request_seconds", "Time from request head to response.", ["route"],
            buckets=LATENCIES_S, **own,
        )  # fmt: skip
        self.operations = Counter(
            "ropewalk_operations", "Requested changes, by kind and outcome.", ["kind", "result"], **own
        )
        self.operation_s = Histogram(
            "ropewalk_operation_seconds", "Time from request to commit.", ["kind"],
            buckets=LATENCIES_S, **own,
        )  # fmt: skip
        self.events = Counter("ropewalk_events", "Events that were committed.", ["kind"], **own)
        self.streams = Gauge("ropewalk_event_streams", "Clients following /v1/events.", **own)
        self.cut_off = Counter("ropewalk_event_streams_cut_off", "Clients of /v1/events dropped as too slow.", **own)
        self.batches = Histogram(
            "ropewalk_commit_batch_size", "Changes that were committed together.", buckets=BATCHES, **own
        )

    def follow(self, families: Callable[[], Iterable[Family]], counters: Callable[[], Iterable[Family]]) -> None:
        """Gauges and counters that are read when somebody asks."""
        self.registry.register(_Read(families, GaugeMetricFamily))
        self.registry.register(_Read(counters, CounterMetricFamily))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        found = self._of_request.get((method, route, status))
        if found is None:
            found = (self.requests.labels(method, route, str(status)), self.request_s.labels(route))
            self._of_request[method, route, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def operated(self, kind: str, result: str, seconds: float) -> None:
        """An operation was carried out, or refused."""
        found = self._of_operation.get((kind, result))
        if found is None:
            found = (self.operations.labels(kind, result), self.operation_s.labels(kind))
            self._of_operation[kind, result] = found
        found[0].inc()
        found[1].observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Read(Collector):
    def __init__(self, families: Callable[[], Iterable[Family]], kind: type[Any]) -> None:
        self._families, self._kind = families, kind

    def describe(self) -> Iterable[Metric]:
        return ()  # what there is is known when it is asked for

    def collect(self) -> Iterator[Metric]:
        for name, about, labels, samples in self._families():
            family = self._kind(name, about, labels=labels)
            for values, value in samples:
                family.add_metric(values, value)
            yield family
