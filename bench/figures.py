"""From samples to figures: medians over the passes, ratios within each pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from operator import attrgetter
from statistics import median

from bench.load import Sample


@dataclass(frozen=True, slots=True)
class Figure:
    """One server's row. `cpu` is in seconds per call, `whole_cpu` the same with the work after the load. `ratios`
    has, per other server, the median of our rate over its rate; `cpu_ratios` and `whole_cpu_ratios` those of the CPU per call."""

    name: str
    label: str
    rate: float
    low: float
    high: float
    cpu: float
    whole_cpu: float
    p50: float
    p99: float
    errors: int
    ratios: Mapping[str, float]
    cpu_ratios: Mapping[str, float]
    whole_cpu_ratios: Mapping[str, float]


def summarise(
    labels: Mapping[str, str], samples: Mapping[str, Sequence[Sample]]
) -> tuple[Figure, ...]:
    """A figure per server. Each has one sample per pass, in the same order."""
    return tuple(_figure(name, labels[name], samples) for name in samples)


def _figure(name: str, label: str, samples: Mapping[str, Sequence[Sample]]) -> Figure:
    own = samples[name]
    rates = [sample.rate for sample in own]
    return Figure(
        name=name,
        label=label,
        rate=median(rates),
        low=min(rates),
        high=max(rates),
        cpu=median(sample.cpu_per_call for sample in own),
        whole_cpu=median(sample.whole_cpu_per_call for sample in own),
        p50=median(sample.p50 for sample in own),
        p99=median(sample.p99 for sample in own),
        errors=sum(sample.errors for sample in own),
        # Within a pass the machine was the same for both: the ratio outlives its drift.
        ratios={peer: _ratio(own, samples[peer]) for peer in samples},
        cpu_ratios={
            peer: _cpu_ratio(own, samples[peer], attrgetter("cpu_per_call")) for peer in samples
        },
        whole_cpu_ratios={
            peer: _cpu_ratio(own, samples[peer], attrgetter("whole_cpu_per_call"))
            for peer in samples
        },
    )


def _ratio(own: Sequence[Sample], baseline: Sequence[Sample]) -> float:
    """Not a number where the other ended no call."""
    return median(a.rate / b.rate if b.rate else nan for a, b in zip(own, baseline, strict=True))


def _cpu_ratio(
    own: Sequence[Sample], baseline: Sequence[Sample], per_call: Callable[[Sample], float]
) -> float:
    """Not a number where no CPU time was measured."""
    pairs = zip(own, baseline, strict=True)
    return median(per_call(a) / per_call(b) if b.cpu else nan for a, b in pairs)
