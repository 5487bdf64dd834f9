"""How many sessions a holder may have, which one ends for a new one, and deleting expired ones."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit.records import new_id
from mcphost.audit.writer.writer import Writer
from mcphost.calls import sessions
from mcphost.calls.models import GetStream, Session, SessionTopic
from mcphost.calls.ownership import LEASE
from mcphost.calls.sessions import (
    PRUNED_AT_ONCE,
    SessionOverError,
    SessionRow,
    SessionUses,
    TooManySessionsError,
    session_uses,
)
from mcphost.feed import nodes
from mcphost.feed.models import Change, Node
from tests.calls.claim_rows import TENANT
from tests.calls.conftest import Start
from tests.calls.streaming import begun as begun_call
from tests.calls.streaming import write

pytestmark = pytest.mark.django_db(transaction=True)

HOLDER, OTHER = "a" * 64, "b" * 64
HOUR = timedelta(hours=1)
SECONDS = 60
HERE = nodes.heartbeat.id


def never(session: UUID) -> bool:
    return False


def row(holder: str = HOLDER, **columns: Any) -> SessionRow:
    values = {"expires_at": timezone.now() + HOUR, "holder": holder, **columns}
    return SessionRow(new_id(), TENANT, "token:t1", "2025-11-25", {}, **values)


def begun(most: int = 100, holder: str = HOLDER, busy: Callable[[UUID], bool] = never) -> UUID:
    one = row(holder)
    sessions.begin(one, most, busy)
    return one.id


def going_on(holder: str = HOLDER) -> set[UUID]:
    found = Session.objects.filter(holder=holder, ended_at=None)
    return set(found.values_list("id", flat=True))


def stream_of(session: UUID, owner: UUID = HERE, most: int = 8) -> UUID:
    stream = new_id()
    sessions.stream_opened(session, TENANT, stream, owner, most)
    return stream


def end(writer: Writer, session: UUID) -> None:
    assert write(writer, sessions.end(session, TENANT)) == [True]


def news(what: str) -> list[str]:
    return list(
        Change.objects.filter(name=what).order_by("seq").values_list("object_id", flat=True)
    )


# --- how long a session lives ---


def times(session: UUID) -> Session:
    return Session.objects.get(id=session)


def test_using_a_session_extends_it_up_to_its_maximum_lifetime(settings: Settings) -> None:
    settings.MCPHOST_CLIENT_SESSION_SECONDS = 3 * SECONDS
    settings.MCPHOST_CLIENT_SESSION_MAX_SECONDS = 5 * SECONDS
    used, old, ended, idle = (begun() for _ in range(4))
    sessions.begin(fresh := row(expires_at=timezone.now() + timedelta(seconds=SECONDS)), 99, never)
    Session.objects.filter(id=old).update(created_at=Now() - timedelta(seconds=4 * SECONDS))
    Session.objects.filter(id=ended).update(ended_at=Now())
    before = times(idle).expires_at, times(ended).expires_at
    for session in (used, old, ended, fresh.id):
        session_uses.note(session)
    assert session_uses.has(used)
    assert session_uses.flush() == 4
    assert not session_uses.has(used)
    for session in (used, fresh.id):
        assert times(session).expires_at - times(session).used_at == timedelta(minutes=3)
    late = times(old).expires_at - times(old).created_at
    assert abs(late - timedelta(minutes=5)) < timedelta(milliseconds=2)
    assert (times(idle).expires_at, times(ended).expires_at) == before


def test_a_call_in_progress_keeps_its_session_open(start: Start) -> None:
    call = begun_call(writer := start())
    session = call.stream.session
    Session.objects.filter(id=session).update(expires_at=Now() - HOUR)
    assert sessions.find(session, TENANT) is not None
    assert write(writer, sessions.is_open(session, "")) == [True]
    assert write(writer, sessions.open_stream(session, TENANT, uuid4(), HERE, 1)) == [True]
    assert sessions.prune() == 0
    assert write(writer, call.finish(2)) == [True]
    assert sessions.find(session, TENANT) is None
    assert write(writer, sessions.is_open(session, "")) == [False]
    assert sessions.prune() == 1


# --- which session ends for a new one ---


def test_a_new_session_at_the_limit_ends_the_session_that_was_idle_longest() -> None:
    first, second, third = (begun() for _ in range(3))
    assert sessions.find(second, TENANT) is not None
    assert sessions.find(second, uuid4()) is None
    session_uses.note(first)
    one = row()
    assert sessions.begin(one, 3, never) == (second,)
    for _ in range(2):
        assert sessions.begin(one, 3, never) == (), "a second time begins and ends nothing"
    assert going_on() == {first, third, one.id}
    assert sessions.find(second, TENANT) is None
    assert news(sessions.ENDED) == []


def test_a_session_is_not_idle_while_it_has_a_stream_or_a_call(start: Start) -> None:
    streaming, calling, busy, idle = (begun() for _ in range(4))
    stream = stream_of(streaming)
    call = begun_call(writer := start(), of=calling)
    assert sessions.begin(row(), 4, busy.__eq__) == (idle,)
    with pytest.raises(TooManySessionsError):
        sessions.begin(row(), 3, lambda each: each not in (streaming, calling))
    assert write(writer, call.finish(2)) == [True]
    assert sessions.begin(row(), 4, busy.__eq__) == (calling,)
    sessions.stream_closed(streaming, TENANT, stream)
    assert sessions.begin(row(), 4, busy.__eq__) == (streaming,)


def test_only_open_sessions_of_the_same_holder_count_towards_the_limit(start: Start) -> None:
    sessions.begin(row(expires_at=timezone.now() - HOUR), 1, never)
    ended = begun(1)
    end(start(), ended)
    mine = row()
    assert sessions.begin(mine, 1, never) == ()
    Session.objects.filter(expires_at__lt=Now()).delete()
    for _ in range(3):
        begun(1, OTHER)
    assert going_on() == {mine.id}
    assert len(going_on(OTHER)) == 1
    more = [begun() for _ in range(4)]
    assert set(sessions.begin(row(), 2, never)) == {mine.id, *more[:3]}, "as many as it takes"
    assert len(going_on()) == 2


def test_streams_of_dead_processes_do_not_keep_sessions_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = timezone.now()
    alive, dead = uuid4(), uuid4()
    Node.objects.create(id=alive, name="alive", started_at=now, seen_at=Now())
    first, second, third = (begun() for _ in range(3))
    stream_of(first, alive)
    stream_of(second, dead)
    with pytest.raises(TooManySessionsError):  # the stream's process may be too new for a heartbeat
        sessions.begin(row(), 2, third.__eq__)
    GetStream.objects.update(opened_at=Now() - 2 * LEASE)
    monkeypatch.setattr(nodes, "can_judge", lambda: False)
    assert sessions.prune_streams() == 0
    monkeypatch.undo()
    assert sessions.begin(row(), 3, third.__eq__) == (second,)
    assert sessions.prune_streams() == 1
    assert GetStream.objects.get().session_id == first


# --- concurrency ---


def at_once(verbs: list[Callable[[], Any]]) -> list[Any]:
    """The result or error of each, when all start together."""
    ready = threading.Barrier(len(verbs))

    def one(verb: Callable[[], Any]) -> Any:
        try:
            ready.wait(SECONDS)
            return verb()
        except (TooManySessionsError, SessionOverError) as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(verbs)) as pool:
        return [each.result(SECONDS) for each in [pool.submit(one, verb) for verb in verbs]]


def forty(is_busy: Callable[[UUID], bool]) -> list[Any]:
    """The results of beginning forty sessions on ten connections, with a limit of five."""

    def four() -> list[Any]:
        return [outcome(row()) for _ in range(4)]

    def outcome(one: SessionRow) -> Any:
        try:
            return sessions.begin(one, 5, is_busy)
        except TooManySessionsError as error:
            return error

    return [each for some in at_once([four] * 10) for each in some]


@pytest.mark.parametrize("is_busy", [False, True])
def test_forty_sessions_begun_concurrently_stay_within_the_limit(is_busy: bool) -> None:
    outcomes = forty(lambda _: is_busy)
    assert len(going_on()) == 5
    refused = [each for each in outcomes if isinstance(each, TooManySessionsError)]
    ended = [each for each in outcomes if each not in refused for each in each]
    assert (len(refused), len(ended)) == ((35, 0) if is_busy else (0, 35))


def test_a_session_is_not_displaced_while_its_stream_is_being_opened() -> None:
    """Either the stream is opened first, and the session stays, or it cannot be opened any more."""
    for _ in range(10):
        mine = begun(100, OTHER)
        new = row(OTHER)
        opened, displaced = at_once(
            [lambda mine=mine: stream_of(mine), lambda new=new: sessions.begin(new, 1, never)]
        )
        assert isinstance(opened, SessionOverError) != isinstance(displaced, TooManySessionsError)
        Session.objects.all().delete()


def test_sessions_are_pruned_used_and_begun_concurrently_without_deadlock(
    monkeypatch: pytest.MonkeyPatch,
):
    """As by several processes: no deadlock, and no expired session is left."""
    monkeypatch.setattr(sessions, "PRUNED_AT_ONCE", 100)
    old = [row(expires_at=timezone.now() - HOUR) for _ in range(207)]
    put(old)
    mine = [begun() for _ in range(20)]

    def pruning() -> int:
        return sum(iter(sessions.prune, 0))

    def using() -> int:
        uses = SessionUses()
        for each in (*mine, *(one.id for one in old[:100])):
            uses.note(each)
        return uses.flush()

    def changing() -> None:
        for each in mine:
            sessions.subscribe(each, TENANT, "docs:a", 5)
            sessions.unsubscribe(each, TENANT, "docs:a")

    def beginning() -> None:
        for _ in range(10):
            begun(15)

    at_once([pruning, pruning, using, using, changing, beginning])
    while sessions.prune():
        pass  # delete those that the other threads had locked
    assert not Session.objects.filter(expires_at__lt=Now()).exists()


# --- deleting expired sessions ---


def put(rows: list[SessionRow]) -> None:
    now = timezone.now()
    Session.objects.bulk_create(
        Session(
            id=each.id, tenant=TENANT, principal_key=each.principal_key, holder=each.holder, revision=each.revision,
            created_at=now, used_at=now, expires_at=each.expires_at,
        )
        for each in rows
    )  # fmt: skip


def test_ended_sessions_are_pruned_later_in_portions_with_their_topics_and_streams(start: Start):
    ended = begun()
    sessions.subscribe(ended, TENANT, "docs:a", 5)
    stream_of(ended)
    kept = begun()
    end(start(), ended)
    assert not Session.objects.filter(expires_at__gt=Now() + 2 * sessions.ENDED_KEPT, id=ended)
    assert sessions.prune() == 0
    Session.objects.filter(id=ended).update(expires_at=Now() - timedelta(seconds=1))
    put([row(expires_at=timezone.now() - HOUR) for _ in range(PRUNED_AT_ONCE)])
    assert [sessions.prune() for _ in range(3)] == [PRUNED_AT_ONCE, 1, 0]
    assert going_on() == {kept}
    assert not SessionTopic.objects.exists()
    assert not GetStream.objects.exists()


# --- streams and topics of a session ---


def test_opening_too_many_streams_closes_the_oldest_of_the_session() -> None:
    session = begun()
    first, second, third = (stream_of(session, uuid4(), 2) for _ in range(3))
    assert set(GetStream.objects.values_list("id", flat=True)) == {second, third}
    assert news(sessions.CLOSED) == [f"{session.hex} {first.hex}"]
    sessions.stream_opened(session, TENANT, third, HERE, 2)
    assert len(news(sessions.CLOSED)) == 1


def test_an_ended_session_cannot_open_a_stream_or_subscribe(start: Start) -> None:
    session = begun()
    end(start(), session)
    for each in (session, uuid4()):
        with pytest.raises(SessionOverError):
            stream_of(each)
        with pytest.raises(SessionOverError):
            sessions.subscribe(each, TENANT, "docs:a", 5)
    assert news(sessions.OPENED) == news(sessions.TOPICS) == []
    session = begun()
    for _ in range(3):
        sessions.subscribe(session, TENANT, "docs:a", 1)
    assert len(news(sessions.TOPICS)) == 1, "what is subscribed to already is no news"


# --- when a session was used ---


def used_at(session: UUID) -> Any:
    return Session.objects.values_list("used_at", flat=True).get(id=session)


def test_uses_of_a_session_are_written_once_and_never_move_back_in_time() -> None:
    session, uses = begun(), SessionUses()
    before = used_at(session)
    uses.note(session)
    uses.note(uuid4())  # a session that does not exist
    assert uses.flush() == 2
    assert used_at(session) > before
    assert uses.flush() == 0
    later = timezone.now() + HOUR
    Session.objects.filter(id=session).update(used_at=later)
    uses.note(session)
    uses.flush()
    assert used_at(session) == later
