"""GET streams over HTTP: which clients get one, what is sent on it, how it ends."""

from collections.abc import Iterator
from typing import Any

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_REFUSED
from mcphost.catalogue.updates import announce_update
from mcphost.identity.services import TokenRequest, issue
from mcphost.routing import process
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.legacy.get_stream import get_streams
from mcphost.serving.shutdown import draining
from mcphost.serving.subscriptions.registry import listeners
from tests.cast import ACTOR, Cast
from tests.credentials import CREDENTIALS, MakeCredential
from tests.legacy import Posted, Session, begin
from tests.serving.subscriptions.test_resources import (
    TODAY,
    TOMORROW,
    publish_days,
    publish_poem,
    publish_today,
    wide_token,
    write_today,
)
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
every_revision = pytest.mark.parametrize("revision", SESSION_BASED)


@pytest.fixture(params=SESSION_BASED)
async def session(request: pytest.FixtureRequest, served: Cast) -> Session:
    """A session of the owner at `acme`, of each revision."""
    return await begin("acme", served.owner.mcp_token, request.param)


@pytest.fixture(autouse=True)
def _no_drain() -> Iterator[None]:
    yield
    shutdown.reset()


async def told(stream: Posted) -> Any:
    """The next notification on a stream: the method, and the URI if it has one."""
    message = await stream.message()
    uri = message.get("params", {}).get("uri")
    return message["method"] if uri is None else (message["method"], uri)


async def ends(stream: Posted, session: Session) -> None:
    """Assert that a stream ends by itself, with `retry` if the revision has it."""
    reply = await stream.done()
    assert reply.status == 200
    retry = b"retry: 10000\n\n" if draining() else b"retry: 1000\n\n"
    assert stream.unread == (retry if session.revision == LAST else b"")


def there_are(streams: int) -> None:
    assert len(get_streams) == streams


# --- opening a stream ---


@pytest.mark.requirement("session.capabilities")
async def test_a_server_declares_list_changed_and_subscribe_capabilities(session: Session) -> None:
    capabilities = session.server["capabilities"]
    assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}


@every_revision
async def test_a_get_stream_requires_an_event_stream_accept_header_and_a_session(
    served: Cast, revision: str
) -> None:
    session = await begin("acme", served.owner.mcp_token, revision)
    for accept in ("application/json", "text/html", "text/event-stream;q=0"):
        assert (await session.exchange(b"", "GET", accept=accept).done()).status == 406
    for other, status in (("2026-07-28", 405), ("2024-10-07", 400)):
        reply = await session.exchange(b"", "GET", mcp_protocol_version=other).done()
        assert reply.status == status
    session.id = None
    reply = await session.exchange(b"", "GET").done()
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, POST, DELETE, OPTIONS"
    assert "initialize" in reply.error["message"]
    session.id = "nonsense"
    reply = await session.exchange(b"", "GET").done()
    assert (reply.status, reply.check().last["id"]) == (404, None)


async def test_the_number_of_get_streams_per_token_is_limited(
    session: Session, settings: Any, served: Cast
) -> None:
    settings.MCPHOST_LISTENERS_PER_TOKEN = 1
    async with session.listening():
        reply = await session.exchange(b"", "GET").done()
        assert reply.status == 429
        assert reply.headers["retry-after"]
    there_are(0)
    assert len(listeners) == 0


# --- notifications ---


@pytest.mark.requirement("session.listen")
async def test_list_changes_are_notified_on_a_get_stream(session: Session, served: Cast) -> None:
    async with session.listening() as stream:
        await in_database(publish_poem, served.acme.id)
        assert await told(stream) == PROMPTS
        await in_database(publish_today, served.acme.id)
        assert await told(stream) == RESOURCES


async def test_clients_are_pinged_if_configured_and_their_responses_are_accepted(
    session: Session, settings: Any
) -> None:
    settings.MCPHOST_PING_SECONDS = 0.01
    async with session.listening() as stream:
        pings = [await stream.message() for _ in range(2)]
        assert [one["method"] for one in pings] == ["ping", "ping"]
        assert pings[0]["id"] != pings[1]["id"]
        for ping in pings:
            reply = await session.send({"jsonrpc": "2.0", "id": ping["id"], "result": {}})
            assert (reply.status, reply.raw) == (202, b"")
    await process.stop()  # writes what is still waiting
    assert not await in_database(Entry.objects.filter(action=ANSWER_REFUSED).exists)


