"""Input requests to clients of sessions over HTTP, for each revision, and the POSTs with the
responses."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.legacy import stream as outgoing
from tests.audit.databases import commit_nothing
from tests.cast import Cast
from tests.credentials import CREDENTIALS, MakeCredential
from tests.legacy import Posted, Session, begin, calling, message
from tests.mcp import PATIENCE, Reply
from tests.rounds.conftest import module
from tests.serving.legacy.callers import true
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
RED = {"action": "accept", "content": {"colour": "red"}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///home/ada", "name": "home"}]}
with_forms = pytest.mark.parametrize("revision", [SECOND, LAST])


@pytest.fixture(autouse=True)
async def _nothing_is_left(asking: Cast) -> AsyncIterator[None]:
    yield
    shutdown.reset()
    await true(lambda: not outgoing.live)


async def begun(cast: Cast, revision: str, **capabilities: Any) -> Session:
    return await begin("acme", cast.owner.mcp_token, revision, **(capabilities or EVERYTHING))


async def answer(session: Session, question: Mapping[str, Any], result: Any) -> Reply:
    return await session.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


async def accepted(session: Session, question: Mapping[str, Any], result: Any) -> None:
    reply = await answer(session, question, result)
    assert (reply.status, reply.raw) == (202, b"")


async def text(stream: Posted) -> str:
    """The text of the next message, which is the response of the call."""
    result = (await stream.message())["result"]
    assert stream.unread == b""
    content: str = result["content"][0]["text"]
    return content


async def _entries(action: str) -> list[Entry]:
    return await in_database(lambda: list(Entry.objects.filter(action=action).order_by("id")))


# --- questions ---


@pytest.mark.requirement("session.related")
@with_forms
async def test_a_tool_requests_input_on_the_stream_of_its_call_and_continues_with_the_response(
    asking: Cast, revision: str
) -> None:
    session = await begun(asking, revision)
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        question = await stream.message()
        assert question["method"] == "elicitation/create"
        assert len(question["id"]) <= 256
        await accepted(session, question, RED)
        assert await text(stream) == "a wall is red"
        assert (await stream.done()).status == 200


@pytest.mark.parametrize("revision", SESSION_BASED)
async def test_sampling_and_roots_are_requested_in_every_revision(
    asking: Cast, revision: str
) -> None:
    session = await begun(asking, revision)
    for tool, method, result, end in (
        ("summarise", "sampling/createMessage", SAMPLED, "short"),
        ("folders", "roots/list", ROOTS, "file:///home/ada"),
    ):
        async with session.begun(calling(tool)) as stream:
            question = await stream.message()
            assert question["method"] == method
            await accepted(session, question, result)
            assert await text(stream) == end


async def test_an_input_request_the_client_or_revision_does_not_support_is_a_missing_capability(
    asking: Cast,
) -> None:
    paint = {"what": "a wall"}
    for revision, tool, arguments, capability, declared in (
        (OLDEST, "paint", paint, "elicitation", EVERYTHING),
        (FIRST, "paint", paint, "elicitation", EVERYTHING),
        (FIRST, "consent", {}, "elicitation", EVERYTHING),
        (SECOND, "consent", {}, "elicitation.url", EVERYTHING),
        (LAST, "paint", paint, "elicitation", {"roots": {}}),
    ):
        session = await begun(asking, revision, **declared)
        reply = await session.call(tool, arguments)
        assert reply.result["isError"], (revision, tool)
        assert capability in reply.text


# --- answers ---


@with_forms
async def test_an_unexpected_response_is_accepted_and_recorded(asking: Cast, revision: str) -> None:
    session = await begun(asking, revision)
    other = await begun(asking, revision)
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        question = await stream.message()
        forged = {"id": question["id"][:-4] + "AAAA"}
        for who, asked in ((other, question), (session, forged), (session, {"id": 7})):
            await accepted(who, asked, RED)
        assert len(await _entries("answer.refused")) == 3
        await accepted(session, question, RED)
        assert await text(stream) == "a wall is red"
    await accepted(session, question, {"action": "decline"})
    reasons = [entry.reason for entry in await _entries("answer.refused")]
    assert reasons == ["foreign", "not-asked", "not-asked", "answered"]


@with_forms
async def test_a_response_that_cannot_be_stored_is_not_acknowledged(
    asking: Cast, revision: str, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    session = await begun(asking, revision)
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        question = await stream.message()
        settings.MCPHOST_DATABASE_WAIT_SECONDS = 0.2
        with monkeypatch.context() as patched:
            commit_nothing(patched)
            assert (await answer(session, question, RED)).status == 503
        settings.MCPHOST_DATABASE_WAIT_SECONDS = PATIENCE
        await accepted(session, question, RED)
        assert await text(stream) == "a wall is red"


# --- disconnects while a question is open ---


@with_forms
async def test_an_input_request_is_replayed_with_its_id_and_its_late_response_is_used(
    asking: Cast, revision: str
) -> None:
    session = await begun(asking, revision)
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        question = await stream.message()
    await stream.done()
    before = f"{stream.last_id.split('-')[0]}-0"
    async with session.begun(b"", "GET", last_event_id=before) as again:
        assert await again.message() == question
    await again.done()
    await accepted(session, question, RED)
    async with session.begun(b"", "GET", last_event_id=again.last_id) as last:
        assert await text(last) == "a wall is red"


@with_forms
async def test_ending_a_session_ends_its_waiting_calls(asking: Cast, revision: str) -> None:
    session = await begun(asking, revision)
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        question = await stream.message()
        assert (await session.end()).status == 204
        assert (await stream.done()).status == 200
    assert (await answer(session, question, RED)).status == 404
    reply = await session.exchange(b"", "GET", last_event_id=stream.last_id).done()
    assert reply.status == 404


@with_forms
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_a_waiting_call_ends_when_the_credential_is_revoked(
    asking: Cast, revision: str, credential: MakeCredential
) -> None:
    bearer, revoke = await in_database(credential, asking, asking.owner)
    session = await begin("acme", bearer, revision, **EVERYTHING)
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        await stream.message()
        await in_database(revoke)
        reply = await stream.done()
    assert "error" in reply.last
    assert (await session.exchange(message("ping", id=2)).done()).status == 401


async def test_a_tool_may_close_its_stream_if_the_client_can_resume(asking: Cast) -> None:
    session = await begun(asking, LAST)
    async with session.begun(calling("closes_its_stream")) as stream:
        assert (await stream.done()).raw.endswith(b"retry: 1000\n\n")
        last_id = (await stream.upcoming()).id
    async with session.begun(b"", "GET", last_event_id=last_id) as again:
        await again.event()
        module("asking").running.set()
        assert (await again.done()).raw.endswith(b"retry: 1000\n\n")
    async with session.begun(b"", "GET", last_event_id=last_id) as last:
        module("asking").release.set()
        assert await text(last) == "closed twice"


# --- batches ---
