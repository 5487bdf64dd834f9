"""Event streams of sessions: events are written before they are sent, and read to resume a stream.

The content of events is opaque here. `session_calls` decides which process may write to a stream.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from mcphost.calls.conditions_sql import Effects, announcement, effect
from mcphost.calls.models import Stream, StreamEvent
from mcphost.feed.services import announce_all

CHANGE_NAME: Final = "stream"
"""The change log's name for new events on a stream that is read in another process."""
FOLLOWED: Final = "followed"
"""The change log's name for a reader of a stream in a process that does not write to it."""
READ_AT_ONCE: Final = 100
PRUNED_AT_ONCE: Final = 500


class Event(NamedTuple):
    """One message of a stream, sealed."""

    number: int
    message: str


class StreamRow(NamedTuple):
    """A stream, with its tenant and session."""

    id: UUID
    tenant: UUID
    session: UUID


class Batch(NamedTuple):
    """Events that are written together. `kept` is how long they are stored; `told`: notify other
    processes of them."""

    events: Sequence[Event]
    kept: timedelta
    notify: bool = False


class Page(NamedTuple):
    """Events in their order; `whole`: no events follow them, now or later."""

    events: tuple[Event, ...]
    whole: bool


_STREAM: Final = {"stream": "uuid", "seconds": "double precision"}
_BEGIN: Final = effect(
    "stream_begin",
    {**_STREAM, "tenant": "uuid", "session": "uuid"},
    "INSERT INTO calls_stream (id, tenant, session, created_at, expires_at) "
    "SELECT r.stream, r.tenant, r.session, {now}, {later} FROM {r} WHERE {held} "
    "ON CONFLICT DO NOTHING",
)
_EXTEND: Final = effect(
    "stream_extend",
    _STREAM,
    "UPDATE calls_stream SET expires_at = {later} FROM {r} "
    "WHERE calls_stream.id = r.stream AND {held}",
)
_END: Final = effect(
    "stream_end",
    _STREAM,
    "UPDATE calls_stream SET expires_at = {later}, ended_at = {now} FROM {r} "
    "WHERE calls_stream.id = r.stream AND {held}",
)
_ADD: Final = effect(
    "stream_events",
    {**_STREAM, "tenant": "uuid", "number": "bigint", "message": "text"},
    "INSERT INTO calls_streamevent (stream, number, tenant, message, expires_at) "
    "SELECT r.stream, r.number, r.tenant, r.message, {later} FROM {r} WHERE {held} "
    "ON CONFLICT DO NOTHING",
)


def begin_effects(stream: StreamRow, batch: Batch) -> Effects:
    """The effects that write a new stream with its first events. A repetition does nothing."""
    return {
        _BEGIN: [{**_row(stream, batch), "session": stream.session.hex}],
        **_added(stream, batch),
    }


def add_effects(stream: StreamRow, batch: Batch, *, last: bool = False) -> Effects:
    """The effects that write events; `last` ends the stream.

    The condition must make sure that there is no other writer of the stream. Events that an
    earlier, unconfirmed commit wrote stay as they are.
    """
    return {_END if last else _EXTEND: [_row(stream, batch)], **_added(stream, batch)}


def _added(stream: StreamRow, batch: Batch) -> Effects:
    row = _row(stream, batch)
    events = [{**row, "number": event.number, "message": event.message} for event in batch.events]
    news = announcement(CHANGE_NAME, stream.tenant, stream.id.hex) if batch.notify else {}
    return {_ADD: events, **news}


def _row(stream: StreamRow, batch: Batch) -> dict[str, Any]:
    seconds = batch.kept.total_seconds()
    return {"stream": stream.id.hex, "tenant": stream.tenant.hex, "seconds": seconds}


def find(stream: UUID, tenant: UUID) -> StreamRow | None:
    """The stream, if it is of `tenant` and not deleted yet; else None."""
    row = Stream.objects.filter(id=stream, tenant=tenant).first()
    return None if row is None else StreamRow(row.id, row.tenant, row.session)


def read(stream: UUID, after: int) -> Page:
    """The next events after the number `after`; at most READ_AT_ONCE."""
    ended = not Stream.objects.filter(
        id=stream, ended_at=None
    ).exists()  # read first: if it has ended, all of its events are there
    rows = StreamEvent.objects.filter(stream=stream, number__gt=after).order_by("number")
    events = tuple(Event(*row) for row in rows.values_list("number", "message")[:READ_AT_ONCE])
    return Page(events, ended and len(events) < READ_AT_ONCE)


def last(stream: UUID) -> int:
    """The number of the stream's last event; 0 if it has none."""
    rows = StreamEvent.objects.filter(stream=stream).order_by("-number")
    return rows.values_list("number", flat=True).first() or 0


@transaction.atomic
def notify_processes(change_name: str, streams: Sequence[StreamRow]) -> None:
    """Notify all processes of new events on streams, or that the streams are followed."""
    announce_all(change_name, [(stream.tenant, stream.id.hex) for stream in streams])


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired events and events of expired streams, and those streams once they
    are empty; return the number of events."""
    over = Stream.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[:PRUNED_AT_ONCE])
    old = StreamEvent.objects.filter(Q(stream__in=ids) | Q(expires_at__lt=Now()))
    keys = list(old.order_by("expires_at").values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    StreamEvent.objects.filter(pk__in=keys).delete()
    events = StreamEvent.objects.filter(stream=OuterRef("id"))
    Stream.objects.filter(~Exists(events), id__in=ids).delete()
    return len(keys)
