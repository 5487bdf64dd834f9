"""Read the record, as frozen views, newest first, in pages."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import BooleanField, Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Length

from mcphost.audit.entries import EntryView, PayloadView, stored_bytes, view
from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import UnreadablePayloadError, payload_cipher
from mcphost.audit.records import (
    ANSWER_RECEIVED,
    CANCELLATIONS,
    GOES_ON,
    QUESTION_ASKED,
    REFUSALS,
    ROUND_FINISHED,
    ROUND_STARTED,
)
from mcphost.audit.windows import Walk, deadline, including, take
from mcphost.runtime.call import Delivery

MADE_BY_CLIENTS, MADE_BY_TRIALS = "clients", "trials"
PAGE = 50
MAX_ENTRIES = 1000
"""Most entries read of one call: a client can add entries by sending the same state repeatedly."""
MAX_PAYLOAD_BYTES = 8 << 20
"""Most bytes of payloads, as they are stored, that are read together. What is made of them for a page is several times as large."""
FINAL = Q(action=ROUND_FINISHED) & ~Q(outcome__in=GOES_ON)
"""Entries of rounds that ended their call with a result."""


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Filter of entries. `tenants`: None is all tenants and the platform's entries, empty is none.

    `principal` is an actor's id or token id, or a part of its label; `client` a part of the
    client's name; in double quotes, they are the whole label and name; `call` the beginning of a call id; `trace` a trace's id; `since` is inclusive,
    `until` exclusive; `words` are words of an error's reason; `actions` are what the action may begin
    with, none: any. `outcome`, `questions`, `words` and `made_by` (MADE_BY_CLIENTS or MADE_BY_TRIALS) apply to
    lists of calls (`audit.call_list`).
    """

    tenants: frozenset[UUID] | None
    target: str = ""
    outcome: str = ""
    questions: str = ""
    principal: str = ""
    client: str = ""
    call: str = ""
    trace: str = ""
    words: str = ""
    made_by: str = ""
    actions: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """A page of entries; `after` is the cursor of the next, older page, None on the last; `before` is
    that of the newer page, None on the first."""

    entries: tuple[EntryView, ...]
    after: UUID | None
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: older than `after`, or newer than `before`."""

    after: UUID | None = None
    before: UUID | None = None
    limit: int = PAGE


def verbs(
    filters: EntryFilter,
    *,
    after: UUID | None = None,
    before: UUID | None = None,
    limit: int = PAGE,
) -> Entries:
    """Actions of users and of the platform, no calls, newest first. `outcome` is ignored.

    A page with fewer than `limit` entries may not be the last (`audit.windows`).
    """
    query = Entry.objects.filter(call__isnull=True).exclude(action__in=REFUSALS)
    return _page(query, filters, Cursor(after, before, limit))


_REFUSED = "action IN ('" + "', '".join(REFUSALS) + "')"
"""As the condition of the indexes has it: with parameters, SQLite would not use them."""


def refusals(
    filters: EntryFilter,
    *,
    after: UUID | None = None,
    before: UUID | None = None,
    limit: int = PAGE,
) -> Entries:
    """Refused states, answers and outgoing messages, newest first, of any call or of none.

    A page with fewer than `limit` entries may not be the last (`audit.windows`).
    """
    query = Entry.objects.filter(RawSQL(_REFUSED, (), BooleanField()))  # noqa: S611 - constants
    return _page(query, filters, Cursor(after, before, limit))


def call_entries(call: UUID, tenants: frozenset[UUID] | None) -> tuple[EntryView, ...]:
    """The entries of one call, oldest first, at most MAX_ENTRIES (`part_of_call`); none if not of
    `tenants`."""
    rows = list(Entry.objects.filter(call=call).order_by("id")[: MAX_ENTRIES + 1])
    if len(rows) > MAX_ENTRIES:
        rows = part_of_call(call)
    # Not in the query: SQLite, which knows nothing of its tables, would read all of the tenant's.
    return tuple(view(row) for row in rows if tenants is None or row.tenant in tenants)


def part_of_call(call: UUID) -> list[Entry]:
    """Read MAX_ENTRIES of a call's entries: those that its state follows from, and the oldest.

    They are the entry of a round with the largest weight (`summaries.projection`), cancellations, and what
    was asked and answered in its round and later.
    """
    of_call = Entry.objects.filter(call=call)
    final = Case(When(FINAL, then=Value(1)), default=Value(0))
    finished = Case(When(action=ROUND_FINISHED, then=Value(1)), default=Value(0))
    newest_round = F("round").desc(nulls_last=True)
    last = (
        of_call.filter(action__in=(ROUND_STARTED, ROUND_FINISHED))
        .order_by(final.desc(), newest_round, finished.desc(), "-id")
        .first()
    )
    kept: dict[UUID, Entry] = {}
    if last is not None:
        cancelled = of_call.filter(action__in=CANCELLATIONS).order_by("-id")
        since = of_call.filter(
            action__in=(QUESTION_ASKED, ANSWER_RECEIVED), round__gte=last.round or 0
        ).order_by(newest_round, "-id")
        kept[last.id] = last
        kept.update((row.id, row) for row in cancelled[: MAX_ENTRIES // 10])
        kept.update((row.id, row) for row in since[: MAX_ENTRIES // 2])
    remaining = of_call.exclude(id__in=list(kept)).order_by("id")
    kept.update((row.id, row) for row in remaining[: MAX_ENTRIES - len(kept)])
    return [kept[id] for id in sorted(kept)]


def count_entries(call: UUID) -> int:
    """How many entries a call has, however many."""
    return Entry.objects.filter(call=call).count()


def first_call(tenant: UUID) -> EntryView | None:
    """The first entry of a tenant's first call by a client; None before one has arrived.

    Trials are no calls of clients.
    """
    rounds = Entry.objects.filter(tenant=tenant, action__in=(ROUND_STARTED, ROUND_FINISHED))
    row = rounds.exclude(delivery=Delivery.PLAYGROUND).order_by("id").first()
    return None if row is None else view(row)


def calls_beginning(
    digits: str, tenants: frozenset[UUID] | None, limit: int
) -> tuple[tuple[UUID, UUID, str], ...]:
    """The calls of `tenants` (None: of all) whose ids begin with these hexadecimal digits, with tenant
    and target."""
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    entries = of_tenants(Entry.objects.filter(call__range=(first, last)), tenants)
    rows = entries.order_by("call").values_list("call", "tenant", "target").distinct()[:limit]
    targets = {(call, tenant): target for call, tenant, target in rows if call and tenant}
    return tuple((call, tenant, target) for (call, tenant), target in targets.items())


def callers(calls: Collection[UUID]) -> Mapping[UUID, str]:
    """The caller of each of these calls, as in its first entry of a round."""
    rounds = Entry.objects.filter(action__in=(ROUND_STARTED, ROUND_FINISHED))
    earlier = rounds.filter(call=OuterRef("call"), id__lt=OuterRef("id"))
    first = rounds.filter(~Exists(earlier), call__in=calls)
    rows = first.values_list("call", "actor_label", "actor_kind")
    return {call: label or kind for call, label, kind in rows if call is not None}


def entry(entry_id: UUID, tenants: frozenset[UUID] | None) -> EntryView | None:
    """One entry, if it is of `tenants`."""
    row = of_tenants(Entry.objects.filter(id=entry_id), tenants).first()
    return None if row is None else view(row)


def payload(entry_id: UUID, tenant: UUID) -> PayloadView | None:
    """The decrypted payload of one entry of `tenant`; None if it has none.

    The caller checks whether the reader may see it.
    """
    row = Payload.objects.filter(entry=entry_id, tenant=tenant).first()
    return None if row is None else _decrypt_payload(row)


def payloads(entries: Sequence[UUID], tenant: UUID) -> Mapping[UUID, PayloadView]:
    """The decrypted payloads of these entries of `tenant`, of those that have one.

    Together they have at most MAX_PAYLOAD_BYTES. In the order of `entries`, those that would be more are
    left out.
    """
    query = Payload.objects.filter(tenant=tenant)
    sizes = dict(query.filter(entry__in=entries).values_list("entry", Length("ciphertext")))
    fitting_ids, size = [], 0
    for entry_id in (entry_id for entry_id in entries if entry_id in sizes):
        if size + sizes[entry_id] <= MAX_PAYLOAD_BYTES:
            fitting_ids.append(entry_id)
            size += sizes[entry_id]
    views = {entry_id: PayloadView(entry_id, left_out=True) for entry_id in sizes}
    views.update((row.entry, _decrypt_payload(row)) for row in query.filter(entry__in=fitting_ids))
    return views


def kept(entries: Collection[UUID], tenant: UUID) -> Mapping[UUID, PayloadView]:
    """The same without content: which entries have a payload, and which payloads were erased."""
    query = Payload.objects.filter(entry__in=entries, tenant=tenant)
    rows = query.values_list("entry", "erased_at", "erased_by")
    return {
        entry: PayloadView(entry, erased_at=erased_at, erased_by=erased_by)
        for entry, erased_at, erased_by in rows
    }


def _decrypt_payload(row: Payload) -> PayloadView:
    if row.erased_at is not None:
        return PayloadView(row.entry, erased_at=row.erased_at, erased_by=row.erased_by)
    cipher = payload_cipher()
    if cipher is None:
        return PayloadView(row.entry, problem="no payload cipher is set")
    try:
        plaintext = cipher.open(row.tenant, row.key_id, stored_bytes(row.ciphertext))
    except UnreadablePayloadError as error:
        return PayloadView(row.entry, problem=str(error))
    return PayloadView(row.entry, content=json.loads(plaintext))


def by_name(text: str, column: str) -> Q:
    """A column that contains a text; in double quotes, that is the text."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return Q(**{column: text[1:-1]})
    return Q(**{f"{column}__icontains": text})


