"""Tests of live lists: who may open one, what it receives, and when it is closed."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from mcphost.console.live import hub as hubs
from mcphost.console.live import views
from mcphost.console.live.consumers import is_own_origin
from mcphost.console.live.hub import hub
from mcphost.console.live.sockets import QUEUED, CloseCode, LiveSocket
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member
from tests.audit.recorded_calls import Story
from tests.cast import ACTOR, Cast
from tests.console.live.live_client import ACME, ALL, Reader, newest, reading, session_of
from tests.console.tenant_data import Things, recorded, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("acme")]


async def call(tenant: UUID, target: str = "echo", **columns: object) -> UUID:
    """Record a call; return its id."""
    made = uuid4()
    await in_database(lambda: recorded(tenant, made, target=target, **columns))
    return made


async def test_a_new_call_arrives_as_the_row_that_the_page_shows(auditor: Client, acme: Things):
    async with reading(ACME, session_of(auditor)) as reader:
        made = await call(acme.tenant, "<b>echo")
        (row,) = await reader.rows()
    assert row.startswith(f'<tr data-call="{made}">')
    assert "&lt;b&gt;echo" in row
    page = await in_database(lambda: auditor.get("/admin/t/acme/calls/").content.decode())
    assert row[: row.index("<time")] in page


async def test_staff_read_the_calls_of_all_tenants_or_of_one(staff, acme, globex):
    since = await newest()
    async with (
        reading(ALL, session_of(staff)) as everything,
        reading(ALL, session_of(staff), f"tenant=globex&cursor={since}") as one,
    ):
        await call(acme.tenant, "first")
        (row,) = await everything.rows()
        assert 'href="/admin/t/acme/"' in row
        await call(globex.tenant, "second")
        (row,) = await one.rows()
        assert "second" in row


async def test_a_call_that_no_longer_matches_the_filter_is_reported(
    auditor: Client, acme: Things
) -> None:
    story = Story.of(acme.tenant, "deploy").play("ask sure")
    await in_database(told, story)
    story.made.clear()
    query = f"outcome=open&cursor={await newest()}"
    async with reading(ACME, session_of(auditor), query) as reader:
        story.play("back; answer sure; end")
        await in_database(told, story)
        message = await reader.message()
        while str(story.call.id) not in message.get("gone", ()):
            message = await reader.message()
    assert message["rows"] == []


async def test_a_reconnecting_client_gets_the_newest_missed_calls(auditor, acme, monkeypatch):
    since = await newest()
    for number in range(5):
        await call(acme.tenant, f"tool{number}")
    monkeypatch.setattr(views, "MAX_ROWS", 2)
    reader = Reader(ACME, session_of(auditor), f"cursor={since}")
    assert await reader.connect()
    message = await reader.message()
    assert message["skipped"] == 3
    rows = [row["html"] for row in message["rows"]]
    assert ["tool4" in rows[0], "tool3" in rows[1]] == [True, True]
    await reader.leave()
    monkeypatch.setattr(hubs, "MAX_MISSED", 3)
    late = Reader(ACME, session_of(auditor), f"cursor={since}")
    assert await late.connect()
    message = await late.message()
    assert message["stale"] is True
    assert int(message["cursor"]) >= await newest()
    await late.leave()


async def test_one_reader_serves_all_sockets_and_ends_with_the_last(auditor, acme):
    session = session_of(auditor)
    async with reading(ACME, session) as first, reading(ACME, session) as second:
        await call(acme.tenant)
        assert await first.rows() == await second.rows()
        feeding = hub().feeding
        assert feeding is not None
    await feeding
    assert hub().feeding is None
    assert len(hub()) == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "https://localhost"},
        {"origin": "null"},
        {"host": "evil.example", "origin": "http://evil.example"},
    ],
)
async def test_a_page_of_another_origin_is_refused_before_anything_is_read(auditor, headers):
    assert not await Reader(ACME, session_of(auditor), "cursor=0", **headers).connect()
    assert hub().feeding is None


@pytest.mark.parametrize("doubled", ["origin", "host"])
def test_a_handshake_with_two_origins_or_hosts_is_refused(doubled: str) -> None:
    headers = {"origin": ["http://localhost"], "host": ["localhost"]}
    assert is_own_origin("ws", headers)
    assert not is_own_origin("wss", headers)
    assert not is_own_origin("ws", {**headers, doubled: 2 * headers[doubled]})
    assert not is_own_origin("ws", {**headers, doubled: []})


async def test_only_trusted_origins_are_accepted(auditor: Client, settings: Settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example.com", "https://ops.example.org"]
    session = session_of(auditor)
    for origin, taken in (
        ("https://a.example.com", True),
        ("https://ops.example.org", True),
        ("http://a.example.com", False),
        ("https://example.com.evil.example", False),
    ):
        reader = Reader(ACME, session, "cursor=0", origin=origin)
        assert await reader.connect() is taken, origin
        await reader.leave()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "cursor=99999999999999999999",
        f"cursor=0&tool={'x' * 5000}",
    ],
)
async def test_an_invalid_cursor_and_a_long_url_are_refused(auditor: Client, query: str):
    assert not await Reader(ACME, session_of(auditor), query).connect()


async def test_a_socket_without_a_session_or_at_another_path_is_refused(auditor: Client) -> None:
    for session in ("", "short", "A" * 32, "a" * 32, "a" * 400, "é" * 32):
        assert not await Reader(ACME, session, "cursor=0").connect(), session
    for path in ("/admin/", "/t/acme/mcp", "/admin/t/acme/calls/"):
        assert not await Reader(path, session_of(auditor), "cursor=0").connect(), path


async def test_too_many_sockets_of_a_user_or_a_process_are_refused(auditor, operator, settings):
    settings.MCPHOST_CONSOLE_SOCKETS, settings.MCPHOST_CONSOLE_SOCKETS_PER_USER = 2, 1
    async with reading(ACME, session_of(auditor)) as first:
        assert not await Reader(ACME, session_of(auditor), "cursor=0").connect()
        async with reading(ACME, session_of(operator)):
            assert not await Reader(ACME, session_of(operator), "cursor=0").connect()
        await first.leave()
        async with reading(ACME, session_of(auditor)):
            assert len(hub()) == 1


async def test_a_client_that_sends_a_message_is_disconnected(auditor: Client) -> None:
    async with reading(ACME, session_of(auditor)) as reader:
        await reader.say("hello")
        assert await reader.closed() == CloseCode.UNEXPECTED


async def test_a_slow_reader_is_disconnected_and_its_queue_is_dropped() -> None:
    viewer, view = object(), object()
    socket = LiveSocket(viewer, view)  # type: ignore[arg-type]
    for number in range(QUEUED):
        socket.offer(str(number))
    assert socket.code is None
    socket.offer("one more")
    assert socket.code == CloseCode.TRY_LATER
    assert await socket.message() is None


def _expire(cast: Cast, client: Client) -> None:
    for row in Session.objects.filter(session_key=session_of(client)):
        row.expire_date -= timedelta(days=365)
        row.save()


def _set_password(cast: Cast, client: Client) -> None:
    user = User.objects.get(pk=cast.auditor.user.pk)
    user.set_password("another-password-of-theirs")
    user.save()


def _account(person: str, **columns: bool) -> Callable[[Cast, Client], object]:
    return lambda cast, client: User.objects.filter(pk=getattr(cast, person).user.pk).update(
        **columns
    )


LOSSES: Mapping[str, tuple[str, Callable[[Cast, Client], object]]] = {
    "signed out": ("auditor", lambda cast, client: client.post("/admin/logout/")),
    "session expired": ("auditor", _expire),
    "another password": ("auditor", _set_password),
    "another role": (
        "auditor",
        lambda cast, client: set_member(cast.acme.id, cast.auditor.user, Role.MEMBER, actor=ACTOR),
    ),
    "inactive": ("owner", _account("owner", is_active=False)),
    "no staff": ("staff", _account("staff", is_staff=False)),
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_losing_the_permission_closes_the_socket(cast, browse, loss):
    person, lose = LOSSES[loss]
    client = await in_database(browse, getattr(cast, person))
    async with reading(ALL if person == "staff" else ACME, session_of(client)) as reader:
        await in_database(lose, cast, client)
        assert await reader.closed() == CloseCode.NO_ACCESS


async def test_a_drain_closes_all_sockets_and_refuses_new_ones(auditor: Client) -> None:
    async with reading(ACME, session_of(auditor)) as reader:
        shutdown.begin()
        assert await reader.closed() == CloseCode.RESTART
        assert not await Reader(ACME, session_of(auditor), "cursor=0").connect()


async def test_a_client_that_disconnects_while_connecting_occupies_no_slot(auditor: Client) -> None:
    reader = Reader(ACME, session_of(auditor), "cursor=0")
    connecting = asyncio.ensure_future(reader.connect())
    await asyncio.sleep(0)
    connecting.cancel()
    async with reading(ACME, session_of(auditor)):
        pass
    feeding = hub().feeding
    if feeding is not None:
        hub().drain()
        await feeding
    assert len(hub()) == 0
