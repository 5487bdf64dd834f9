"""The rows of roll-ups: what they count, how long they are kept, and which of them cover a time.

A call belongs to the time in the id of the entry that determines its state, so the calls of a bucket are a
range of one index. Rows are never adjusted: those of a bucket are made again from its calls, or from the rows of shorter
buckets (`counting`). The minute under way is counted in parts of five seconds. A minute, hour or day has rows once it is
over: up to then, shorter ones cover it.

A bucket has a row for each of the MAX_NAMES names of a dimension with the most calls. Callers without a token choose the
name of their client freely, and every caller the URI that it reads. Such names have rows of their own
(FREE), so that they cannot take the places of others. All names without a row are counted together (REST).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from itertools import chain, groupby, product
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from django.db.models import Q

from mcphost.audit.models import Following, RollUp
from mcphost.audit.summaries.figures import CallSums

PLATFORM: Final = UUID(int=0)
MAX_NAMES: Final = 200
"""How many names a bucket of a tenant has at most: so many again that callers choose freely."""
PRUNED_AT_ONCE: Final = 500
AHEAD: Final = 60
"""By how many seconds the clock of another process may be ahead, so that its calls are counted at once."""


class By(IntEnum):
    """By what a row counts."""

    ALL = 0
    TARGET = 1
    CLIENT = 2
    CALLER = 3
    TARGET_AND_CLIENT = 4
    """Only calls that asked or were refused something."""

    @property
    def named(self) -> tuple[int, ...]:
        """The dimensions of the rows with names."""
        return (self,) if self is By.ALL else (self, self + FREE)

    @property
    def whole(self) -> tuple[int, ...]:
        """The dimensions of all rows: their sum is that of all calls."""
        return self.named if self is By.ALL else (*self.named, self + REST)


FREE: Final = 10
"""Added to a dimension: rows of the names that callers choose freely."""
REST: Final = 20
"""Added to a dimension: the row, without a name, of all the names without a place."""
DIMENSIONS: Final = tuple(chain.from_iterable(dimension.whole for dimension in By))


class Resolution(IntEnum):
    """How long a bucket is."""

    PART = 0
    MINUTE = 1
    HOUR = 2
    DAY = 3

    @property
    def seconds(self) -> int:
        return _SECONDS[self]

    @property
    def finer(self) -> "Resolution":
        """The resolution whose buckets make up this one's."""
        return Resolution(self - 1)

    @property
    def coarser(self) -> "Resolution":
        return Resolution(self + 1)

    def bucket(self, at: datetime) -> int:
        """Return the number of the bucket that contains a time."""
        return int(at.timestamp()) // _SECONDS[self]


_SECONDS: Final = {
    Resolution.PART: 5,
    Resolution.MINUTE: 60,
    Resolution.HOUR: 3600,
    Resolution.DAY: 86_400,
}
KEPT: Final = {
    Resolution.PART: timedelta(hours=1),
    Resolution.MINUTE: timedelta(hours=25),
    Resolution.HOUR: timedelta(days=32),
    Resolution.DAY: timedelta(days=400),
}