def by_principal(text: str, label: str) -> Q:
    """The actor's id or token id, or the column of its label, as `by_name` compares it."""
    return Q(actor_id=text) | Q(token_id=text) | by_name(text, label)


def _unindexed_condition(filters: EntryFilter) -> Q:
    """What of a filter no index chooses, except `outcome`, `questions` and `words`."""
    condition = Q()
    if filters.target:
        condition &= Q(target=filters.target)
    if filters.principal:
        condition &= by_principal(filters.principal, "actor_label")
    if filters.client:
        condition &= by_name(filters.client, "client_name")
    if filters.call and (ids := call_ids(filters.call)) is not None:
        condition &= Q(call__range=ids)
    if filters.trace:
        condition &= Q(trace_id=filters.trace)
    if filters.actions:
        condition &= reduce(or_, (Q(action__startswith=action) for action in filters.actions))
    if filters.since is not None:
        condition &= Q(at__gte=filters.since)
    if filters.until is not None:
        condition &= Q(at__lt=filters.until)
    return condition


def _indexed_entries(query: QuerySet[Entry], filters: EntryFilter) -> QuerySet[Entry]:
    """The entries of a filter's tenants with ids of its period; none if no call's id begins as it says."""
    if call_ids(filters.call) is None:
        return query.none()
    query = of_tenants(query, filters.tenants)
    if filters.since is not None:
        query = query.filter(id__gte=first_id(filters.since - SKEW))
    if filters.until is not None:
        query = query.filter(id__lt=first_id(filters.until + SKEW))
    return query