@pytest.mark.requirement("session.subscribed")
async def test_a_session_is_notified_of_resources_it_subscribed_to(
    session: Session, served: Cast
) -> None:
    today = await in_database(publish_today, served.acme.id)
    await in_database(publish_days, served.acme.id)
    assert (await session.ask("resources/subscribe", {"uri": "NOTES://today"})).result == {}
    async with session.listening() as stream:
        await in_database(announce_update, served.acme.id, TODAY, ACTOR)
        assert await told(stream) == (UPDATED, "NOTES://today")
        await session.ask("resources/subscribe", {"uri": TOMORROW})
        await session.ask("resources/unsubscribe", {"uri": "NOTES://today"})
        for uri in (TODAY, TOMORROW):
            await in_database(announce_update, served.acme.id, uri, ACTOR)
        assert await told(stream) == (UPDATED, TOMORROW)
        await session.ask("resources/subscribe", {"uri": TODAY})
        await in_database(write_today, today, "Something.")
        assert {await told(stream) for _ in range(2)} == {RESOURCES, (UPDATED, TODAY)}


async def test_only_a_limited_number_of_existing_resources_can_be_subscribed_to(
    session: Session, served: Cast, settings: Any
) -> None:
    settings.MCPHOST_LISTEN_URIS = 1
    await in_database(publish_days, served.acme.id)
    assert (await session.ask("resources/subscribe", {"uri": TOMORROW})).result == {}
    for uri, code in (
        ("notes://never", -32002),
        ("?", -32602),
        ("notes://days/sunday", -32603),
        (5, -32602),
    ):
        reply = await session.ask("resources/subscribe", {"uri": uri})
        assert (reply.status, reply.error["code"]) == (200, code), uri
        assert code != -32603 or "at most 1 resources" in reply.error["message"]


async def test_callers_are_not_notified_of_primitives_they_may_not_see(served: Cast) -> None:
    wide = await in_database(wide_token, served)
    seeing = await begin("acme", wide, LAST)
    blind = await begin("acme", served.owner.mcp_token, LAST)
    elsewhere = await begin("globex", served.stranger.mcp_token, LAST)
    async with (
        seeing.listening() as told_of_it,
        blind.listening() as not_told,
        elsewhere.listening() as far_off,
    ):
        await in_database(publish_today, served.acme.id, "mcp:guarded")
        assert await told(told_of_it) == RESOURCES
        shutdown.begin()
        await ends(not_told, blind)
        await ends(far_off, elsewhere)


async def test_callers_without_list_scope_get_no_list_changed_notifications(served: Cast) -> None:
    wanted = TokenRequest("calls only", ("mcp:call",))
    token = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    session = await begin("acme", token.plaintext, LAST)
    await in_database(publish_days, served.acme.id)
    async with session.listening() as first, session.listening() as second:
        await in_database(publish_poem, served.acme.id)
        await session.ask("resources/subscribe", {"uri": TOMORROW})
        await in_database(announce_update, served.acme.id, TOMORROW, ACTOR)
        assert await told(second) == (UPDATED, TOMORROW)
        shutdown.begin()
        await ends(first, session)


@pytest.mark.requirement("session.one-stream")
async def test_only_the_newest_stream_of_a_session_is_notified(
    session: Session, served: Cast
) -> None:
    async with session.listening() as first:
        async with session.listening() as second:
            await in_database(publish_poem, served.acme.id)
            assert await told(second) == PROMPTS
        await in_database(publish_today, served.acme.id)
        assert await told(first) == RESOURCES


# --- which stream gets a notification ---


# --- the end of a stream ---


@pytest.mark.requirement("session.retry")
async def test_a_drain_ends_a_get_stream(session: Session) -> None:
    async with session.listening() as stream:
        shutdown.begin()
        await ends(stream, session)
    there_are(0)
    assert (await session.exchange(b"", "GET").done()).status == 200


async def test_ending_the_session_ends_its_get_stream(session: Session) -> None:
    async with session.listening() as stream:
        await session.end()
        await ends(stream, session)
    there_are(0)


@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_a_get_stream_ends_when_the_credential_is_revoked(
    served: Cast, credential: MakeCredential
) -> None:
    bearer, revoke = await in_database(credential, served, served.owner)
    session = await begin("acme", bearer, LAST)
    async with session.listening() as stream:
        await in_database(revoke)
        await ends(stream, session)
