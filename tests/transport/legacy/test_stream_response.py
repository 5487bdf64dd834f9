"""Responses on streams, for each revision: event ids, disconnects, resuming."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.calls.models import Stream, StreamEvent
from mcphost.protocol.revisions import REVISIONS
from mcphost.serving.database import in_database
from mcphost.serving.legacy import stream as outgoing
from mcphost.serving.legacy import stream as readers
from tests.cast import Cast
from tests.credentials import CREDENTIALS, MakeCredential
from tests.legacy import Posted, Session, begin, calling, message
from tests.served import probes
from tests.serving.legacy.callers import true
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
INVALID_REQUEST = -32600
every_revision = pytest.mark.parametrize("revision", SESSION_BASED)


@pytest.fixture(params=SESSION_BASED)
async def session(request: pytest.FixtureRequest, served: Cast) -> Session:
    """A session of the owner at `acme`, of each revision."""
    return await begin("acme", served.owner.mcp_token, request.param)


@pytest.fixture(autouse=True)
async def _nothing_is_left(served: Cast) -> AsyncIterator[None]:
    yield
    probes().release.set()
    await true(lambda: not outgoing.live)


@pytest.fixture
def at_once(settings: Settings) -> None:
    """Make every call that takes a moment a stream."""
    settings.MCPHOST_STREAM_AFTER_SECONDS = 0.01


def polls(session: Session) -> bool:
    return REVISIONS[session.revision].polling


async def said(stream: Posted) -> list[Any]:
    """The messages up to the response, in short: progress, log messages, the text of the result."""
    heard: list[Any] = []
    while True:
        one = await stream.message()
        if "method" not in one:
            return [*heard, one["result"]["content"][0]["text"]]
        params = one["params"]
        heard.append(params["progress"] if "progress" in params else params["data"])


def resuming(session: Session, last_id: str) -> Any:
    return session.begun(b"", "GET", last_event_id=last_id)


STEPS = [1, {"step": 1}, 2, {"step": 2}, 3, {"step": 3}, "done"]


# --- what is streamed ---


@pytest.mark.requirement("session.answer-last")
async def test_notifications_are_streamed_with_event_ids_and_the_response_comes_last(
    session: Session,
) -> None:
    reply = await session.call("echo", {"text": "a"}, progressToken="p")
    assert not reply.streamed
    assert await in_database(Stream.objects.count) == 0, "nothing was said"
    async with session.begun(calling("steps", progressToken="p")) as stream:
        assert await said(stream) == STEPS
        reply = await stream.done()
    assert stream.unread == b""
    assert (reply.status, reply.streamed) == (200, True)
    assert reply.headers["x-accel-buffering"] == "no"
    names, numbers = zip(*(one.split("-") for one in stream.ids), strict=True)
    assert len(set(names)) == 1
    assert [int(one) for one in numbers] == list(range(1, len(stream.ids) + 1))
    kept = await in_database(lambda: [one.message for one in StreamEvent.objects.all()])
    assert len(kept) == len(stream.ids)
    assert not any("progress" in one for one in kept), "they are sealed"


async def test_progress_has_a_message_if_the_revision_supports_it(session: Session) -> None:
    async with session.begun(calling("steps", {"count": 1}, progressToken="p")) as stream:
        notified = (await stream.message())["params"]
    assert notified.get("message") == ("step 1" if REVISIONS[session.revision].audio else None)


@pytest.mark.requirement("session.primed")
@pytest.mark.usefixtures("at_once")
async def test_a_slow_call_becomes_a_resumable_stream_for_polling_clients(
    session: Session,
) -> None:
    async with session.begun(calling("wait_until_told")) as stream:
        await stream.event()
        assert stream.reply.streamed
        if polls(session):
            first = await stream.upcoming()
            assert first.id
            assert (first.data, first.retry) == (b"", 1000)
        probes().release.set()
        assert await said(stream) == ["released"]
        assert len(stream.ids) == (2 if polls(session) else 1)


@pytest.mark.requirement("session.cancelled")
async def test_a_call_cancelled_before_its_first_message_gets_an_empty_202(
    session: Session,
) -> None:
    async with session.begun(calling("hang")) as posted:
        await probes().running.wait()
        await session.notify("notifications/cancelled", {"requestId": 1})
        reply = await posted.done()
    assert (reply.status, reply.raw) == (202, b"")
    await probes().cancelled.wait()


# --- disconnecting and resuming ---


@pytest.mark.requirement("session.hang-up")
@pytest.mark.usefixtures("at_once")
async def test_a_disconnect_does_not_end_the_call_and_its_response_can_be_resumed(
    session: Session,
) -> None:
    async with session.begun(calling("steps", progressToken="p")) as first:
        await first.message()
        last_id = first.last_id
    await first.done()
    async with resuming(session, last_id) as again:
        assert await said(again) == STEPS[1:]
        assert (await again.done()).status == 200
    assert not set(again.ids) & {last_id}


@pytest.mark.requirement("session.resumed")
async def test_a_stream_can_be_resumed_from_every_event_and_by_several_readers(
    session: Session,
) -> None:
    async with session.begun(calling("steps", progressToken="p")) as first:
        await said(first)
        whole = list(first.ids)
    for place, last_id in enumerate(whole):
        async with resuming(session, last_id) as again:
            assert (await again.done()).status == 200
            assert again.reply.check().messages if place < len(whole) - 1 else True
            ids = [line[4:] for line in again.reply.raw.decode().splitlines() if line[:4] == "id: "]
            assert ids == whole[place + 1 :]


async def test_the_number_of_streams_a_caller_reads_concurrently_is_limited(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MAX_STREAMS_OF_CALLER", 1)
    mine, other = [await begin("acme", served.owner.mcp_token, LAST) for _ in range(2)]
    async with mine.begun(calling("hundred", progressToken="p")) as stream:
        await stream.message()
        async with resuming(mine, stream.last_id) as again:
            assert (await again.message())["params"]["progress"] == 2
            for session in (mine, other):  # another session, but the same token
                refused = await session.exchange(b"", "GET", last_event_id=stream.last_id).done()
                assert refused.status == 429
                assert refused.headers["retry-after"] == "30"
            member = await begin("acme", served.member.mcp_token, LAST)
            reply = await member.exchange(b"", "GET", last_event_id=stream.last_id).done()
            assert reply.status == 400
        await again.done()
        async with resuming(mine, stream.last_id) as again:
            assert (await again.message())["params"]["progress"] == 2
            probes().release.set()
    await true(lambda: not readers.following._places)


# --- invalid event ids ---


@pytest.mark.requirement("session.events-own")
@every_revision
async def test_unknown_and_foreign_event_ids_are_refused_with_the_same_error(
    served: Cast, revision: str
) -> None:
    mine, other = [await begin("acme", served.owner.mcp_token, revision) for _ in range(2)]
    elsewhere = await begin("globex", served.stranger.mcp_token, revision)
    async with mine.begun(calling("steps", progressToken="p")) as stream:
        await said(stream)
    never = f"{'0' * 32}-1"
    ids = ["nonsense", "1", never, f"{'0' * 32}-{'9' * 16}", "x" * 4_000, "\xff-1"]
    tried = [(mine, id) for id in ids]
    tried += [(one, id) for one in (other, elsewhere) for id in (stream.ids[0], never)]
    for one, last_id in tried:
        reply = await one.exchange(b"", "GET", last_event_id=last_id).done()
        assert reply.status == 400, last_id
        assert reply.error["message"]
        if reply.raw:
            assert reply.check().error["code"] == INVALID_REQUEST
    refusals = [
        await one.exchange(b"", "GET", last_event_id=last_id).done() for one, last_id in tried[-4:]
    ]
    assert {(one.status, one.raw) for one in refusals} == {(400, refusals[0].raw)}
    await mine.end()
    reply = await mine.exchange(b"", "GET", last_event_id=stream.ids[0]).done()
    assert reply.status == 404


# --- when the rest is not there yet ---


@every_revision
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_a_stream_ends_when_its_readers_credential_is_revoked(
    served: Cast, revision: str, credential: MakeCredential
) -> None:
    bearer, revoke = await in_database(credential, served, served.owner)
    session = await begin("acme", bearer, revision)
    async with session.begun(calling("hundred", progressToken="p")) as first:
        await first.message()
        async with resuming(session, first.last_id) as again:
            await again.message()
            await in_database(revoke)
            assert (await again.done()).status == 200
        reply = await first.done()
        probes().release.set()
    assert reply.last["error"]["code"] == INVALID_REQUEST


# --- batches ---


async def test_calls_of_a_batch_share_one_stream_and_are_answered_individually(
    served: Cast,
) -> None:
    session = await begin("acme", served.owner.mcp_token, FIRST)
    sent = [
        calling("steps", id=1, progressToken="a"),
        calling("steps", {"count": 1}, id=2, progressToken="b"),
        calling("echo", {"text": "c"}, id=3),
        message("tools/none", id=4),
        {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": []},
    ]
    async with session.begun(sent) as stream:
        reply = await stream.done()
    answers = {one["id"]: one for one in reply.messages if "id" in one}
    assert set(answers) == {1, 2, 3, 4, 5}
    assert len([one for one in reply.messages if "id" in one]) == 5
    heard = [one["params"] for one in reply.messages if one.get("method", "").endswith("progress")]
    assert [one["progress"] for one in heard if one["progressToken"] == "a"] == [1, 2, 3]
    assert [one["progress"] for one in heard if one["progressToken"] == "b"] == [1]
