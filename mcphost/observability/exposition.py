"""Render the metrics in the text formats of Prometheus and OpenMetrics.

Our own metrics are converted to prometheus-client's only on request. Its metrics of the process and
of Python's garbage collector are included.
"""

from collections.abc import Iterator
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
            yield _shown(family)
        about = "1 for each failing health probe, else 0; probes are named as in /readyz."
        failing = GaugeMetricFamily(PREFIX + PROBLEM, about, labels=["probe"])
        problems = health.problems()
        for name in health.registry.names():
            failing.add_metric([name], int(name in problems))
        yield failing


def _shown(family: Family) -> Metric:
    name, labels = PREFIX + family.name, list(family.labels)
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(name, family.about, labels=labels)
        bounds = [*map(str, map(float, family.bounds)), "+Inf"]
        for sample in family.read():
            buckets = list(zip(bounds, accumulate(sample.buckets), strict=True))
            histogram.add_metric(sample.labels, buckets, sample.amount)
        return histogram
    shape = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    numbers = shape(name, family.about, labels=labels)
    for sample in family.read():
        numbers.add_metric(sample.labels, sample.amount)
    return numbers


_REGISTRY = CollectorRegistry(auto_describe=False)
_REGISTRY.register(_MetricsCollector())
ProcessCollector(registry=_REGISTRY)
GCCollector(registry=_REGISTRY)
