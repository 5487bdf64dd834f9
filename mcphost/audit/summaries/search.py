"""Find calls for a page of a list, in the order of the entries that determine their states.

A page is read along one index that the filter chooses, or several that are merged: each gives calls in
the order of the list. Whatever else the filter asks is compared with the rows (`audit.windows`): for a target, a
client or a caller only with those of hours in which roll-ups count calls of that name.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from mcphost.audit.entries import UNKNOWN
from mcphost.audit.models import CallMark, CallSummary, Following, RollUp
from mcphost.audit.selectors import (
    MADE_BY_TRIALS,
    SKEW,
    Cursor,
    EntryFilter,
    by_name,
    by_principal,
    call_ids,
    first_id,
)
from mcphost.audit.summaries.batches import ANSWERED, ERROR, REASON, REFUSED, WITH_QUESTIONS
from mcphost.audit.summaries.projection import COMPLETE
from mcphost.audit.summaries.rollups import (
    KEPT,
    REST,
    Bucket,
    By,
    Resolution,
    id_at,
)
from mcphost.audit.timeline import DECLINED
from mcphost.audit.windows import ALL, IdSpan, Walk, deadline, including, take
from mcphost.runtime.call import Delivery

NO_ERROR: Final = "no_error"
"""The outcomes of calls that are neither errors nor declined, also of those that go on."""
MAX_TENANTS: Final = 20
MAX_NAMES: Final = 20
"""Of so many names it is known in which hours they had calls, of more in which days."""
UNCOUNTED: Final = timedelta(hours=2)
"""Calls that are not older may be missing in roll-ups: for so long a process may be behind, or its clock ahead."""
SHORT_PREFIX: Final = 8
"""A shorter beginning of a call id is compared row by row: too many calls begin so."""

Rows = QuerySet[CallSummary] | QuerySet[CallMark]


class _Stream(NamedTuple):
    """Rows of one index, and the spans of it that may have matching ones."""

    rows: Rows
    spans: Sequence[IdSpan] = ALL


class Taken(NamedTuple):
    """The first rows of one index; `bound` is how far all matches are known, None: to the end."""

    ids: list[UUID]
    bound: UUID | None


class IdPage(NamedTuple):
    """The ids of the rows of a page, newest first, and the cursors beside it."""

    ids: Sequence[UUID]
    after: UUID | None
    before: UUID | None


def find(filters: EntryFilter, now: datetime, cursor: Cursor, until: float | None = None) -> IdPage:
    """Find the calls of one page, by their `last` entries. `until`: see `windows.deadline`."""
    streams, rest = _plan(filters, now)
    until = deadline() if until is None else until
    return merge([_take(stream, rest, cursor, until) for stream in streams], cursor)


def merge(parts: Sequence[Taken], cursor: Cursor) -> IdPage:
    """Merge what was taken from several indexes to one page."""
    reverse = cursor.before is not None
    ids = {id for part in parts for id in part.ids}
    bounds = [part.bound for part in parts if part.bound is not None]
    bound: UUID | None = None
    if bounds:
        bound = min(bounds) if reverse else max(bounds)
        ids = {id for id in ids if (id <= bound if reverse else id >= bound)}
    ordered = sorted(ids, reverse=not reverse)
    page = ordered[: cursor.limit]
    following: UUID | None = None
    if len(ordered) > cursor.limit:
        following = page[-1]
    elif bounds:
        following = bound
    start = cursor.before if reverse else cursor.after
    back = None if start is None else page[0] if page else including(start, reverse)
    return IdPage(page[::-1], back, following) if reverse else IdPage(page, following, back)


def open_calls(tenants: frozenset[UUID] | None, now: datetime) -> QuerySet[CallSummary]:
    """The calls that wait for an answer at `now`, the soonest to expire first."""
    calls = _calls().filter(expires_at__gt=now)
    if tenants is not None:
        calls = calls.filter(Q(own_tenant__in=tenants))
    return calls.order_by("expires_at", "call")


def running_calls(tenants: frozenset[UUID], target: str, since: datetime) -> QuerySet[CallSummary]:
    """The calls of a target that began a round after `since` and have no end, found by their mark."""
    first = first_id(since - SKEW)
    marked = CallMark.objects.filter(mark=UNKNOWN, tenant__in=tenants, last__gte=first)
    return _calls().filter(call__in=marked.order_by().values("call"), target=target, at__gte=since)


def _plan(filters: EntryFilter, now: datetime) -> tuple[list[_Stream], Q]:
    """Choose the indexes to read, and what to compare with each row."""
    whole = call_ids(filters.call)
    if whole is None:
        return [], Q()
    rest = _conditions(filters, now)
    if filters.call:
        rest["call"] = Q(call__range=whole)
    streams, implied = _streams(filters, now, whole)
    period = _period_span(filters)
    streams = [
        stream._replace(spans=[part for span in stream.spans if (part := span.within(period))])
        for stream in streams
    ]
    return streams, Q(*(condition for name, condition in rest.items() if name not in implied))


def _streams(
    filters: EntryFilter, now: datetime, whole: tuple[UUID, UUID]
) -> tuple[list[_Stream], set[str]]:
    """Choose the indexes to read, and the conditions that all of their rows meet."""
    calls, tenants = _calls(), filters.tenants
    marks = [*_question_mark(filters.questions), *_state_mark(filters.outcome)]
    marks += [REASON] if filters.words else []
    if len(filters.call.replace("-", "")) >= SHORT_PREFIX:
        return [_Stream(calls.filter(call__range=whole))], {"call"}
    if filters.trace:
        return [_Stream(calls.filter(trace_id=filters.trace))], {"trace"}
    if marks:
        return _by_tenant(CallMark.objects.filter(mark=marks[0]), tenants), _if_few(tenants)
    if filters.principal:
        named = by_name(filters.principal, "name") | Q(client=filters.principal)
        return _by_name(tenants, By.CALLER, named, now), _if_few(tenants)
    if filters.target:
        return _by_name(tenants, By.TARGET, Q(name=filters.target), now), _if_few(tenants)
    if filters.client:
        named = by_name(filters.client, "name")
        return _by_name(tenants, By.CLIENT, named, now), _if_few(tenants)
    return _by_tenant(calls, tenants), _if_few(tenants)


def _calls() -> QuerySet[CallSummary]:
    """All calls. Their `own_tenant` is compared; by `tenant`, SQLite would rather read all of a tenant than
    the few rows that are compared."""
    return CallSummary.objects.alias(own_tenant=Coalesce("tenant", "tenant"))


def _by_tenant(
    rows: Any, tenants: frozenset[UUID] | None, spans: Sequence[IdSpan] = ALL
) -> list[_Stream]:
    if tenants is None or len(tenants) > MAX_TENANTS:
        return [_Stream(rows, spans)]
    return [_Stream(rows.filter(tenant=tenant), spans) for tenant in sorted(tenants)]


def _if_few(tenants: frozenset[UUID] | None) -> set[str]:
    """The condition that `_by_tenant` implies."""
    return {"tenants"} if tenants is not None and len(tenants) <= MAX_TENANTS else set()


def _by_name(tenants: frozenset[UUID] | None, by: By, named: Q, now: datetime) -> list[_Stream]:
    """The calls of days in which roll-ups count calls of such names, or of names without a row of their own; of
    few names, those of the hours. What roll-ups do not count yet, or no more, is compared row by row."""
    opened = Following.objects.get()
    today = Bucket(Resolution.DAY, opened.open_day)
    first = Bucket(Resolution.DAY, Resolution.DAY.bucket(now - KEPT[Resolution.DAY]) + 1)
    rows = RollUp.objects.order_by().filter(dimension__in=by.named)
    rest = RollUp.objects.order_by().filter(dimension=by + REST)
    if tenants is not None:
        rows, rest = rows.filter(tenant__in=tenants), rest.filter(tenant__in=tenants)
    days = Q(resolution=Resolution.DAY, bucket__gte=first.number)
    hours = _since(today)
    names = set(rows.filter(days, named).values_list("name", flat=True).distinct()[: MAX_NAMES + 1])
    buckets = _buckets(rows.filter(days, named)) | _buckets(rows.filter(hours, named))
    rest_buckets = _buckets(rest.filter(days)) | _buckets(rest.filter(hours))
    if len(names) <= MAX_NAMES and not rest_buckets:
        # The first day all of whose hours are kept.
        kept = Bucket(Resolution.DAY, Resolution.DAY.bucket(now - KEPT[Resolution.HOUR]) + 1)
        buckets = {
            bucket for bucket in buckets if bucket.resolution < kept.resolution or bucket < kept
        }
        buckets |= _buckets(rows.filter(_since(kept), name__in=names))
    counted = min(opened.open_hour * 3600, (now - UNCOUNTED).timestamp())
    return _by_tenant(_calls(), tenants, _spans(buckets | rest_buckets, first.begins, counted))


def _since(day: Bucket) -> Q:
    """The hours from a day on."""
    return Q(resolution=Resolution.HOUR, bucket__gte=day.within(Resolution.HOUR).number)


def _buckets(rows: QuerySet[RollUp]) -> set[Bucket]:
    buckets = rows.values_list("resolution", "bucket").distinct()
    return {Bucket(Resolution(resolution), number) for resolution, number in buckets}


def _spans(buckets: Iterable[Bucket], kept: int, counted: float) -> list[IdSpan]:
    """The ids of these buckets, of times before `kept` and of those from `counted` on, in seconds since 1970."""
    parts = [(0.0, kept), (counted, inf)]
    parts += [(bucket.begins, bucket.ends) for bucket in buckets]
    joined: list[tuple[float, float]] = []
    for first, end in sorted(parts):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    return [IdSpan(id_at(first), None if end == inf else id_at(end)) for first, end in joined]


def _question_mark(which: str) -> Iterable[str]:
    if which:
        yield which if which in (WITH_QUESTIONS, REFUSED) else ANSWERED + which


def _state_mark(outcome: str) -> Iterable[str]:
    if outcome not in ("", COMPLETE, NO_ERROR):
        yield outcome


def _outcome_condition(outcome: str, now: datetime) -> Q:
    if outcome == ERROR:
        return Q(is_error=True)
    if outcome == NO_ERROR:
        return Q(is_error=False) & ~Q(state=DECLINED)
    return Q(state=outcome) if outcome else Q()


def _mark_condition(filters: EntryFilter, now: datetime) -> Q:
    """What a row must have of its state, input requests and reason."""
    condition = _outcome_condition(filters.outcome, now)
    for mark in _question_mark(filters.questions):
        condition &= Q(Exists(CallMark.objects.filter(call=OuterRef("call"), mark=mark)))
    for term in filters.words.split():
        condition &= Q(reason__icontains=term)
    return condition


def _conditions(filters: EntryFilter, now: datetime) -> dict[str, Q]:
    """What is compared with a row, by name, as far as no index implies it."""
    conditions = {}
    if filters.since is not None or filters.until is not None:
        conditions["period"] = _period_condition(filters)
    if filters.outcome or filters.questions or filters.words:
        conditions["marks"] = _mark_condition(filters, now)
    if filters.target:
        conditions["target"] = Q(target=filters.target)
    if filters.trace:
        conditions["trace"] = Q(trace_id=filters.trace)
    if filters.client:
        conditions["client"] = by_name(filters.client, "client_name")
    if filters.principal:
        conditions["principal"] = by_principal(filters.principal, "caller")
    if filters.made_by:
        is_trial = Q(delivery=Delivery.PLAYGROUND)
        conditions["made_by"] = is_trial if filters.made_by == MADE_BY_TRIALS else ~is_trial
    if filters.tenants is not None:
        conditions["tenants"] = Q(own_tenant__in=filters.tenants)
    return conditions


def _period_span(filters: EntryFilter) -> IdSpan:
    """The ids of the period, so that what is newer or older is not compared row by row."""
    first = None if filters.since is None else first_id(filters.since - SKEW)
    return IdSpan(first, None if filters.until is None else first_id(filters.until + SKEW))


def _period_condition(filters: EntryFilter) -> Q:
    condition = Q()
    if filters.since is not None:
        condition &= Q(at__gte=filters.since)
    if filters.until is not None:
        condition &= Q(at__lt=filters.until)
    return condition


def _take(stream: _Stream, rest: Q, cursor: Cursor, until: float) -> Taken:
    """Take the first rows of an index that match, one more than a page has."""
    reverse, need = cursor.before is not None, cursor.limit + 1
    walk = Walk(
        "last", cursor.before if reverse else cursor.after, reverse, need, until, stream.spans
    )
    matching = partial(_matching, rest=rest, order=walk.order) if rest else None
    matches, bound = take(
        stream.rows, walk, matching, lambda rows: rows.values_list("last", flat=True)
    )
    lasts = list(matches)
    return Taken(lasts, lasts[-1] if len(lasts) == need else bound)


def _matching(window: Any, rest: Q, order: str) -> Any:
    if window.model is CallMark:
        marked = window.order_by().values("call")
        window = _calls().filter(call__in=marked).order_by(order)
    return window.filter(rest)
