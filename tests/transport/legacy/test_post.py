"""Sessions over HTTP, for each revision: beginning, end, and invalid POSTs."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from mcphost.calls import session_calls
from mcphost.calls import sessions as rows
from mcphost.feed.models import Change
from mcphost.protocol.revisions import LATEST_LEGACY
from mcphost.serving import limits, sealing
from mcphost.serving.legacy import session as sessions
from tests.cast import Cast
from tests.legacy import Session, begin, calling, initializing, message
from tests.mcp import request, send
from tests.served import probes
from tests.serving.memory_primitives import token_with
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602
INTERNAL_ERROR, RESOURCE_NOT_FOUND = -32603, -32002
LIST = message("tools/list", id=1)
every_revision = pytest.mark.parametrize("revision", SESSION_BASED)


@pytest.fixture(params=SESSION_BASED)
async def session(request: pytest.FixtureRequest, served: Cast) -> Session:
    """A session of the owner at `acme`, of each revision."""
    return await begin("acme", served.owner.mcp_token, request.param)


# --- beginning and ending ---


@pytest.mark.requirement("session.negotiated", "session.id")
async def test_a_session_has_the_requested_revision_or_the_newest_one(
    served: Cast,
) -> None:
    for revision in SESSION_BASED:
        session = await begin("acme", served.owner.mcp_token, revision)
        assert session.server["protocolVersion"] == revision
        assert session.server["serverInfo"]["name"]
        assert session.id is not None
        assert len(session.id) <= 512
        assert session.id.isascii()
        assert session.id.isprintable()
    for unknown in ("1.0", "2999-01-01", ""):
        fresh = Session("acme", served.owner.mcp_token, LATEST_LEGACY.name)
        reply = await fresh.send(initializing(unknown), mcp_protocol_version="")
        assert reply.status == 200
        assert reply.result["protocolVersion"] == LATEST_LEGACY.name
    silent = Session("acme", served.owner.mcp_token, LAST)
    reply = await silent.ask("initialize", {"capabilities": {}})
    assert (reply.status, reply.error["code"]) == (200, INVALID_PARAMS)
    assert "params.protocolVersion" in reply.error["message"]
    assert "mcp-session-id" not in reply.headers


@pytest.mark.requirement("session.ping")
async def test_requests_in_a_session_are_answered(session: Session) -> None:
    assert (await session.ask("ping")).result == {}
    assert (await session.ask("tools/list")).result["tools"]
    assert (await session.call("echo", {"text": "a"})).text == "a"
    assert (await session.ask("logging/setLevel", {"level": "error"})).result == {}


@pytest.mark.requirement("session.version-header")
async def test_the_version_header_may_be_left_out_but_must_not_name_an_unknown_revision(
    session: Session,
) -> None:
    assert (await session.send(LIST, mcp_protocol_version="")).status == 200
    for other in ("2024-10-07", "2025-01-01"):
        reply = await session.send(LIST, mcp_protocol_version=other)
        assert (reply.status, reply.last["id"]) == (400, 1)
        assert reply.error["data"]["requested"] == other
        assert set(SESSION_BASED) <= set(reply.error["data"]["supported"])


@pytest.mark.requirement("session.delete", "session.gone")
async def test_an_ended_session_is_gone_and_a_new_one_may_begin(session: Session) -> None:
    assert (await session.end()).status == 204
    reply = await session.send(LIST)
    assert (reply.status, reply.error["code"], reply.last["id"]) == (404, INVALID_REQUEST, 1)
    assert (await session.end()).status == 404
    assert (await session.send(message("notifications/initialized"))).status == 404
    gone = await session.send(initializing(session.revision), mcp_protocol_version="")
    assert gone.status == 404
    session.id = None
    assert (await session.send(initializing(session.revision))).status == 200


# --- ids of sessions ---


async def without_a_session(session: Session, id: str | None, status: int) -> None:
    """Assert that a request, a notification, a response and DELETE are refused alike."""
    session.id = id
    reply = await session.send(LIST)
    assert (reply.status, reply.error["code"], reply.last["id"]) == (status, INVALID_REQUEST, 1)
    answer = {"jsonrpc": "2.0", "id": "q", "result": {}}
    for posted in (message("notifications/initialized"), answer):
        reply = await session.send(posted)
        assert reply.status == status
        assert reply.check().error["message"]
    nameless = id is None and session.revision in (OLDEST, FIRST)
    ended = await session.exchange(b"", "DELETE").done()
    assert ended.status == (405 if nameless else status)


@pytest.mark.requirement("session.required", "session.gone")
@every_revision
async def test_requests_without_a_live_session_of_the_caller_are_refused(
    served: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    monkeypatch.setattr(sealing, "EVERY_SECONDS", 0.01)  # between two looks for an unknown key
    owner = served.owner.mcp_token
    mine = await begin("acme", owner, revision)
    await without_a_session(Session("acme", owner, revision), None, 400)
    for id in ("nonsense", "mcps1.00000000.AAAA", "x" * 4_000, "\xff"):
        await without_a_session(Session("acme", owner, revision), id, 404)
    theirs = Session("acme", served.member.mcp_token, revision)
    elsewhere = Session("globex", served.stranger.mcp_token, revision)
    for other in (theirs, elsewhere):
        await without_a_session(other, mine.id, 404)
    assert (await mine.ask("ping")).result == {}
    mine.token = "mcph_nonsense"
    assert (await mine.exchange(LIST).done()).status == 401
    first, second = [await begin("commons", None, revision) for _ in range(2)]
    assert first.id != second.id
    await first.end()
    assert (await second.call("echo", {"text": "b"})).text == "b"
    settings.MCPHOST_CLIENT_SESSION_SECONDS = -1.0
    expired = Session("acme", owner, revision)
    reply = await expired.send(initializing(revision), mcp_protocol_version="")
    await without_a_session(expired, reply.headers["mcp-session-id"], 404)


# --- invalid POSTs ---


async def test_a_session_can_be_initialized_only_once(session: Session) -> None:
    reply = await session.send(initializing(session.revision, 7))
    assert (reply.status, reply.error["code"], reply.last["id"]) == (200, INVALID_REQUEST, 7)
    assert "mcp-session-id" not in reply.headers
    assert (await session.ask("ping")).result == {}


ANSWERED: tuple[tuple[Any, int], ...] = (
    (message("tools/none", id=1), METHOD_NOT_FOUND),
    (message("server/discover", id=1), METHOD_NOT_FOUND),
    (message("subscriptions/listen", id=1), METHOD_NOT_FOUND),
    (message("tools/call", {}, id=1), INVALID_PARAMS),
    (message("tools/list", {"cursor": 5}, id=1), INVALID_PARAMS),
    (message("completion/complete", {"ref": {}}, id=1), INVALID_PARAMS),
    (message("logging/setLevel", {"level": "loud"}, id=1), INVALID_PARAMS),
    (message("resources/read", {"uri": "docs:never"}, id=1), RESOURCE_NOT_FOUND),
    (message("notifications/initialized", id=1), INVALID_REQUEST),
    ({**LIST, "jsonrpc": "1.0"}, INVALID_REQUEST),
    ({**LIST, "params": [1]}, INVALID_PARAMS),
    (calling("nothing"), INVALID_PARAMS),
)
UNANSWERABLE = (
    b"{",
    b"5",
    b"[]",
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":"q","result":{},"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":"q"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized","params":7}',
)


@pytest.mark.requirement("session.params", "session.not-found", "session.refused")
async def test_request_errors_have_status_200_and_unanswerable_messages_status_400(
    session: Session,
) -> None:
    for body, code in ANSWERED:
        reply = await session.send(body)
        assert (reply.status, reply.error["code"], reply.last["id"]) == (200, code, 1), body
    for raw in UNANSWERABLE:
        reply = await session.exchange(raw).done()
        assert reply.status == 400, raw
        assert reply.check().last["id"] is None
        assert reply.error["message"]


@pytest.mark.requirement("session.accepted")
async def test_notifications_and_unexpected_responses_are_accepted(
    session: Session,
) -> None:
    for name in ("initialized", "roots/list_changed", "progress", "cancelled", "whatever"):
        await session.notify(f"notifications/{name}")
    failed = {"code": -1, "message": "User rejected sampling request"}
    for answer in ({"result": {"action": "accept"}}, {"error": failed}):
        reply = await session.send({"jsonrpc": "2.0", "id": "nobody asked", **answer})
        assert (reply.status, reply.raw) == (202, b"")


async def test_the_number_of_cancellations_forwarded_to_other_processes_per_minute_is_limited(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NOTICES_PER_MINUTE", 3)
    session = await begin("acme", served.owner.mcp_token, LAST)
    for id in range(10):
        reply = await session.notify("notifications/cancelled", {"requestId": id})
        assert reply.status == 202
    told = Change.objects.filter(name=session_calls.CANCELLED)
    assert await sync_to_async(told.count)() == 3


async def test_a_request_id_may_be_in_use_only_once_per_session(session: Session) -> None:
    other = await begin("acme", session.token, LAST)
    async with session.begun(calling("wait_until_told", id="a")) as first:
        await probes().running.wait()
        again = await session.call("echo", {"text": "b"}, id="a")
        assert (again.status, again.error["code"]) == (200, INVALID_REQUEST)
        assert "is in progress" in again.error["message"]
        assert (await session.call("echo", {"text": "b"}, id="b")).text == "b"
        assert (await other.call("echo", {"text": "b"}, id="a")).text == "b"
        if session.revision == FIRST:
            answers = await session.batch(message("ping", id="a"), message("ping", id="b"))
            assert answers["a"]["error"]["code"] == INVALID_REQUEST
            assert answers["b"]["result"] == {}
        probes().release.set()
        assert (await first.done()).check().text == "released"
    assert (await session.call("echo", {"text": "c"}, id="a")).text == "c"


async def test_a_stateless_request_with_a_session_header_does_not_belong_to_the_session(
    session: Session,
) -> None:
    headers = {"mcp-session-id": session.id or ""}
    reply = await send("acme", request("tools/list"), session.token, headers)
    assert reply.result["resultType"] == "complete"


# --- batches ---


async def test_the_requests_of_a_batch_are_answered_together(served: Cast) -> None:
    session = await begin("acme", served.owner.mcp_token, FIRST)
    answers = await session.batch(
        message("ping", id=1),
        message("notifications/roots/list_changed"),
        calling("echo", {"text": "a"}, id="2"),
        message("tools/none", id=3),
        message("tools/call", {"name": 5}, id=4),
        {**LIST, "id": 5, "params": [1]},
        initializing(FIRST, 6),
    )
    assert list(answers) == [5, 6, 4, 1, "2", 3]
    assert answers[1]["result"] == {}
    assert answers["2"]["result"]["content"][0]["text"] == "a"
    codes = {id: answer["error"]["code"] for id, answer in answers.items() if "error" in answer}
    assert codes == {
        3: METHOD_NOT_FOUND,
        4: INVALID_PARAMS,
        5: INVALID_PARAMS,
        6: INVALID_REQUEST,
    }


async def test_a_malformed_batch_runs_none_of_its_requests(served: Cast) -> None:
    session = await begin("acme", served.owner.mcp_token, FIRST)
    for bad in ([], 5, {"jsonrpc": "2.0", "id": None, "method": "ping"}, calling("write", id=1)):
        reply = await session.send([calling("write", {"text": "x"}, id=1), bad])
        assert (reply.status, reply.last["id"]) == (400, None)
    assert probes().ran == []


@pytest.mark.parametrize("revision", [SECOND, LAST])
async def test_later_revisions_have_no_batches(served: Cast, revision: str) -> None:
    session = await begin("acme", served.owner.mcp_token, revision)
    reply = await session.send([LIST])
    assert reply.status == 400
    assert reply.error["message"]


# --- errors that clients must survive ---


async def test_an_exceeded_limit_is_an_error_with_status_200_and_retry_after(served: Cast) -> None:
    for revision in SESSION_BASED:
        token = await token_with(served, "mcp:call", calls_per_minute=1)
        session = await begin("acme", token, revision)
        await session.call("echo", {"text": "a"})
        reply = await session.call("echo", {"text": "a"})
        assert (reply.status, reply.error["code"]) == (200, INTERNAL_ERROR)
        assert reply.error["data"]["retryAfter"] >= 1


async def test_an_internal_fault_is_an_error_response_and_not_a_broken_connection(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("canary-of-the-inside")

    sessions._cached.clear()
    monkeypatch.setattr(rows, "find", broken)
    reply = await session.send(LIST)
    assert (reply.status, reply.error["code"]) == (200, INTERNAL_ERROR)
    assert b"canary" not in reply.raw