def call_ids(prefix: str) -> tuple[UUID, UUID] | None:
    """The first and last call id that begin so; None if none does."""
    digits = prefix.strip().replace("-", "").lower()
    if len(digits) > 32 or set(digits) - set("0123456789abcdef") or (prefix and not digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


# An id is made with its record, and `at` may be a little older: ids only limit the range to search.
# A call that runs longer than this between the two would be missed at the edges of the range.
SKEW = timedelta(hours=1)


def first_id(at: datetime) -> UUID:
    """The smallest id of entries made at `at` (`records.new_id`)."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def time_of(id: UUID) -> datetime:
    """The time that the id of an entry begins with."""
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def of_tenants(query: QuerySet[Entry], tenants: frozenset[UUID] | None) -> QuerySet[Entry]:
    """The entries of these tenants; all for None."""
    return query if tenants is None else query.filter(tenant__in=tenants)


def _page(query: QuerySet[Entry], filters: EntryFilter, cursor: Cursor) -> Entries:
    """The page of entries older than `after`, or newer than `before`; the newest come first."""
    reverse, limit, rest = cursor.before is not None, cursor.limit, _unindexed_condition(filters)
    start = cursor.before if reverse else cursor.after
    walk = Walk("id", start, reverse, limit + 1, deadline())
    matching = (lambda window: window.filter(rest)) if rest else None
    entries, bound = take(_indexed_entries(query, filters), walk, matching, lambda rows: rows)
    page = tuple(view(row) for row in entries[:limit])
    following = page[-1].id if len(entries) > limit else bound
    back = None if start is None else page[0].id if page else including(start, reverse)
    return Entries(page[::-1], back, following) if reverse else Entries(page, following, back)
