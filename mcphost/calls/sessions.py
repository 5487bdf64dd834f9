"""Sessions of clients that speak a session-based revision: one row each, checked for every request.

The time of the last use is noted in memory and written every few seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.audit.writer.conditions import Condition, Values
from mcphost.calls.conditions_sql import Lock, announcement, change
from mcphost.calls.models import GetStream, Session, SessionTopic, StreamedCall
from mcphost.calls.ownership import LEASE
from mcphost.feed import nodes
from mcphost.feed.services import announce, announce_all

_OPEN: Final = (
    "calls_session.ended_at IS NULL AND (calls_session.expires_at > {now} OR EXISTS "
    "(SELECT 1 FROM calls_streamedcall WHERE calls_streamedcall.session = calls_session.id "
    "AND calls_streamedcall.request <> '' AND calls_streamedcall.expires_at > {now}))"
)
"""SQL template: the session has not ended. A call in progress keeps it: a question may be open."""

IS_OPEN: Final = (
    f"EXISTS (SELECT 1 FROM calls_session WHERE calls_session.id = r.session AND {_OPEN})"  # noqa: S608
)
"""SQL template: the session of `r` is open."""

PRUNED_AT_ONCE = 500
ENDED_KEPT: Final = timedelta(minutes=1)
"""How long the row of an ended session is kept, for requests that have already read it."""

ENDED = "session-ended"
TOPICS = "session-topics"
OPENED = "stream-opened"
CLOSED = "stream-closed"
"""Changes of sessions in the change log. The object id is the session; for streams both ids."""

_LOCKS: Final = 0x5E551045
"""The first number of the advisory locks of holders. The second number is a part of the holder: two
holders with the same one wait for one another."""
_SPARE: Final = 20
"""How many more idle sessions are read than must end: some may be busy in this process."""

IsBusy = Callable[[UUID], bool]
"""Whether a session has a call in progress that has no row yet."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """An open session. `client` is the client's name, version and capabilities. It expires at
    `expires_at` if it is not used before.

    Sessions with the same `holder` (a digest) are counted together.
    """

    id: UUID
    tenant: UUID
    principal_key: str
    revision: str
    client: Mapping[str, Any]
    expires_at: datetime
    log_level: str = ""
    holder: str = ""
    created_at: datetime | None = None


_COLUMNS: Final = tuple(field.name for field in fields(SessionRow))


class TooManySessionsError(Exception):
    """The holder has reached its limit of sessions, and too few of them are idle."""


class TooManyTopicsError(Exception):
    """The session has reached its limit of resource subscriptions."""


class SessionOverError(Exception):
    """The session has ended since it was read."""


_SESSION: Final = {"session": "uuid", "nonce": "text"}
_ID: Final = "RETURNING {hex}calls_session.id{end} AS nonce"
_BEGIN: Final = change(
    "session_begin",
    {
        **_SESSION,
        "tenant": "uuid",
        "principal_key": "text",
        "holder": "text",
        "revision": "text",
        "client": "jsonb",
        "most": "bigint",
        "seconds": "double precision",
    },
    "INSERT INTO calls_session (id, tenant, principal_key, holder, revision, client, log_level, "  # noqa: S608
    "created_at, used_at, expires_at) SELECT r.session, r.tenant, r.principal_key, r.holder, r.revision, "
    "r.client, '', {now}, {now}, {later} FROM (SELECT r.*, row_number() OVER "
    "(PARTITION BY r.holder ORDER BY r.session) AS place FROM {r}) AS r WHERE r.place + (SELECT count(*) "
    f"FROM calls_session WHERE calls_session.holder = r.holder AND {_OPEN}) <= r.most "
    f"ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at {_ID}",
)
_CHECK: Final = change(
    "session_check",
    {**_SESSION, "level": "text"},
    "SELECT r.nonce FROM {r}, calls_session WHERE calls_session.id = r.session "  # noqa: S608
    f"AND {_OPEN} AND calls_session.log_level = r.level",
    reads=True,
)
_END: Final = change(
    "session_end",
    {**_SESSION, "seconds": "double precision"},
    "UPDATE calls_session SET ended_at = {now}, expires_at = {later} FROM {r} "  # noqa: S608
    f"WHERE {{before}} AND calls_session.id = r.session {_ID}",
    # In the order of their ids, as everywhere: so no two processes wait for one another.
    lock=Lock("calls_session", "calls_session.id = r.session AND calls_session.ended_at IS NULL"),
    made="SELECT r.nonce FROM {r}, calls_session "
    "WHERE calls_session.id = r.session AND calls_session.ended_at IS NOT NULL",
)
_OPEN_STREAM: Final = change(
    "session_stream",
    {**_SESSION, "stream": "uuid", "owner": "uuid", "most": "bigint"},
    "INSERT INTO calls_getstream (id, session_id, owner, opened_at) "
    "SELECT r.stream, r.session, r.owner, {now} FROM (SELECT r.*, row_number() OVER "
    "(PARTITION BY r.session ORDER BY r.stream) AS place FROM {r} WHERE {before}) AS r "
    "WHERE NOT EXISTS "
    "(SELECT 1 FROM calls_sessiontopic WHERE calls_sessiontopic.session_id = r.session) "
    "AND r.place + (SELECT count(*) FROM calls_getstream "
    "WHERE calls_getstream.session_id = r.session AND calls_getstream.id <> r.stream) <= r.most "
    "ON CONFLICT (id) DO UPDATE SET owner = excluded.owner "
    "RETURNING {hex}calls_getstream.id{end} AS nonce",
    # If it is locked, `stream_opened` will wait for it: this would be out of order.
    lock=Lock(
        "calls_session",
        f"calls_session.id = r.session AND {_OPEN}",
        free=True,
    ),
)


def begin_within(row: SessionRow, max_sessions: int) -> Condition:
    """Condition: the holder has fewer than `max_sessions` sessions. Writes a new one.

    Sessions that other processes begin at the same moment are not counted yet: the next `begin`
    ends as many idle ones as there are too many.
    """
    values = {
        **_row(row.id),
        "tenant": row.tenant.hex,
        "principal_key": row.principal_key,
        "holder": row.holder,
        "revision": row.revision,
        "client": row.client,
        "most": max_sessions,
        "seconds": (row.expires_at - timezone.now()).total_seconds(),
    }
    return Condition(_BEGIN, row.id.hex, lambda: Values(values))


def is_open(session: UUID, log_level: str) -> Condition:
    """Condition: the session is open, and has this log level. Only reads."""
    nonce = token_hex(8)
    values = {**_row(session), "nonce": nonce, "level": log_level}
    return Condition(_CHECK, nonce, lambda: Values(values))


def end(session: UUID, tenant: UUID) -> Condition:
    """Condition: the session has not ended. Ends it, in all processes."""
    values = Values(
        {**_row(session), "seconds": ENDED_KEPT.total_seconds()},
        announcement(ENDED, tenant, session.hex),
    )
    return Condition(_END, session.hex, lambda: values)


def open_stream(
    session: UUID, tenant: UUID, stream: UUID, owner: UUID, max_streams: int
) -> Condition:
    """Condition: the session is open, has no subscriptions, and fewer than `max_streams` GET streams.

    Registers a new one, as `stream_opened`.
    """
    values = Values(
        {
            **_row(session),
            "nonce": stream.hex,
            "stream": stream.hex,
            "owner": owner.hex,
            "most": max_streams,
        },
        announcement(OPENED, tenant, _named(session, stream)),
    )
    return Condition(_OPEN_STREAM, stream.hex, lambda: values)


def _row(session: UUID) -> dict[str, Any]:
    return {"session": session.hex, "nonce": session.hex}


def begin(row: SessionRow, max_sessions: int, is_busy: IsBusy) -> tuple[UUID, ...]:
    """Write a new session, and end as many idle ones of its holder as needed to keep to `max_sessions`.

    Returns the ended ones. Other processes are not notified, because idle sessions have nothing in
    progress. A repetition does nothing. Raises TooManySessionsError if too few are idle.
    """
    if _open(row.holder).count() >= max_sessions:
        session_uses.flush()
    with transaction.atomic():
        _wait_for_turn(row.holder)
        if Session.objects.filter(id=row.id).exists():
            return ()
        over = _open(row.holder).count() + 1 - max_sessions
        ended = _end_idle(row.holder, over, is_busy) if over > 0 else ()
        now = timezone.now()
        Session.objects.create(
            id=row.id,
            tenant=row.tenant,
            principal_key=row.principal_key,
            holder=row.holder,
            revision=row.revision,
            client=row.client,
            created_at=now,
            used_at=now,
            expires_at=row.expires_at,
        )
    return ended


def find(session: UUID, tenant: UUID) -> SessionRow | None:
    """The session, if it is open and of `tenant`; else None."""
    going_on = Session.objects.filter(_is_open(), id=session, tenant=tenant)
    row = going_on.values_list(*_COLUMNS).first()
    return None if row is None else SessionRow(*row)


def count_open(
    tenant: UUID | None = None, since: datetime | None = None, until: datetime | None = None
) -> int:
    """Count the sessions that go on: of a tenant, or of all; begun between two times, if given."""
    open_sessions = Session.objects.filter(_is_open())
    if tenant is not None:
        open_sessions = open_sessions.filter(tenant=tenant)
    if since is not None:
        open_sessions = open_sessions.filter(created_at__gte=since)
    if until is not None:
        open_sessions = open_sessions.filter(created_at__lt=until)
    return open_sessions.count()


def set_log_level(session: UUID, level: str) -> None:
    """Set the lowest level of log messages that the client wants."""
    Session.objects.filter(id=session).update(log_level=level)


@transaction.atomic
def subscribe(session: UUID, tenant: UUID, uri: str, max_topics: int) -> None:
    """Subscribe to a resource. Raises TooManyTopicsError beyond `max_topics`, and SessionOverError."""
    _hold(session)
    topics = SessionTopic.objects.filter(session=session)
    if topics.filter(uri=uri).exists():
        return
    if topics.count() >= max_topics:
        raise TooManyTopicsError
    SessionTopic.objects.create(session_id=session, uri=uri)
    announce(TOPICS, tenant=tenant, object_id=session.hex)


@transaction.atomic
def unsubscribe(session: UUID, tenant: UUID, uri: str) -> None:
    """Unsubscribe from a resource. Does nothing if it was not subscribed."""
    if SessionTopic.objects.filter(session=session, uri=uri).delete()[0]:
        announce(TOPICS, tenant=tenant, object_id=session.hex)


def topics(session: UUID) -> tuple[str, ...]:
    """The URIs of the resources that the session is subscribed to."""
    return tuple(SessionTopic.objects.filter(session=session).values_list("uri", flat=True))


@transaction.atomic
def stream_opened(session: UUID, tenant: UUID, stream: UUID, owner: UUID, max_streams: int) -> None:
    """Register a new GET stream of the session, served by the process `owner`.

    Notifications go to the newest stream. The oldest beyond `max_streams` are closed, in whichever process
    they are. A repetition changes nothing. Raises SessionOverError.
    """
    _hold(session)
    other_streams = GetStream.objects.filter(_has_owner(), session=session).exclude(id=stream)
    over = other_streams.order_by("-opened_at", "-id").values_list("id", flat=True)[
        max_streams - 1 :
    ]
    closed = list(over)
    GetStream.objects.filter(id__in=closed).delete()
    row = GetStream(id=stream, session_id=session, owner=owner, opened_at=timezone.now())
    GetStream.objects.bulk_create([row], ignore_conflicts=True)
    announce(OPENED, tenant=tenant, object_id=_named(session, stream))
    if closed:
        announce_all(CLOSED, [(tenant, _named(session, stream_id)) for stream_id in closed])


@transaction.atomic
def stream_closed(session: UUID, tenant: UUID, stream: UUID) -> None:
    """Remove a GET stream of the session."""
    GetStream.objects.filter(id=stream).delete()
    announce(CLOSED, tenant=tenant, object_id=_named(session, stream))


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired sessions; return how many."""
    over = Session.objects.filter(~_is_open(), expires_at__lt=Now()).order_by("expires_at")
    # Rows that another process is deleting or changing are left for the next time.
    unlocked = over.select_for_update(skip_locked=True).values_list("id", flat=True)
    ids = list(unlocked[:PRUNED_AT_ONCE])
    Session.objects.filter(id__in=ids).delete()
    return len(ids)


