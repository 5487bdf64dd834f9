"""Reading what was recorded, as frozen views, newest first, page by page."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import UnreadablePayloadError, payload_cipher
from mcphost.audit.records import ROUND_FINISHED, ROUND_STARTED

UNKNOWN = "unknown"
"""The outcome of a round that was started and of whose end there is no entry."""

PAGE = 50


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry as it was written; its columns are those of `models.Entry`."""

    id: UUID
    at: datetime
    tenant: UUID | None
    call: UUID | None
    leg: UUID | None
    round: int | None
    duration_us: int | None
    bytes_in: int | None
    bytes_out: int | None
    action: str
    actor_kind: str
    actor_id: str
    actor_label: str
    token_id: str
    method: str
    target: str
    target_version: str
    revision: str
    era: str
    delivery: str
    client_name: str
    client_version: str
    outcome: str
    reason: str
    source: str
    trace_id: str
    facts: Mapping[str, Any]
    commitment: bytes | None


@dataclass(frozen=True, slots=True)
class RoundView:
    """One round: its last entry, and when it started where that was recorded.

    `outcome` is `unknown` while the end of a started round has no entry.
    """

    entry: EntryView
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str


@dataclass(frozen=True, slots=True)
class PayloadView:
    """What was said in one entry: `content` (JSON), or why there is none any more.

    Erased: `erased_at` and `erased_by`. Otherwise unreadable: `problem`.
    """

    entry: UUID
    content: Any = None
    erased_at: datetime | None = None
    erased_by: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries. `tenants` None means every one's, platform entries too; empty means none.

    `principal` is an actor's id or token id; `call` the beginning of a call id; `since` counts,
    `until` does not.
    """

    tenants: frozenset[UUID] | None
    target: str = ""
    outcome: str = ""
    principal: str = ""
    call: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rounds:
    """A page of rounds; `after` of the next page, None on the last."""

    rounds: tuple[RoundView, ...]
    after: UUID | None


@dataclass(frozen=True, slots=True)
class Entries:
    """A page of entries; `after` of the next page, None on the last."""

    entries: tuple[EntryView, ...]
    after: UUID | None


def rounds(chosen: Filter, *, after: UUID | None = None, limit: int = PAGE) -> Rounds:
    """Rounds, newest first. A round that was only started stands where it started."""
    finished = Entry.objects.filter(
        action=ROUND_FINISHED, call=OuterRef("call"), round=OuterRef("round")
    )
    unfinished = Q(action=ROUND_STARTED) & ~Exists(finished)
    query = Entry.objects.filter(call__isnull=False)
    if chosen.outcome == UNKNOWN:
        query = query.filter(unfinished)
    elif chosen.outcome:
        query = query.filter(action=ROUND_FINISHED, outcome=chosen.outcome)
    else:
        query = query.filter(Q(action=ROUND_FINISHED) | unfinished)
    page, following = _page(_chosen(query, chosen), after, limit)
    starts = _starts(page)
    return Rounds(tuple(_round(entry, starts) for entry in page), following)


def verbs(chosen: Filter, *, after: UUID | None = None, limit: int = PAGE) -> Entries:
    """What people and the machine did beside calls, newest first. `outcome` and `call` are idle."""
    query = Entry.objects.filter(call__isnull=True)
    page, following = _page(_chosen(query, chosen), after, limit)
    return Entries(tuple(page), following)


def call_entries(call: UUID, tenants: frozenset[UUID] | None) -> tuple[EntryView, ...]:
    """All entries of one call, oldest first; none if the call is not of `tenants`."""
    query = _of_tenants(Entry.objects.filter(call=call), tenants)
    return tuple(_view(entry) for entry in query.order_by("id"))


def entry(entry_id: UUID, tenants: frozenset[UUID] | None) -> EntryView | None:
    """One entry, if it is of `tenants`."""
    found = _of_tenants(Entry.objects.filter(id=entry_id), tenants).first()
    return None if found is None else _view(found)


def payload(entry_id: UUID, tenant: UUID) -> PayloadView | None:
    """What was said in one entry of `tenant`, decrypted; None if nothing was kept of it.

    Whether the reader may see it is the caller's decision.
    """
    row = Payload.objects.filter(entry=entry_id, tenant=tenant).first()
    if row is None:
        return None
    if row.erased_at is not None:
        return PayloadView(entry_id, erased_at=row.erased_at, erased_by=row.erased_by)
    cipher = payload_cipher()
    if cipher is None:
        return PayloadView(entry_id, problem="no payload cipher is set")
    try:
        plaintext = cipher.open(tenant, row.key_id, bytes(row.ciphertext))
    except UnreadablePayloadError as error:
        return PayloadView(entry_id, problem=str(error))
    return PayloadView(entry_id, content=json.loads(plaintext))


def _chosen(query: QuerySet[Entry], chosen: Filter) -> QuerySet[Entry]:
    query = _of_tenants(query, chosen.tenants)
    if chosen.target:
        query = query.filter(target=chosen.target)
    if chosen.principal:
        query = query.filter(Q(actor_id=chosen.principal) | Q(token_id=chosen.principal))
    if chosen.call:
        query = (
            query.filter(call__range=span) if (span := _call_span(chosen.call)) else query.none()
        )
    if chosen.since is not None:
        query = query.filter(at__gte=chosen.since, id__gte=_first_id(chosen.since - _SKEW))
    if chosen.until is not None:
        query = query.filter(at__lt=chosen.until, id__lt=_first_id(chosen.until + _SKEW))
    return query


# Ids are made when a record is, and what `at` says may be a little older: the ids only cut the
# search short. A call that runs longer than this between the two would be missed at the edges.
_SKEW = timedelta(hours=1)


def _first_id(at: datetime) -> UUID:
    """The smallest id of entries made at `at` (`records.new_id`)."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def _of_tenants(query: QuerySet[Entry], tenants: frozenset[UUID] | None) -> QuerySet[Entry]:
    return query if tenants is None else query.filter(tenant__in=tenants)


def _call_span(beginning: str) -> tuple[UUID, UUID] | None:
    """The first and the last call id that begin with these hexadecimal digits."""
    digits = beginning.strip().replace("-", "").lower()
    if not digits or len(digits) > 32 or set(digits) - set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def _page(
    query: QuerySet[Entry], after: UUID | None, limit: int
) -> tuple[list[EntryView], UUID | None]:
    if after is not None:
        query = query.filter(id__lt=after)
    found = [_view(each) for each in query.order_by("-id")[: limit + 1]]
    page = found[:limit]
    return page, page[-1].id if len(found) > limit else None


def _starts(page: Iterable[EntryView]) -> dict[tuple[UUID | None, int | None], datetime]:
    calls = {each.call for each in page if each.action == ROUND_FINISHED}
    found = Entry.objects.filter(call__in=calls, action=ROUND_STARTED)
    return {(call, number): at for call, number, at in found.values_list("call", "round", "at")}


def _round(last: EntryView, starts: Mapping[tuple[UUID | None, int | None], datetime]) -> RoundView:
    if last.action == ROUND_STARTED:
        return RoundView(last, last.at, None, UNKNOWN)
    return RoundView(last, starts.get((last.call, last.round)), last.at, last.outcome)


def _view(row: Entry) -> EntryView:
    values = {name: getattr(row, name) for name in EntryView.__dataclass_fields__}
    values["commitment"] = None if row.commitment is None else bytes(row.commitment)
    return EntryView(**values)
