"""Streams of sessions and their events: written before they are shown, read by whoever resumes one.

What an event holds is opaque here. Whose call writes on a stream is `streamed`'s business.
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
"""What the feed calls it that there are new events, where somebody follows from another process."""
FOLLOWED: Final = "followed"
"""And that somebody follows a stream from a process which does not write on it."""
READ_AT_ONCE: Final = 100
PRUNED_AT_ONCE: Final = 500


class Event(NamedTuple):
    """One message of a stream, sealed."""

    number: int
    message: str


class StreamRow(NamedTuple):
    """A stream: of which tenant and session it is."""

    id: UUID
    tenant: UUID
    session: UUID


class Page(NamedTuple):
    """Events in their order; `whole` says that nothing follows them, now or later."""

    events: tuple[Event, ...]
    whole: bool


def begin(stream: StreamRow, kept: timedelta) -> None:
    """Write a new stream. In the caller's transaction; a second time does nothing."""
    now = timezone.now()
    row = Stream(**stream._asdict(), created_at=now, expires_at=now + kept)
    Stream.objects.bulk_create([row], ignore_conflicts=True)


def add(
    stream: UUID, tenant: UUID, events: Sequence[Event], kept: timedelta, *, last: bool = False
) -> None:
    """Write events, of which there are no others by the caller's leave; `last` ends the stream.

    In the caller's transaction. What was written before, in a commit of which nobody was told, stays.
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
    """The stream, if it is of `tenant` and not forgotten."""
    row = Stream.objects.filter(id=stream, tenant=tenant).first()
    return None if row is None else StreamRow(row.id, row.tenant, row.session)


def read(stream: UUID, after: int) -> Page:
    """The next events after that number; at most READ_AT_ONCE."""
    ended = not Stream.objects.filter(
        id=stream, ended_at=None
    ).exists()  # first: then all are there
    rows = StreamEvent.objects.filter(stream=stream, number__gt=after).order_by("number")
    found = tuple(Event(*row) for row in rows.values_list("number", "message")[:READ_AT_ONCE])
    return Page(found, ended and len(found) < READ_AT_ONCE)


def last(stream: UUID) -> int:
    """The number of its last event."""
    rows = StreamEvent.objects.filter(stream=stream).order_by("-number")
    return rows.values_list("number", flat=True).first() or 0


@transaction.atomic
def tell(what: str, about: Sequence[StreamRow]) -> None:
    """Tell every process of NEWS of streams, or that they are FOLLOWED."""
    announce_all(what, [(each.tenant, each.id.hex) for each in about])


@transaction.atomic
def prune() -> int:
    """Forget up to 500 events of streams whose time is over, and those streams that have none left;
    return how many events."""
    over = Stream.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[:PRUNED_AT_ONCE])
    old = StreamEvent.objects.filter(Q(stream__in=ids) | Q(expires_at__lt=Now()))
    keys = list(old.order_by("expires_at").values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    StreamEvent.objects.filter(pk__in=keys).delete()
    events = StreamEvent.objects.filter(stream=OuterRef("id"))
    Stream.objects.filter(~Exists(events), id__in=ids).delete()
    return len(keys)