@transaction.atomic
def prune_streams() -> int:
    """Delete up to 500 GET streams whose process has died; return how many."""
    orphaned_streams = GetStream.objects.exclude(_has_owner()).order_by("opened_at")
    unlocked = orphaned_streams.select_for_update(skip_locked=True).values_list("id", flat=True)
    ids = list(unlocked[:PRUNED_AT_ONCE])
    GetStream.objects.filter(id__in=ids).delete()
    return len(ids)


def _open(holder: str) -> QuerySet[Session]:
    return Session.objects.filter(_is_open(), holder=holder)


def _is_open() -> Q:
    """Filter: sessions that have not ended, as `_OPEN`."""
    calls = StreamedCall.objects.filter(session=OuterRef("id"), expires_at__gt=Now())
    return Q(ended_at=None) & (Q(expires_at__gt=Now()) | Q(Exists(calls.exclude(request=""))))


def _end_idle(holder: str, count: int, is_busy: IsBusy) -> tuple[UUID, ...]:
    """End `count` idle sessions, the least recently used first. Raises TooManySessionsError."""
    ended: list[UUID] = []
    while (remaining := count - len(ended)) > 0:
        idle_ids = _longest_idle(holder, remaining, is_busy)
        if len(idle_ids) < remaining:
            raise TooManySessionsError
        # A stream or call that opens meanwhile locks the row first (`_hold`), or finds it ended.
        locked = Session.objects.select_for_update().filter(id__in=idle_ids).order_by("id")
        locked_ids = [row.id for row in locked]
        still = _idle(holder).filter(id__in=locked_ids).values_list("id", flat=True)
        ended += [session_id for session_id in list(still) if _end(session_id)]
    return tuple(ended)


