"""The figures of calls: their periods, what they can be grouped by, and the types of the
results.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar
from uuid import UUID

from mcphost.audit.summaries.histograms import percentile

_Key = TypeVar("_Key", int, str)


class Period(StrEnum):
    """How far back the figures go. The last of its buckets is under way."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def step(self) -> timedelta:
        """The length of one point of a series."""
        return _STEPS[self][0]

    @property
    def points(self) -> int:
        """How many points a series has."""
        return _STEPS[self][1]

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.step * self.points

    def start(self, now: datetime) -> datetime:
        """When the period begins: with the first of its buckets, in UTC."""
        seconds = int(self.step.total_seconds())
        last = int(now.timestamp()) // seconds * seconds
        return datetime.fromtimestamp(last - (self.points - 1) * seconds, UTC)

    def end(self, now: datetime) -> datetime:
        """When the last of its buckets is over."""
        return self.start(now) + self.points * self.step


_STEPS: Final = {
    Period.HOUR: (timedelta(minutes=1), 60),
    Period.DAY: (timedelta(hours=1), 24),
    Period.WEEK: (timedelta(hours=4), 42),
    Period.MONTH: (timedelta(days=1), 30),
}


_OWN_STEPS: Final = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=4),
    timedelta(days=1),
    timedelta(days=7),
)
_MAX_POINTS: Final = 62


@dataclass(frozen=True, slots=True)
class OwnPeriod:
    """A period from one time to another, in whole minutes; both at buckets that are kept (`rollups.kept_span`).

    Its series has as few points as a chart can show, each of whole buckets.
    """

    begins: datetime
    ends: datetime

    @property
    def step(self) -> timedelta:
        """The length of one point of a series. The last point may be shorter."""
        whole = self.ends - self.begins
        return next((step for step in _OWN_STEPS if whole <= step * _MAX_POINTS), _OWN_STEPS[-1])

    @property
    def points(self) -> int:
        """How many points a series has."""
        return -((self.begins - self.ends) // self.step)

    def start(self, now: datetime) -> datetime:
        """When it begins. It does not move with `now`."""
        return self.begins

    def end(self, now: datetime) -> datetime:
        """When it ends: perhaps later than `now`."""
        return self.ends


AnyPeriod = Period | OwnPeriod


class Dimension(StrEnum):
    """What calls are grouped by."""

    TARGET = "target"
    CLIENT = "client"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class CallNumbers:
    """The figures of some calls.

    A call is counted at the time of the entry that determines its state. `errors` are calls that ended
    with another result than `complete`. Cancelled calls are not errors, nor are `declined` calls, which a tool ended
    with an error because a person declined or cancelled its last input request. `p50_us` and `p95_us` are
    percentiles of the server time of a call, over all its rounds. `endings` counts how the input requests
    ended: `accept`, `decline`, `cancel`, `received`, `expired`, `invalid`, `repeated`, `stopped`,
    `never`, `lost`, `open`; and `refused`, which counts refused states, answers and messages. `p50_answer_ms`
    and `p95_answer_ms` are percentiles of the time until an answer came.
    """

    calls: int = 0
    errors: int = 0
    declined: int = 0
    p50_us: int | None = None
    p95_us: int | None = None
    input_requests: int = 0
    endings: Mapping[str, int] = field(default_factory=dict)
    p50_answer_ms: int | None = None
    p95_answer_ms: int | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a series: the figures from `at` until before `until`."""

    at: datetime
    until: datetime
    numbers: CallNumbers


@dataclass(frozen=True, slots=True)
class Ranked:
    """A target, client or caller of a tenant, with how many calls it had, and how many of them failed.

    `is_other`: all those without a row of their own.
    """

    tenant: UUID
    name: str
    is_other: bool
    calls: int
    errors: int


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """What became of the input requests of one target to one client program; `is_other`: of all pairs
    without a row of their own."""

    tenant: UUID
    target: str
    client: str
    input_requests: int
    endings: Mapping[str, int]
    is_other: bool = False


@dataclass(frozen=True, slots=True)
class Funnel:
    """The rows with the most input requests, those first; `is_cut` if others are left out."""

    rows: tuple[FunnelRow, ...]
    is_cut: bool


@dataclass(slots=True)
class CallSums:
    """Sums from which `CallNumbers` are made; histograms by bucket (`histograms`)."""

    calls: int = 0
    errors: int = 0
    declined: int = 0
    input_requests: int = 0
    last_at: datetime | None = None
    latency: dict[int, int] = field(default_factory=dict)
    answering: dict[int, int] = field(default_factory=dict)
    endings: dict[str, int] = field(default_factory=dict)

    def add(self, sums: "CallSums") -> None:
        """Add other sums."""
        self.calls += sums.calls
        self.errors += sums.errors
        self.declined += sums.declined
        self.input_requests += sums.input_requests
        _count(self.latency, sums.latency)
        _count(self.answering, sums.answering)
        _count(self.endings, sums.endings)
        if sums.last_at is not None and (self.last_at is None or sums.last_at > self.last_at):
            self.last_at = sums.last_at

    def numbers(self) -> CallNumbers:
        """Return the figures."""
        return CallNumbers(
            calls=self.calls,
            errors=self.errors,
            declined=self.declined,
            p50_us=percentile(self.latency, 0.5),
            p95_us=percentile(self.latency, 0.95),
            input_requests=self.input_requests,
            endings=self.endings,
            p50_answer_ms=percentile(self.answering, 0.5),
            p95_answer_ms=percentile(self.answering, 0.95),
            last_at=self.last_at,
        )


def _count(counts: dict[_Key, int], more: Mapping[_Key, int]) -> None:
    for key, count in more.items():
        counts[key] = counts.get(key, 0) + count
