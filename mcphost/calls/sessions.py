"""Sessions of clients that speak a session-based revision: one row each, read for every request."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls.models import Session, SessionTopic
from mcphost.feed.services import announce

PRUNED_AT_ONCE = 500

ENDED = "session-ended"
TOPICS = "session-topics"
OPENED = "stream-opened"
CLOSED = "stream-closed"
"""What the feed tells of sessions. The object is the session; for streams, session and stream."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session that goes on. `client` is what the client said of itself: name, version, what it can."""

    id: UUID
    tenant: UUID
    who: str
    revision: str
    client: Mapping[str, Any]
    expires_at: datetime
    log_level: str = ""
    initialized: bool = False


class TooManyTopicsError(Exception):
    """The session is told of as many resources as it may be."""


def begin(row: SessionRow) -> None:
    """Write a new session."""
    Session.objects.create(
        id=row.id,
        tenant=row.tenant,
        who=row.who,
        revision=row.revision,
        client=row.client,
        created_at=timezone.now(),
        expires_at=row.expires_at,
    )


def find(session: UUID, tenant: UUID) -> SessionRow | None:
    """The session, if it is of `tenant` and goes on."""
    row = Session.objects.filter(
        id=session, tenant=tenant, ended_at=None, expires_at__gt=Now()
    ).first()
    if row is None:
        return None
    return SessionRow(
        row.id,
        row.tenant,
        row.who,
        row.revision,
        row.client,
        row.expires_at,
        row.log_level,
        row.initialized,
    )


@transaction.atomic
def end(session: UUID, tenant: UUID) -> bool:
    """End it for good, everywhere; False if it has ended before."""
    ended = bool(Session.objects.filter(id=session, ended_at=None).update(ended_at=Now()))
    if ended:
        announce(ENDED, tenant=tenant, object_id=session.hex)
    return ended


def initialize(session: UUID) -> None:
    """Its client is ready."""
    Session.objects.filter(id=session, initialized=False).update(initialized=True)


def set_log_level(session: UUID, level: str) -> None:
    """From which level on its client wants log messages."""
    Session.objects.filter(id=session).update(log_level=level)


@transaction.atomic
def subscribe(session: UUID, tenant: UUID, uri: str, most: int) -> None:
    """Have it told of a resource. Raises TooManyTopicsError beyond `most`."""
    Session.objects.select_for_update().filter(id=session).first()
    topics = SessionTopic.objects.filter(session=session)
    if not topics.filter(uri=uri).exists() and topics.count() >= most:
        raise TooManyTopicsError
    SessionTopic.objects.get_or_create(session_id=session, uri=uri)
    announce(TOPICS, tenant=tenant, object_id=session.hex)


@transaction.atomic
def unsubscribe(session: UUID, tenant: UUID, uri: str) -> None:
    """Have it told of a resource no more. Harmless if it was not."""
    if SessionTopic.objects.filter(session=session, uri=uri).delete()[0]:
        announce(TOPICS, tenant=tenant, object_id=session.hex)


def topics(session: UUID) -> tuple[str, ...]:
    """The resources that it is told of, by URI."""
    return tuple(SessionTopic.objects.filter(session=session).values_list("uri", flat=True))


@transaction.atomic
def stream_opened(session: UUID, tenant: UUID, stream: UUID) -> None:
    """It has one more standing stream, somewhere: the newest, which is told what there is to tell."""
    announce(OPENED, tenant=tenant, object_id=f"{session.hex} {stream.hex}")


@transaction.atomic
def stream_closed(session: UUID, tenant: UUID, stream: UUID) -> None:
    """It has one less."""
    announce(CLOSED, tenant=tenant, object_id=f"{session.hex} {stream.hex}")


@transaction.atomic
def prune() -> int:
    """Forget up to 500 sessions whose time is over; return how many there were."""
    over = Session.objects.filter(expires_at__lt=Now()).values_list("id", flat=True)
    ids = list(over[:PRUNED_AT_ONCE])
    Session.objects.filter(id__in=ids).delete()
    return len(ids)
