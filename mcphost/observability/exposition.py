"""Render the metrics in the text formats of Prometheus and OpenMetrics.

Our own metrics are converted to prometheus-client's only on request. Its metrics of the process and
of Python's garbage collector are included.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from mcphost.observability import health
from mcphost.observability.counters import metrics
from mcphost.observability.instruments import Family

PREFIX = "mcphost_"
PROBLEM = "problem"


def render(accept: str) -> tuple[bytes, str]:
    """All metrics as text, and the media type: OpenMetrics if `accept` asks for it."""
    try:
        encode, media_type = choose_encoder(accept)
    except (TypeError, ValueError):  # `accept` has a version that is not a number
        encode, media_type = choose_encoder("")
    return encode(_REGISTRY), media_type


class _MetricsCollector(Collector):
    """The metrics of `counters`, and one for each failing health probe."""

    def collect(self) -> Iterator[Metric]:
        for family in metrics.families.values():
            yield _SHAPES[family.kind](family)
        yield _problems()


def _counter(family: Family) -> Metric:
    shown = CounterMetricFamily(PREFIX + family.name, family.about, labels=list(family.labels))
    for sample in family.read():
        shown.add_metric(sample.labels, sample.amount)
    return shown


def _gauge(family: Family) -> Metric:
    shown = GaugeMetricFamily(PREFIX + family.name, family.about, labels=list(family.labels))
    for sample in family.read():
        shown.add_metric(sample.labels, sample.amount)
    return shown


def _histogram(family: Family) -> Metric:
    shown = HistogramMetricFamily(PREFIX + family.name, family.about, labels=list(family.labels))
    names = [*map(str, map(float, family.bounds)), "+Inf"]
    for sample in family.read():
        buckets = list(zip(names, accumulate(sample.buckets), strict=True))
        shown.add_metric(sample.labels, buckets, sample.amount)
    return shown


def _problems() -> Metric:
    about = "1 for each failing health probe, else 0; probes are named as in /readyz."
    shown = GaugeMetricFamily(PREFIX + PROBLEM, about, labels=["probe"])
    problems = health.problems()
    for name in health.registry.names():
        shown.add_metric([name], int(name in problems))
    return shown


_SHAPES: dict[str, Callable[[Family], Metric]] = {
    "counter": _counter,
    "gauge": _gauge,
    "histogram": _histogram,
}


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_MetricsCollector())
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


_REGISTRY = _registry()
