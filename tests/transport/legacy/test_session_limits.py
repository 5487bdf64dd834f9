"""Limits on beginning and changing sessions, over HTTP."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from mcphost.calls.models import Session as SessionModel
from mcphost.feed.models import Change
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving import limits
from mcphost.serving.database import in_database
from mcphost.serving.subscriptions.registry import listeners
from tests.cast import Cast
from tests.legacy import Session, begin, initializing, message
from tests.mcp import Reply
from tests.served import probes
from tests.serving.subscriptions.test_resources import publish_days
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
DAY = "notes://days/"
every_revision = pytest.mark.parametrize("revision", SESSION_BASED)


def refused(reply: Reply, about: str) -> None:
    """Assert that a request is answered with an error that says when to retry."""
    assert (reply.status, reply.error["code"]) == (200, -32603)
    assert about in reply.error["message"]
    assert 0 < reply.error["data"]["retryAfter"] <= 60
    assert reply.last["id"] is not None


async def another(session: Session) -> Reply:
    """The reply when the same caller asks for one more session."""
    fresh = Session(session.tenant, session.token, session.revision)
    return await fresh.send(initializing(session.revision), mcp_protocol_version="")


async def lives(session: Session) -> bool:
    return (await session.ask("ping")).status == 200


@every_revision
async def test_at_the_limit_the_longest_idle_session_is_ended(
    served: Cast, settings: Any, revision: str
) -> None:
    settings.MCPHOST_SESSIONS_PER_TOKEN = 2
    first = await begin("acme", served.owner.mcp_token, revision)
    second = await begin("acme", served.owner.mcp_token, revision)
    assert await lives(first)
    third = await begin("acme", served.owner.mcp_token, revision)
    assert [await lives(each) for each in (first, second, third)] == [True, False, True]
    assert (await second.ask("ping")).status == 404
    assert (await another(second)).status == 200


async def test_without_an_idle_session_a_new_one_is_refused_with_retry_after(
    served: Cast, settings: Any
) -> None:
    settings.MCPHOST_SESSIONS_PER_TOKEN = 2
    streaming = await begin("acme", served.owner.mcp_token, LAST)
    calling = await begin("acme", served.owner.mcp_token, LAST)
    hanging = message("tools/call", {"name": "hang", "arguments": {}}, 1)
    async with streaming.listening():
        async with calling.begun(hanging):
            async with asyncio.timeout(30):
                await probes().running.wait()
            refused(await another(streaming), "2 sessions and none is idle")
            assert await in_database(SessionModel.objects.count) == 2
            await calling.notify("notifications/cancelled", {"requestId": 1})
        assert (await another(streaming)).status == 200
        assert [await lives(each) for each in (streaming, calling)] == [True, False]


async def test_each_credential_and_each_tenant_has_its_own_sessions(
    served: Cast, settings: Any
) -> None:
    settings.MCPHOST_SESSIONS_PER_TOKEN = 1
    callers = [
        ("acme", served.owner.mcp_token),
        ("acme", served.member.mcp_token),
        ("globex", served.stranger.mcp_token),
        ("commons", None),
    ]
    begun = [await begin(tenant, token, LAST) for tenant, token in callers]
    assert all([await lives(each) for each in begun])
    await begin("commons", None, LAST)
    assert [await lives(each) for each in begun] == [True, True, True, False]


async def test_the_session_of_an_anonymous_caller_stores_no_address(served: Cast) -> None:
    await begin("commons", None, LAST)
    (row,) = await in_database(lambda: list(SessionModel.objects.all()))
    assert len(row.holder) == 64
    assert "127.0.0.1" not in str(vars(row))


def test_an_anonymous_caller_is_identified_by_network_and_tenant(served: Cast) -> None:
    one, other = (
        Principal(PrincipalKind.ANONYMOUS, each.id) for each in (served.acme, served.globex)
    )
    near, same, far = "2001:db8::1", "2001:db8:0:0:ffff::9", "2001:db8:0:1::1"
    assert limits.holder(one, near) == limits.holder(one, same) != limits.holder(one, far)
    assert limits.holder(one, "192.0.2.1") == limits.holder(one, "::ffff:192.0.2.1")
    assert limits.holder(one, "192.0.2.1") != limits.holder(other, "192.0.2.1")
    token = Principal(PrincipalKind.TOKEN, served.acme.id, id="t1", token_id="t1")
    assert limits.holder(token, near) == limits.holder(token, far)


# --- changes per minute ---


async def test_the_number_of_new_sessions_per_minute_is_limited(
    served: Cast, settings: Any
) -> None:
    settings.MCPHOST_SESSION_CHANGES_PER_MINUTE = 3
    session = [await begin("commons", None, LAST) for _ in range(3)][-1]
    for _ in range(3):
        refused(await another(session), "3 changes of sessions per minute")
    assert await in_database(SessionModel.objects.count) == 3
    assert await lives(session), "what changes nothing is not counted"
    assert (await session.end()).status == 204, "a session can always be ended"
    assert (await begin("acme", served.owner.mcp_token, LAST)).id


async def test_session_changes_of_one_credential_do_not_limit_another(
    served: Cast, settings: Any
) -> None:
    settings.MCPHOST_SESSION_CHANGES_PER_MINUTE = 1
    session = await begin("acme", served.owner.mcp_token, LAST)
    refused(await another(session), "1 changes of sessions per minute")
    assert (await begin("acme", served.member.mcp_token, LAST)).id


async def test_subscriptions_log_levels_and_streams_count_as_changes(
    served: Cast, settings: Any
) -> None:
    await in_database(publish_days, served.acme.id)
    session = await begin("acme", served.owner.mcp_token, LAST)
    settings.MCPHOST_SESSION_CHANGES_PER_MINUTE = 5  # beginning the session is the first
    uri = {"uri": f"{DAY}monday"}
    assert (await session.ask("resources/subscribe", uri)).result == {}
    assert (await session.ask("resources/unsubscribe", uri)).result == {}
    for _ in range(5):
        assert (await session.ask("logging/setLevel", {"level": "debug"})).result == {}
    async with session.listening():
        pass
    told = await in_database(Change.objects.count)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        refused(await session.ask(method, uri), "5 changes of sessions per minute")
    refused(await session.ask("logging/setLevel", {"level": "info"}), "changes of sessions")
    reply = await session.exchange(b"", "GET").done()
    assert reply.status == 429
    assert 0 < int(reply.headers["retry-after"]) <= 60
    assert await in_database(Change.objects.count) == told
    assert len(listeners) == 0


# --- streams of one session ---


async def test_with_too_many_streams_of_a_session_the_oldest_ends(
    served: Cast, settings: Any
) -> None:
    settings.MCPHOST_STREAMS_PER_SESSION = 2
    session = await begin("acme", served.owner.mcp_token, LAST)
    async with AsyncExitStack() as open_streams:
        streams = [await open_streams.enter_async_context(session.listening()) for _ in range(3)]
        reply = await streams[0].done()
        assert (reply.status, streams[0].unread) == (200, b"retry: 1000\n\n")
        assert len(listeners) == 2
