"""Find questions for a page of a list, the newest first.

As for calls (`search`), a page is read along the index that the filter chooses, or several that are merged. A
name of a tool, a person or a client has an index of its own; roll-ups say which names contain a text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from mcphost.audit.models import Following, QuestionSummary, RollUp
from mcphost.audit.selectors import SKEW, Cursor, first_id
from mcphost.audit.summaries.rollups import (
    KEPT,
    REST,
    Bucket,
    By,
    Resolution,
    id_at,
)
from mcphost.audit.summaries.search import MAX_NAMES, MAX_TENANTS, UNCOUNTED, IdPage, Taken, merge
from mcphost.audit.timeline import OPEN
from mcphost.audit.windows import ALL, IdSpan, Walk, deadline, take
from mcphost.runtime.call import Delivery

MAX_OVERDUE: Final = 1_000
"""Of so many overdue calls the questions are listed, the latest first."""


class Counted(NamedTuple):
    """A time of figures, which count a call by the time of its state, and no trials. `until` is exclusive."""

    since: datetime | None = None
    until: datetime | None = None


class Expiry(NamedTuple):
    """A time in which questions to clients expire: after its begin, and at its end or before."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Filter of questions. `tenants`: None is all, empty is none.

    `principal` and `client` are as in `selectors.EntryFilter`; a `client` in quotes is the whole name. `counted`:
    only those that figures of a time count. `states` are stored states, none: any. With `calls`,
    only the open questions of these calls; with `expires`, only those of clients that expire then. `since` is inclusive, `until` exclusive.
    """

    tenants: frozenset[UUID] | None
    target: str = ""
    principal: str = ""
    client: str = ""
    states: tuple[str, ...] = ()
    calls: tuple[UUID, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    counted: Counted | None = None
    expires: Expiry | None = None

    @property
    def whole_client(self) -> str | None:
        """The whole name of the client; None if only a part of it is known, or nothing."""
        is_quoted = len(self.client) > 1 and self.client[0] == self.client[-1] == '"'
        return self.client[1:-1] if is_quoted else None


class QuestionStream(NamedTuple):
    """Rows of one index, and the spans of it that may have matching ones."""

    rows: QuerySet[QuestionSummary]
    spans: Sequence[IdSpan] = ALL


def find_questions(
    filters: QuestionFilter, now: datetime, cursor: Cursor, until: float | None = None
) -> IdPage:
    """Find the questions of one page. `until`: see `windows.deadline`."""
    until, rest = deadline() if until is None else until, condition_of(filters)
    return merge([_take(stream, rest, cursor, until) for stream in _streams(filters, now)], cursor)


def condition_of(filters: QuestionFilter) -> Q:
    """What a filter asks of a row."""
    condition = Q()
    if filters.tenants is not None:
        condition &= Q(tenant__in=filters.tenants)
    if filters.target:
        condition &= Q(target=filters.target)
    if filters.whole_client is not None:
        condition &= Q(client_name=filters.whole_client)
    elif filters.client:
        condition &= Q(client_name__icontains=filters.client)
    if filters.principal:
        principal = filters.principal
        condition &= Q(actor_id=principal) | Q(token_id=principal) | Q(caller__icontains=principal)
    if filters.states:
        condition &= Q(state__in=filters.states)
    if filters.calls is not None:
        condition &= Q(call__in=filters.calls[:MAX_OVERDUE], state=OPEN)
    return condition & _time_condition(filters)


def _time_condition(filters: QuestionFilter) -> Q:
    condition = Q()
    if filters.since is not None:
        condition &= Q(at__gte=filters.since)
    if filters.until is not None:
        condition &= Q(at__lt=filters.until)
    if filters.expires is not None:
        condition &= ~Q(delivery=Delivery.PLAYGROUND)
        condition &= Q(expires_at__gt=filters.expires.since, expires_at__lte=filters.expires.until)
    return condition & _counted_condition(filters.counted)


def _counted_condition(counted: Counted | None) -> Q:
    if counted is None:
        return Q()
    condition = ~Q(delivery=Delivery.PLAYGROUND)
    if counted.since is not None:
        condition &= Q(last__gte=id_at(counted.since.timestamp()))
    if counted.until is not None:
        condition &= Q(last__lt=id_at(counted.until.timestamp()))
    return condition


def _take(stream: QuestionStream, rest: Q, cursor: Cursor, until: float) -> Taken:
    """Take the first rows of an index that match, one more than a page has."""
    reverse, need = cursor.before is not None, cursor.limit + 1
    start = cursor.before if reverse else cursor.after
    walk = Walk("id", start, reverse, need, until, stream.spans)
    matching = (lambda window: window.filter(rest)) if rest else None
    matches, bound = take(
        stream.rows, walk, matching, lambda rows: rows.values_list("id", flat=True)
    )
    ids = list(matches)
    return Taken(ids, ids[-1] if len(ids) == need else bound)


def _streams(filters: QuestionFilter, now: datetime) -> list[QuestionStream]:
    """Choose the indexes to read."""
    tenants, rows = filters.tenants, QuestionSummary.objects.all()
    first = None if filters.since is None else first_id(filters.since - SKEW)
    # What figures of a time count was asked before its end.
    ends = [until for until in (filters.until, filters.counted and filters.counted.until) if until]
    end = first_id(min(ends) + SKEW) if ends else None
    whole = (IdSpan(first, end),)
    if filters.calls is not None:
        return [QuestionStream(rows.filter(call__in=filters.calls[:MAX_OVERDUE]), whole)]
    # Most questions may be accepted: then another filter chooses better.
    if filters.states and "accept" not in filters.states:
        return [
            stream
            for state in filters.states
            for stream in _by_tenant(rows.filter(state=state), tenants, whole)
        ]
    named = _named_streams(filters, now, whole)
    return _by_tenant(rows, tenants, whole) if named is None else named


def _by_tenant(
    rows: QuerySet[QuestionSummary],
    tenants: frozenset[UUID] | None,
    spans: Sequence[IdSpan],
) -> list[QuestionStream]:
    if tenants is None or len(tenants) > MAX_TENANTS:
        return [QuestionStream(rows, spans)]
    return [QuestionStream(rows.filter(tenant=tenant), spans) for tenant in sorted(tenants)]


def _named_streams(
    filters: QuestionFilter, now: datetime, whole: Sequence[IdSpan]
) -> list[QuestionStream] | None:
    """The rows of each name that a filter selects; None if it selects none, or too many of them."""
    tenants = filters.tenants
    few = tenants is not None and len(tenants) <= MAX_TENANTS
    if filters.principal:
        named = Q(name__icontains=filters.principal) | Q(client=filters.principal)
        return _by_name(filters, "caller", (By.CALLER, named), now, whole)
    if filters.target:
        if few:
            rows = QuestionSummary.objects.filter(target=filters.target)
            return _by_tenant(rows, tenants, whole)
        return _by_name(filters, "target", (By.TARGET, Q(name=filters.target)), now, whole)
    if filters.client:
        whole_name = filters.whole_client
        if few and whole_name is not None:
            rows = QuestionSummary.objects.filter(client_name=whole_name)
            return _by_tenant(rows, tenants, whole)
        named = Q(name__icontains=filters.client) if whole_name is None else Q(name=whole_name)
        return _by_name(filters, "client_name", (By.CLIENT, named), now, whole)
    return None


def _by_name(
    filters: QuestionFilter,
    column: str,
    names: tuple[By, Q],
    now: datetime,
    whole: Sequence[IdSpan],
) -> list[QuestionStream] | None:
    """The rows of the names that roll-ups know, and all rows of times that roll-ups do not count."""
    by, named = names
    opened = Following.objects.get()
    first = Bucket(Resolution.DAY, Resolution.DAY.bucket(now - KEPT[Resolution.DAY]) + 1)
    counted = RollUp.objects.order_by()
    if filters.tenants is not None:
        counted = counted.filter(tenant__in=filters.tenants)
    pairs: set[tuple[UUID, str]] = set()
    for period in _covered(opened, first):
        if counted.filter(period, dimension=by + REST).exists():
            return None
        rows = counted.filter(period, named, dimension__in=by.named)
        pairs |= set(rows.values_list("tenant", "name").distinct()[: MAX_NAMES + 1])
        if len(pairs) > MAX_NAMES:
            return None
    rest_end = min(opened.open_hour * 3600, (now - UNCOUNTED).timestamp())
    rest = [IdSpan(None, id_at(first.begins)), IdSpan(id_at(rest_end), None)]
    streams = [
        QuestionStream(QuestionSummary.objects.filter(**{"tenant": tenant, column: name}), whole)
        for tenant, name in sorted(pairs)
    ]
    return [*streams, *_by_tenant(QuestionSummary.objects.all(), filters.tenants, rest)]


def _covered(opened: Following, first: Bucket) -> Iterable[Q]:
    """The buckets that together count all calls: the days, and what shorter ones count since."""
    yield Q(resolution=Resolution.DAY, bucket__gte=first.number)
    today = Bucket(Resolution.DAY, opened.open_day).within(Resolution.HOUR)
    yield Q(resolution=Resolution.HOUR, bucket__gte=today.number)
    hour = Bucket(Resolution.HOUR, opened.open_hour).within(Resolution.MINUTE)
    yield Q(resolution=Resolution.MINUTE, bucket__gte=hour.number)
