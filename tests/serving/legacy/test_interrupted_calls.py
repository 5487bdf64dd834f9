"""Calls that are interrupted, or notified, between an input response and the round it starts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Event
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.writer.conditions import Condition, Values
from mcphost.audit.writer.writer import RecordLostError, writer
from mcphost.calls import sessions as session_rows
from mcphost.calls.models import GetStream, Session, StreamedCall
from mcphost.calls.states import CallState, OwnedCallState, StreamState
from mcphost.protocol.errors import UNAUTHORIZED, ProtocolError
from mcphost.sealing.tokens import Reason, SealError
from mcphost.serving import limits
from mcphost.serving.database import in_database
from mcphost.serving.events import waiters
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy import questions, stream
from mcphost.serving.legacy import session as sessions
from mcphost.serving.legacy.call import SessionCall
from mcphost.serving.legacy.session import NoSessionError
from mcphost.serving.legacy.storage import StoredStream
from mcphost.serving.legacy.stream import Outgoing
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true

pytestmark = pytest.mark.django_db(transaction=True)


def _only() -> SessionCall:
    (call,) = calls.under_way
    return call


async def _waits(caller: Caller, tool: str = "paint", **arguments: Any) -> Shown:
    shown = await caller.streamed(tool, "t", **(arguments or {"what": "a wall"}))
    await shown.asked()
    await true(lambda: _only()._state is OwnedCallState.RESTING)
    return shown


@asynccontextmanager
async def slow_writer() -> AsyncIterator[None]:
    """Inside, the writer commits nothing. Afterwards it commits at once what was submitted."""
    began, go_on = Event(), Event()

    def values() -> Values:
        began.set()
        go_on.wait(PATIENCE)
        return session_rows.is_open(uuid4(), "").values()

    condition = session_rows.is_open(uuid4(), "")
    held = writer.submit_if(Condition(condition.change, condition.nonce, values))
    held.add_done_callback(lambda one: one.cancelled() or one.exception())
    await asyncio.to_thread(began.wait, PATIENCE)
    try:
        yield
    finally:
        go_on.set()


async def _taken(caller: Caller, shown: Shown) -> "asyncio.Task[None]":
    """Send an input response; it has arrived when this returns, but the next round has not begun."""
    (opened,) = questions._open_rounds
    said = orjson.dumps({"result": accept(colour="red")})
    given = questions.IncomingResponse(caller.session.tenant, opened, said)
    waiting = questions.open_round(opened, caller.session.id)
    assert waiting is not None
    task: Any = asyncio.create_task(waiting.take(given))
    await asyncio.sleep(0)
    assert waiting.last is given
    return task


async def _nothing_is_left() -> None:
    await true(lambda: not calls.under_way)
    assert not stream.live
    assert not questions._open_rounds
    assert not calls._in_progress.calls
    assert not calls._in_progress.bytes


async def _ends() -> list[str]:
    """The outcomes of the recorded ends of rounds, in their order."""
    finished = Entry.objects.filter(action="round.finished").order_by("id")
    return await in_database(lambda: [one.outcome for one in finished])


GONE = ProtocolError(UNAUTHORIZED, "gone")
INTERRUPTIONS: dict[str, tuple[Callable[[SessionCall], None], bytes]] = {
    "cancelled": (lambda call: call._cancel(), b"notifications/cancelled"),
    "access lost": (lambda call: call.revoke(GONE), b'"gone"'),
    "changes missed": (lambda call: waiters.gap(), b"a wall is red"),
}
"""What happens as an input response arrives, and what the last message of the stream has."""


@pytest.mark.parametrize("name", INTERRUPTIONS)
async def test_an_input_response_to_a_call_interrupted_at_that_moment_is_accepted(
    asking: Cast, name: str
) -> None:
    interrupt, last = INTERRUPTIONS[name]
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    answering = await _taken(caller, shown)
    interrupt(_only())
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([answering])
        messages = await shown.whole()
    assert last in orjson.dumps(messages[-1])
    await _nothing_is_left()


async def test_concurrent_responses_to_one_or_all_input_requests_start_one_round(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    colours = ("red", "green", "blue")
    every = [caller.answer(shown.requests[0], accept(colour=colour)) for colour in colours]
    await asyncio.wait_for(asyncio.gather(*every), PATIENCE)
    await shown.whole()
    assert module("asking").did in [[f"a wall {colour}"] for colour in colours]
    assert await in_database(Entry.objects.filter(action="answer.received").count) == 1
    await _nothing_is_left()
    shown = await caller.streamed("both")
    given = {"Which colour?": accept(colour="red"), "How large?": accept(size=3)}
    requests = await shown.asked(2)
    answers = [caller.answer(one, given[one["params"]["message"]]) for one in requests]
    await asyncio.wait_for(asyncio.gather(*answers), PATIENCE)
    assert (await shown.whole())[-1]["result"]["content"][0]["text"] == "red 3"
    assert await _ends() == ["input_required", "complete"] * 2
    await _nothing_is_left()


async def test_an_input_response_whose_http_request_is_cut_off_is_not_lost(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "are_set", lambda incoming: True)
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    waiting = next(iter(questions._open_rounds.values()))
    async with slow_writer():
        answering = asyncio.create_task(caller.answer(shown.requests[0], accept(colour="red")))
        await true(lambda: waiting._storing)
        answering.cancel()
        await true(lambda: answering.done())
        await true(lambda: _only()._state is OwnedCallState.RESTING and not waiting._notified)
    await shown.whole()
    assert shown.messages[-1]["result"]["content"][0]["text"] == "a wall is red"
    await _nothing_is_left()


async def test_a_refused_input_response_does_not_prevent_its_call_from_ending(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "are_set", lambda incoming: True)
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    waiting = next(iter(questions._open_rounds.values()))
    of_session = Session.objects.filter(id=caller.session.id)
    await in_database(lambda: of_session.update(ended_at=timezone.now()))
    async with slow_writer():
        answering = asyncio.create_task(caller.answer(shown.requests[0], accept(colour="red")))
        await true(lambda: waiting._storing)
        call = _only()
        call._cancel()
        await true(lambda: call.outgoing._state is StreamState.LAST)
    with pytest.raises(NoSessionError):
        await answering
    await shown.whole()
    assert shown.retry is None
    row = await in_database(StreamedCall.objects.get)
    assert (row.state, row.request) == (CallState.CANCELLED, "")
    await _nothing_is_left()


async def _ends_with_an_error(caller: Caller) -> Shown:
    shown = await caller.streamed("paint", "t", what="a wall")
    messages = await shown.whole()
    assert messages and "error" in messages[-1], messages
    await _nothing_is_left()
    return shown


async def test_a_call_whose_first_input_request_cannot_be_stored_ends_with_an_error(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    real, submit = StoredStream._batch, writer.submit_if
    lost: list[int] = []

    def too_large(stored: StoredStream, said: Any) -> Any:
        if any(b"elicitation" in message for message in said.messages):
            raise SealError(Reason.TOO_LARGE)
        return real(stored, said)

    def losing(condition: Condition, records: Any = ()) -> Any:
        if condition.change.name == "call_begin" and not lost:
            lost.append(1)
            raise RecordLostError("lost")
        return submit(condition, records)

    with monkeypatch.context() as patched:
        patched.setattr(StoredStream, "_batch", too_large)
        await _ends_with_an_error(caller)
    with monkeypatch.context() as patched:
        patched.setattr(writer, "submit_if", losing)
        await _ends_with_an_error(caller)


async def test_a_session_never_exceeds_its_limit_of_get_streams_opened_concurrently(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    async with slow_writer():
        opening = [
            asyncio.create_task(sessions.open_stream(caller.session, uuid4())) for _ in range(20)
        ]
        await asyncio.sleep(0)
    opened = await asyncio.gather(*opening)
    count = await in_database(GetStream.objects.count)
    assert (count, sum(opened)) == (8, 8)


async def test_no_get_stream_opens_in_a_session_that_ends_at_that_moment(asking: Cast) -> None:
    caller = await Caller.at(asking)
    async with slow_writer():
        ending = asyncio.create_task(sessions.end(caller.session))
        opening = asyncio.create_task(sessions.open_stream(caller.session, uuid4()))
        await asyncio.sleep(0)
    await ending
    opened = await opening
    count = await in_database(GetStream.objects.count)
    assert (opened, count) == (False, 0)
    assert await in_database(Session.objects.filter(ended_at=None).count) == 0


@pytest.mark.parametrize(
    ("changes", "recorded"),
    [
        ({"state": CallState.CANCELLED}, ["round.started", "round.finished", "round.finished"]),
        ({"owner": uuid4(), "epoch": 2}, ["round.started"]),
    ],
    ids=["cancelled elsewhere", "taken over"],
)
async def test_a_late_input_request_of_a_round_is_recorded_only_by_the_owner_of_its_call(
    asking: Cast, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], recorded: list[str]
) -> None:
    ask = Outgoing.ask

    async def late(outgoing: Outgoing, *args: Any) -> None:
        outgoing.open()
        await outgoing.written()
        await in_database(lambda: StreamedCall.objects.update(**changes))
        await ask(outgoing, *args)

    monkeypatch.setattr(Outgoing, "ask", late)
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    await true(lambda: not calls.under_way)
    rounds = Entry.objects.filter(action__startswith="round.").order_by("id")
    found = await in_database(lambda: [each.action for each in rounds])
    assert (found, shown.requests) == (recorded, [])
