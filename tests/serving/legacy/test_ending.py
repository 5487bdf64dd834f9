"""Calls of sessions that end before the client has responded, and progress while they wait."""

import asyncio

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_REFUSED
from mcphost.audit.services import end_waiting
from mcphost.calls import questions as stored
from mcphost.calls import session_calls
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.states import CallState, QuestionState
from mcphost.protocol.errors import UNAUTHORIZED, ProtocolError
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy import questions as asking_module
from mcphost.serving.legacy.cancellation import cancellations, name_of
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown, accept, true

pytestmark = pytest.mark.django_db(transaction=True)


async def _waits(caller: Caller) -> Shown:
    shown = await caller.streamed("paint", "t", what="a wall")
    await shown.asked()
    return shown


async def _is_called_off(shown: Shown) -> None:
    """Check that input request and call are cancelled, without a response or an owner."""
    messages = await shown.whole()
    assert messages[-1]["method"] == "notifications/cancelled"
    assert messages[-1]["params"]["requestId"] == shown.requests[0]["id"]
    assert shown.retry is None
    await true(lambda: StreamedCall.objects.get().request == "")
    row = await in_database(StreamedCall.objects.get)
    assert (row.state, row.journal) == (CallState.CANCELLED, "")
    question = await in_database(OpenQuestion.objects.get)
    assert question.state == QuestionState.CANCELLED
    assert not calls.under_way


async def test_a_call_that_is_called_off_takes_its_questions_back(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await cancellations.cancel(caller.session, 1)
    await _is_called_off(shown)
    await caller.answer(shown.requests[0], accept(colour="red"))
    (ended,) = await in_database(lambda: list(Entry.objects.filter(round=2)))
    assert (ended.outcome, ended.reason) == ("cancelled", "the client cancelled the request")
    assert (ended.action, ended.target) == ("round.finished", "paint")
    assert ended.call is not None
    assert not await in_database(end_waiting, ended.call, asking.acme.id, 1, "twice")
    refused = await in_database(lambda: Entry.objects.get(action=ANSWER_REFUSED))
    assert (refused.reason, refused.facts["key"]) == ("late", "colour")


async def test_a_call_can_be_called_off_from_any_process(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    session = caller.session
    await in_database(session_calls.cancel, session.id, session.tenant, name_of(session.id, 1))
    await _is_called_off(shown)


async def test_a_call_that_was_called_off_elsewhere_takes_no_answer_and_no_question_for_expired(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await in_database(_call_off_unheard)
    await caller.answer(shown.requests[0], accept(colour="red"))
    await _is_called_off(shown)
    refused = await in_database(lambda: Entry.objects.get(action=ANSWER_REFUSED))
    assert refused.reason == "late"


def _call_off_unheard() -> None:
    """Cancel the call as another process does, before this one is notified."""
    call = StreamedCall.objects.get()
    StreamedCall.objects.update(state=CallState.CANCELLED)
    stored.cancel(call.id)


async def test_who_loses_its_authority_is_told_instead_of_an_answer(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    (call,) = calls.under_way
    call.revoke(ProtocolError(UNAUTHORIZED, "not any more"))
    messages = await shown.whole()
    assert [one.get("method") for one in messages[-2:]] == ["notifications/cancelled", None]
    assert messages[-1]["error"]["message"] == "not any more"
    ended = await in_database(lambda: Entry.objects.get(round=2))
    assert (ended.outcome, ended.reason) == ("cancelled", "not any more")


async def test_progress_rises_while_somebody_is_waited_for(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_module, "TICK_SECONDS", 0.02)
    caller = await Caller.at(asking)
    shown = await caller.streamed("logs_and_asks", "t")
    await shown.until(lambda shown: len(shown.of("notifications/progress")) > 3)
    await caller.answer(shown.requests[0], accept(colour="red"))
    await shown.whole()
    told = [one["params"]["progress"] for one in shown.of("notifications/progress")]
    assert told == sorted(set(told))
    assert (told[0], told[-1]) == (1, 2)
    assert all(1 < one < 1.01 for one in told[1:-1])


async def test_nothing_is_said_meanwhile_to_who_wants_no_progress(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_module, "TICK_SECONDS", 0.02)
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    for _ in range(5):
        await asyncio.sleep(0.02)
    await caller.answer(question, accept(colour="red"))
    assert not (await shown.whole() and shown.of("notifications/progress"))
