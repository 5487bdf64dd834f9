"""Counters, gauges and histograms that cost next to nothing to update.

Updates do not lock, format or wait; rendering does (`exposition`). Only one thread at a time
updates a series. A reader in another thread may miss the last update.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...]

OTHER_LABEL = "other"
"""The label value for a value outside of the closed set."""


class Number:
    """The value of a counter or gauge. Only one thread at a time updates it.

    No lock: it may be updated ten thousand times per second.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, by: float = 1) -> None:
        self.value += by


class Labels:
    """A family's label names, each with the closed set of its values; all sets contain OTHER."""

    def __init__(self, sets: Mapping[str, Sequence[str]]) -> None:
        self.sets = {name: (*values, OTHER_LABEL) for name, values in sets.items()}
        self._allowed = tuple(map(frozenset, self.sets.values()))

    def closed(self, values: Values) -> Values:
        """`values`, OTHER for those outside of the sets. Raises ValueError for a wrong number."""
        pairs = zip(values, self._allowed, strict=True)
        return tuple(value if value in allowed else OTHER_LABEL for value, allowed in pairs)

    def combinations(self) -> Iterator[Values]:
        return product(*self.sets.values())


class Numbers:
    """A number for each combination of label values, all of which exist from the start."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self.series = {values: Number() for values in labels.combinations()}

    def add(self, *values: str) -> None:
        """Count one more, with a value per label. Raises ValueError if their number is wrong."""
        number = self.series.get(values)
        if number is None:
            number = self.series[self._labels.closed(values)]
        number.value += 1

    def samples(self) -> list["Sample"]:
        """All numbers, also those at zero, except zeros with a label OTHER."""
        series = self.series.items()
        return [Sample(v, n.value) for v, n in series if n.value or OTHER_LABEL not in v]


class Histogram:
    """The number of observations per bucket (the last: above all bounds), and their sum."""

    __slots__ = ("buckets", "total")

    def __init__(self, buckets: int) -> None:
        self.buckets = [0] * buckets
        self.total = 0.0


class Histograms:
    """A histogram for each combination of label values that was observed.

    Values outside of the closed sets are never stored, so clients cannot fill the memory with them.
    """

    def __init__(self, bounds: Sequence[float], labels: Labels) -> None:
        self.bounds = tuple(bounds)
        self._labels = labels
        self.series: dict[Values, Histogram] = {}

    def observe(self, amount: float, *values: str) -> None:
        """Observe an amount, with a value per label. Raises ValueError if their number is wrong."""
        series = self.series.get(values)
        if series is None:
            closed = self._labels.closed(values)
            series = self.series.setdefault(closed, Histogram(len(self.bounds) + 1))
        series.buckets[bisect_left(self.bounds, amount)] += 1
        series.total += amount

    def count(self) -> int:
        """The number of all observations."""
        return sum(sum(series.buckets) for series in tuple(self.series.values()))

    def samples(self) -> list["Sample"]:
        """All series so far; another thread may add one meanwhile."""
        series = tuple(self.series.items())
        return [
            Sample(values, histogram.total, tuple(histogram.buckets))
            for values, histogram in series
        ]


class Sample(NamedTuple):
    """The current state of one series. `amount` is its number, or the sum of a histogram."""

    labels: Values
    amount: float
    buckets: tuple[int, ...] = ()


class Family(NamedTuple):
    """One metric: its name without the prefix, what it is, and how to read it."""

    name: str
    kind: Kind
    about: str
    labels: Mapping[str, Values]
    read: Callable[[], list[Sample]]
    bounds: tuple[float, ...] = ()


class Metrics:
    """The metrics of a process, in the order in which they were declared."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self._probes: dict[str, Callable[[], float]] = {}

    def counter(self, name: str, about: str) -> Number:
        """Declare a number that only rises."""
        return self._number(name, "counter", about)

    def gauge(self, name: str, about: str) -> Number:
        """Declare a number that rises and falls: how many there are right now."""
        return self._number(name, "gauge", about)

    def counters(self, name: str, about: str, **labels: Sequence[str]) -> Numbers:
        """Declare numbers that only rise, one per combination of label values."""
        closed = Labels(labels)
        numbers = Numbers(closed)
        self._add(Family(name, "counter", about, closed.sets, numbers.samples))
        return numbers

    def histograms(
        self, name: str, about: str, bounds: Sequence[float], **labels: Sequence[str]
    ) -> Histograms:
        """Declare histograms, with or without labels. `bounds` are in ascending order."""
        closed = Labels(labels)
        histograms = Histograms(bounds, closed)
        family = Family(
            name, "histogram", about, closed.sets, histograms.samples, histograms.bounds
        )
        self._add(family)
        return histograms

    def probed_gauge(self, name: str, about: str) -> None:
        """Declare a gauge whose value is read from a probe when it is rendered (`measure`)."""
        self._add(Family(name, "gauge", about, {}, lambda: [Sample((), self._probes[name]())]))
        self._probes[name] = int

    def measure(self, name: str, probe: Callable[[], float]) -> Callable[[], None]:
        """Set the probe of a gauge. Raises KeyError if the gauge was not declared with `probed_gauge`.

        Returns what sets the gauge to 0, unless it has another probe by then.
        """
        if name not in self._probes:
            raise KeyError(name)
        self._probes[name] = probe

        def remove() -> None:
            if self._probes[name] is probe:
                self._probes[name] = int

        return remove

    def snapshot(self) -> dict[str, float]:
        """All numbers without labels, by name; 0 for a gauge that has no probe yet."""
        plain = [f for f in self.families.values() if not f.labels and f.kind != "histogram"]
        return {family.name: family.read()[0].amount for family in plain}

    def _number(self, name: str, kind: Kind, about: str) -> Number:
        number = Number()
        self._add(Family(name, kind, about, {}, lambda: [Sample((), number.value)]))
        return number

    def _add(self, family: Family) -> None:
        if family.name in self.families:
            raise ValueError(f"duplicate metric: {family.name}")
        self.families[family.name] = family