class Bucket(NamedTuple):
    """A time: its resolution, and its number since 1970."""

    resolution: Resolution
    number: int

    @property
    def begins(self) -> int:
        """In seconds since 1970."""
        return self.number * self.resolution.seconds

    @property
    def ends(self) -> int:
        return self.begins + self.resolution.seconds

    @property
    def ids(self) -> tuple[UUID, UUID]:
        """The first id of its time, and the first after it."""
        return id_at(self.begins), id_at(self.ends)

    def within(self, resolution: Resolution) -> "Bucket":
        """The bucket of another resolution in which this one begins."""
        return Bucket(resolution, self.begins // resolution.seconds)


class NamedRow(NamedTuple):
    """Which row of a bucket. `by` is a `By`, or one with FREE or REST added. `client` is the second part of a name:
    the client of a target, the id of a caller."""

    tenant: UUID
    by: int
    name: str = ""
    client: str = ""


SUMMED: Final = (
    "calls",
    "errors",
    "declined",
    "asked",
    "last_at",
    "latency",
    "answering",
    "endings",
)
"""The columns of a row from which `sums_of` makes its sums."""


def id_at(seconds: float) -> UUID:
    """The smallest id of entries made at a time, in seconds since 1970."""
    # Also beyond the years that `datetime` has: a process with a wrong clock may have made such ids.
    return UUID(int=min(max(0, int(1000 * seconds)) << 80, 2**128 - 1))


def is_kept(bucket: Bucket, now: datetime) -> bool:
    """Whether a bucket has rows: as long as all of the longer bucket around it that may be made of them have."""
    around = (
        bucket if bucket.resolution is Resolution.DAY else bucket.within(bucket.resolution.coarser)
    )
    return around.begins >= (now - KEPT[bucket.resolution]).timestamp() + bucket.resolution.seconds


def kept_span(begins: datetime, ends: datetime, now: datetime) -> tuple[datetime, datetime]:
    """Return the shortest time around one that whole buckets make up which are kept.

    It begins with the oldest day that is kept at the earliest, and ends with the minute under way at the latest.
    """
    latest = (Resolution.MINUTE.bucket(now) + 1) * Resolution.MINUTE.seconds
    day = Resolution.DAY.seconds
    earliest = -int(-(now - KEPT[Resolution.DAY]).timestamp() // day) * day + day
    end = min(max(ends.timestamp(), earliest + day), latest)
    end_bucket = _finest_kept(-int(-end // 1) - 1, now)
    begin = min(max(begins.timestamp(), earliest), end_bucket.ends - 1)
    begin_bucket = _finest_kept(int(begin), now)
    return (
        datetime.fromtimestamp(begin_bucket.begins, UTC),
        datetime.fromtimestamp(min(end_bucket.ends, latest), UTC),
    )


def _finest_kept(at: int, now: datetime) -> Bucket:
    """The shortest bucket of whole minutes around a time, in seconds since 1970, that has rows still."""
    buckets = [
        Bucket(resolution, at // resolution.seconds)
        for resolution in (Resolution.MINUTE, Resolution.HOUR, Resolution.DAY)
    ]
    return next((bucket for bucket in buckets if is_kept(bucket, now)), buckets[-1])


def cover(begins: int, ends: int, longest: Resolution, now: datetime) -> list[Bucket]:
    """The buckets that make up a time, in seconds since 1970, as few as possible: those that are over, and the
    parts of the minute under way."""
    following = Following.objects.first() or Following()
    ends = min(ends, max(int(now.timestamp()), following.open_minute * 60) + AHEAD)
    buckets, at = [], begins
    while at < ends:
        bucket = next(
            bucket
            for resolution in range(longest, -1, -1)
            for bucket in [Bucket(Resolution(resolution), at // _SECONDS[Resolution(resolution)])]
            if bucket.resolution is Resolution.PART
            or (bucket.begins == at and bucket.ends <= ends and not is_open(bucket, following))
        )
        buckets.append(bucket)
        at = bucket.ends
    return buckets


def is_open(bucket: Bucket, following: Following) -> bool:
    """Whether a minute, hour or day is covered by shorter buckets still."""
    opened: int = getattr(following, f"open_{bucket.resolution.name.lower()}")
    return bucket.number >= opened


def of_buckets(buckets: Sequence[Bucket]) -> Q:
    """The rows of these buckets. Numbers of minutes, hours and days are far apart."""
    # As one list, since an index alone answers no OR.
    return Q(
        resolution__in={bucket.resolution for bucket in buckets},
        bucket__in=[bucket.number for bucket in buckets],
    )


def of_runs(buckets: Sequence[Bucket]) -> Q:
    """The same rows, as ranges of numbers: for reading rows of a name, which also need their table. Each range is
    one part of the index of names; PostgreSQL takes a long list of numbers for too many parts."""
    condition = Q(pk__in=())
    numbered = enumerate(sorted(buckets))
    # In a run, numbers grow as positions do.
    for _, run in groupby(numbered, lambda pair: (pair[1].resolution, pair[1].number - pair[0])):
        within = [bucket for _, bucket in run]
        numbers = (within[0].number, within[-1].number)
        condition |= Q(resolution=within[0].resolution, bucket__range=numbers)
    return condition


def sums_of(columns: Sequence[Any]) -> CallSums:
    """Return what a row contains, from its columns SUMMED."""
    calls, errors, declined, input_requests, last_at, latency, answering, endings = columns
    return CallSums(
        calls,
        errors,
        declined,
        input_requests,
        last_at,
        _histogram(latency),
        _histogram(answering),
        counts_of(endings),
    )


def counts_of(text: str) -> dict[str, int]:
    """Parse stored counts by name."""
    counts: dict[str, int] = orjson.loads(text)
    return counts


def prune(now: datetime) -> int:
    """Delete at most PRUNED_AT_ONCE rows that are older than their resolution is kept; return how many."""
    deleted = 0
    following = Following.objects.get()
    # Each is found by one index, the oldest first.
    for resolution, by in product(Resolution, DIMENSIONS):
        oldest = resolution.bucket(now - KEPT[resolution])
        if resolution is not Resolution.DAY:  # not those of which a longer one is still to be made
            coarser = resolution.coarser
            opened: int = getattr(following, f"open_{coarser.name.lower()}")
            oldest = min(oldest, opened * coarser.seconds // resolution.seconds)
        old = RollUp.objects.filter(dimension=by, resolution=resolution, bucket__lt=oldest)
        ids = old.order_by("bucket").values_list("pk", flat=True)[: PRUNED_AT_ONCE - deleted]
        deleted += RollUp.objects.filter(pk__in=list(ids)).delete()[0]
        if deleted >= PRUNED_AT_ONCE:
            break
    return deleted


def _histogram(text: str) -> dict[int, int]:
    counts: Mapping[str, int] = orjson.loads(text)
    return {int(bucket): count for bucket, count in counts.items()}
