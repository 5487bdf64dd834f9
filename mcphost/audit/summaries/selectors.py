"""Read the figures of calls, and the calls that changed."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import orjson
from django.db.models import Case, Max, Q, QuerySet, Sum, Value, When
from django.utils import timezone

from mcphost.audit.models import ChangedCalls, Following, RollUp
from mcphost.audit.summaries import follower
from mcphost.audit.summaries.figures import (
    AnyPeriod,
    CallNumbers,
    CallSums,
    Dimension,
    Funnel,
    FunnelRow,
    OwnPeriod,
    Period,
    Point,
    Ranked,
)
from mcphost.audit.summaries.rollups import (
    KEPT,
    PLATFORM,
    REST,
    SUMMED,
    Bucket,
    By,
    Resolution,
    counts_of,
    cover,
    of_buckets,
    of_runs,
    sums_of,
)

__all__ = [
    "CallChanges",
    "CallNumbers",
    "Dimension",
    "Funnel",
    "FunnelRow",
    "Period",
    "Point",
    "Ranked",
]

_BY: Final = {
    Dimension.TARGET: By.TARGET,
    Dimension.CLIENT: By.CLIENT,
    Dimension.CALLER: By.CALLER,
}
_IS_OTHER: Final = Case(When(dimension__gte=REST, then=Value(1)), default=Value(0))
_POINTS: Final = {
    Period.HOUR: Resolution.MINUTE,
    Period.DAY: Resolution.HOUR,
    Period.WEEK: Resolution.HOUR,
    Period.MONTH: Resolution.DAY,
}


@dataclass(frozen=True, slots=True)
class CallChanges:
    """The calls whose rows changed, up to `cursor`; None if they are too many, or no longer known."""

    calls: frozenset[UUID] | None
    cursor: int


def earliest(period: Period, now: datetime) -> datetime:
    """The first time for which the figures of a period are kept, with those of the period before it."""
    return now - KEPT[_POINTS[period]] + 2 * period.length + period.step


def totals(tenants: frozenset[UUID] | None, period: AnyPeriod, now: datetime) -> CallNumbers:
    """The figures of these tenants together; of all for None."""
    follower.refresh(now)
    sums = CallSums()
    for columns in _totals_of(tenants).filter(_within(period, now)).values_list(*SUMMED):
        sums.add(sums_of(columns))
    return sums.numbers()


def series(
    tenants: frozenset[UUID] | None, period: AnyPeriod, now: datetime, *, target: str | None = None
) -> tuple[Point, ...]:
    """The same figures, or those of one target, point by point, the oldest first.

    The last point is under way.
    """
    follower.refresh(now)
    start, end, step = period.start(now), period.end(now), period.step
    points = [CallSums() for _ in range(period.points)]
    counted = _totals_of(tenants)
    if target is not None:
        counted = _rollups_of(tenants, *By.TARGET.named).filter(name=target)
    rows = counted.filter(_within(period, now, _longest(period)))
    begins, seconds = int(start.timestamp()), int(step.total_seconds())
    for resolution, bucket, *columns in rows.values_list("resolution", "bucket", *SUMMED):
        at = bucket * Resolution(resolution).seconds
        points[(at - begins) // seconds].add(sums_of(columns))
    return tuple(
        Point(start + number * step, min(start + (number + 1) * step, end), sums.numbers())
        for number, sums in enumerate(points)
    )


def top(
    tenants: frozenset[UUID] | None,
    by: Dimension,
    period: AnyPeriod,
    now: datetime,
    limit: int = 5,
    *,
    names: Collection[str] | None = None,
) -> tuple[Ranked, ...]:
    """The targets, clients or callers with the most calls, all or those of these names."""
    follower.refresh(now)
    rows = (
        _rollups_of(tenants, *_BY[by].whole)
        .filter(_within(period, now))
        .annotate(is_other=_IS_OTHER)
    )
    if names is not None:
        rows = rows.filter(name__in=names)
    key = ("tenant", "name", "is_other")
    sums = rows.values_list(*key).annotate(number=Sum("calls"), failed=Sum("errors"))
    first = sums.filter(number__gt=0).order_by("-number", "tenant", "name")[:limit]
    return tuple(
        Ranked(tenant, name, bool(rest), calls, errors)
        for tenant, name, rest, calls, errors in first
    )


def by_tenant(
    tenants: frozenset[UUID], period: AnyPeriod, now: datetime
) -> Mapping[UUID, tuple[int, int, datetime | None]]:
    """The calls, the errors and the last call of each of these tenants that had any."""
    follower.refresh(now)
    rows = _totals_of(tenants).filter(_within(period, now)).values_list("tenant")
    sums = rows.annotate(number=Sum("calls"), failed=Sum("errors"), last=Max("last_at"))
    return {
        tenant: (calls, errors, last) for tenant, calls, errors, last in sums.filter(number__gt=0)
    }


def by_target(tenant: UUID, period: AnyPeriod, now: datetime) -> Mapping[str, CallNumbers]:
    """The figures of one tenant by target: a tool's name, a resource's URI. Those without a row of their own are left out."""
    follower.refresh(now)
    sums: dict[str, CallSums] = defaultdict(CallSums)
    rows = _rollups_of(frozenset({tenant}), *By.TARGET.named).filter(_within(period, now))
    for name, *columns in rows.values_list("name", *SUMMED):
        sums[name].add(sums_of(columns))
    return {name: target_sums.numbers() for name, target_sums in sums.items() if target_sums.calls}


def funnel(
    tenants: frozenset[UUID] | None,
    period: AnyPeriod,
    now: datetime,
    *,
    target: str | None = None,
    limit: int,
) -> Funnel:
    """What became of input requests, all or those of one target, by target and client program."""
    follower.refresh(now)
    buckets = _buckets(period, now)
    rows = _rollups_of(tenants, *By.TARGET_AND_CLIENT.whole).annotate(is_other=_IS_OTHER)
    if target is not None:
        rows = rows.filter(name=target)
    key = ("tenant", "name", "client", "is_other")
    counted = (
        rows.filter(of_buckets(buckets))
        .values_list(*key)
        .annotate(number=Sum("asked"), of=Sum("calls"))
        .filter(of__gt=0)
    )
    first = list(counted.order_by("-number", "name", "client", "tenant")[: limit + 1])
    keys = [(tenant, name, client, bool(rest)) for tenant, name, client, rest, *_ in first[:limit]]
    sums = {key: CallSums() for key in keys}
    near = rows.filter(
        of_runs(buckets),
        tenant__in={key[0] for key in keys},
        name__in={key[1] for key in keys},
    )
    columns = near.values_list(*key, "asked", "endings")
    for tenant, name, client, rest, input_requests, endings in columns:
        line_sums = sums.get((tenant, name, client, bool(rest)))
        if line_sums is not None:
            line_sums.add(CallSums(input_requests=input_requests, endings=counts_of(endings)))
    lines = [
        FunnelRow(tenant, name, client, line_sums.input_requests, line_sums.endings, rest)
        for (tenant, name, client, rest), line_sums in sums.items()
    ]
    return Funnel(tuple(lines), len(first) > limit)


def changed(tenants: frozenset[UUID] | None, after: int, limit: int) -> CallChanges:
    """The calls of these tenants whose rows changed after a cursor, at most `limit`.

    The cursor moves on also past changes of other tenants. Begin with `newest()`.
    """
    follower.refresh(timezone.now())
    calls: set[UUID] = set()
    cursor = after
    for number, text in ChangedCalls.objects.filter(number__gt=after).values_list():
        if number != cursor + 1:  # those between are no longer kept
            return CallChanges(None, newest())
        cursor = number
        by_tenant: dict[str, list[str]] = orjson.loads(text)
        for tenant, changed in by_tenant.items():
            if tenants is None or (tenant and UUID(tenant) in tenants):
                calls.update(map(UUID, changed))
        if len(calls) > limit:
            return CallChanges(None, newest())
    return CallChanges(frozenset(calls), cursor)


def newest() -> int:
    """The number of the last change, from which a live list goes on."""
    follower.refresh(timezone.now())
    return Following.objects.values_list("changes", flat=True).first() or 0


def lag(now: datetime | None = None) -> timedelta | None:
    """How far the figures are behind the record, at most; None if they have not begun.

    While nothing is new, this is written every few seconds only.
    """
    current = Following.objects.values_list("current_at", flat=True).first()
    return None if current is None else max(timedelta(), (now or timezone.now()) - current)


def is_complete() -> bool:
    """Whether all entries that were there when the summaries began are part of them."""
    return Following.objects.filter(missing_until=None).exists()


def _totals_of(tenants: frozenset[UUID] | None) -> QuerySet[RollUp]:
    return _rollups_of(frozenset({PLATFORM}) if tenants is None else tenants, By.ALL)


def _rollups_of(tenants: frozenset[UUID] | None, *dimensions: int) -> QuerySet[RollUp]:
    rows = RollUp.objects.filter(dimension__in=dimensions).order_by()
    return rows if tenants is None else rows.filter(tenant__in=tenants)


def _within(period: AnyPeriod, now: datetime, longest: Resolution | None = None) -> Q:
    return of_buckets(_buckets(period, now, longest))


def _buckets(period: AnyPeriod, now: datetime, longest: Resolution | None = None) -> list[Bucket]:
    """The buckets that cover the period once, as few as possible, none of them longer than `longest`."""
    begins, ends = (int(at.timestamp()) for at in (period.start(now), period.end(now)))
    if longest is None:
        of_days = isinstance(period, OwnPeriod) or period is Period.WEEK
        longest = Resolution.DAY if of_days else _longest(period)
    return cover(begins, ends, longest, now)


def _longest(period: AnyPeriod) -> Resolution:
    """Return the longest buckets that lie each in one point of a series."""
    if isinstance(period, Period):
        return _POINTS[period]
    begins, seconds = int(period.begins.timestamp()), int(period.step.total_seconds())
    return max(
        resolution
        for resolution in (Resolution.MINUTE, Resolution.HOUR, Resolution.DAY)
        if not begins % resolution.seconds and not seconds % resolution.seconds
    )
