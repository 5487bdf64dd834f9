"""Event streams of sessions: events are written before they are sent, and read to resume a stream.

The content of events is opaque here. `session_calls` decides which process may write to a stream.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls.models import Stream, StreamEvent
from mcphost.feed.services import announce_all

NEWS: Final = "stream"
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


class Page(NamedTuple):
    """Events in their order; `whole`: no events follow them, now or later."""

    events: tuple[Event, ...]
    whole: bool


def begin(stream: StreamRow, kept: timedelta) -> None:
    """Write a new stream. In the caller's transaction; a repetition does nothing."""
    now = timezone.now()
    row = Stream(**stream._asdict(), created_at=now, expires_at=now + kept)
    Stream.objects.bulk_create([row], ignore_conflicts=True)


def add(
    stream: UUID, tenant: UUID, events: Sequence[Event], kept: timedelta, *, last: bool = False
) -> None:
    """Write events; `last` ends the stream. The caller must be the only writer of the stream.

    In the caller's transaction. Events that an earlier, unconfirmed commit wrote stay as they are.
    """
    until = timezone.now() + kept
    rows = [
        StreamEvent(
            stream=stream, tenant=tenant, number=each.number, message=each.message, expires_at=until
        )
        for each in events
    ]
    StreamEvent.objects.bulk_create(rows, ignore_conflicts=True)
    changes = {"ended_at": Now()} if last else {}
    Stream.objects.filter(id=stream).update(expires_at=until, **changes)


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
    found = tuple(Event(*row) for row in rows.values_list("number", "message")[:READ_AT_ONCE])
    return Page(found, ended and len(found) < READ_AT_ONCE)


def last(stream: UUID) -> int:
    """The number of the stream's last event; 0 if it has none."""
    rows = StreamEvent.objects.filter(stream=stream).order_by("-number")
    return rows.values_list("number", flat=True).first() or 0


@transaction.atomic
def tell(what: str, about: Sequence[StreamRow]) -> None:
    """Notify all processes that streams have NEWS, or that they are FOLLOWED."""
    announce_all(what, [(each.tenant, each.id.hex) for each in about])


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