def _longest_idle(holder: str, count: int, is_busy: IsBusy) -> Sequence[UUID]:
    in_turn = _idle(holder).order_by("used_at", "id").values_list("id", flat=True)
    idle_ids = _without(in_turn[: count + _SPARE], is_busy)
    if len(idle_ids) < count:
        idle_ids = _without(in_turn, is_busy)
    return idle_ids[:count]


def _idle(holder: str) -> QuerySet[Session]:
    call = StreamedCall.objects.filter(session=OuterRef("id")).exclude(request="")
    stream = GetStream.objects.filter(_has_owner(), session=OuterRef("id"))
    return _open(holder).filter(~Exists(call), ~Exists(stream))


def _without(sessions: QuerySet[Session, UUID], is_busy: IsBusy) -> Sequence[UUID]:
    return [session for session in sessions if not is_busy(session)]


def _has_owner() -> Q:
    """Filter: GET streams whose process is alive, or too new to have sent a heartbeat."""
    if not nodes.can_judge():
        return Q(id__isnull=False)  # all of them
    living = (nodes.heartbeat.id, *nodes.living())
    return Q(owner__in=living) | Q(opened_at__gt=Now() - LEASE)


def _end(session: UUID) -> bool:
    going_on = Session.objects.filter(id=session, ended_at=None)
    return bool(going_on.update(ended_at=Now(), expires_at=Now() + ENDED_KEPT))


def _hold(session: UUID) -> None:
    """Lock the session's row until the transaction ends. Raises SessionOverError."""
    row = Session.objects.select_for_update().filter(id=session, ended_at=None).first()
    if row is None:
        raise SessionOverError


def _wait_for_turn(holder: str) -> None:
    """Lock the holder until the transaction ends, so that no other process begins a session of it.

    In a transaction. Not needed on SQLite, which has one writing transaction at a time.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "postgresql":
        number = int.from_bytes(bytes.fromhex(holder[:8] or "00"), signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, number])


def _named(session: UUID, stream: UUID) -> str:
    return f"{session.hex} {stream.hex}"


WRITTEN_AT_ONCE: Final = 500

_UPDATE: Final = {
    "sqlite": "UPDATE calls_session SET used_at = %s, expires_at = min(%s, "
    "strftime('%%Y-%%m-%%d %%H:%%M:%%f', created_at, %s || ' seconds')) "
    "WHERE id = %s AND used_at < %s AND ended_at IS NULL",
    "postgresql": "UPDATE calls_session SET used_at = %s, expires_at = least(%s, "
    "created_at + %s * interval '1 second') WHERE id = (SELECT id FROM calls_session "
    "WHERE id = %s AND used_at < %s AND ended_at IS NULL FOR UPDATE SKIP LOCKED)",
}
"""By database. A session that is used expires later, but not after its maximum. Sessions that another transaction is changing are left out: waiting for them while
others are locked could end in a deadlock."""

Use = tuple[UUID, datetime]


class SessionUses:
    """When sessions were last used. `flush` waits for the database: call it in a thread."""

    def __init__(self) -> None:
        self._noted: dict[UUID, datetime] = {}

    def note(self, session: UUID) -> None:
        """Note that the session is being used now."""
        self._noted[session] = timezone.now()

    def has(self, session: UUID) -> bool:
        """Whether there is a note of the session that is not written."""
        return session in self._noted

    def flush(self) -> int:
        """Write all notes, at most 500 per transaction; return how many.

        After a database error, which is raised, notes not committed are kept for the next time.
        """
        noted, self._noted = self._noted, {}
        uses = sorted(noted.items())
        for first in range(0, len(uses), WRITTEN_AT_ONCE):
            try:
                _write(uses[first : first + WRITTEN_AT_ONCE])
            except BaseException:
                self._noted = {**dict(uses[first:]), **self._noted}
                raise
        return len(uses)

    def forget_all(self) -> None:
        """Drop all notes without writing them."""
        self._noted = {}


def _write(uses: Sequence[Use]) -> None:
    connection = connections[DEFAULT_DB_ALIAS]
    key = Session._meta.pk
    adapt = connection.ops.adapt_datetimefield_value
    idle = timedelta(seconds=settings.MCPHOST_CLIENT_SESSION_SECONDS)
    longest = settings.MCPHOST_CLIENT_SESSION_MAX_SECONDS
    rows = [
        (
            adapt(at),
            adapt(at + idle),
            longest,
            key.get_db_prep_value(session, connection),
            adapt(at),
        )
        for session, at in uses
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_UPDATE[connection.vendor], rows)


session_uses = SessionUses()
