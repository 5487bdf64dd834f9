"""Calls of sessions that end before the client has responded, and progress while they wait."""

from datetime import timedelta

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_REFUSED
from mcphost.audit.services import end_waiting
from mcphost.calls import questions as stored
from mcphost.calls import session_calls, sessions
from mcphost.calls.models import OpenQuestion, Session, StreamedCall
from mcphost.calls.states import CallState, QuestionState
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy.cancellation import cancellations, name_of
from mcphost.serving.legacy.session import check
from mcphost.serving.process import housekeeping
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown, accept, true
from tests.serving.legacy.test_takeover import _waits

pytestmark = pytest.mark.django_db(transaction=True)


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


async def test_a_cancelled_call_withdraws_its_input_requests(asking: Cast) -> None:
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


async def test_a_call_can_be_cancelled_from_any_process(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    session = caller.session
    await in_database(session_calls.cancel, session.id, session.tenant, name_of(session.id, 1))
    await _is_called_off(shown)


async def test_a_call_cancelled_on_another_process_accepts_no_response(
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


# --- sessions that expire while a call waits ---


async def _expire(caller: Caller) -> None:
    sessions.session_uses.forget_all()
    past = timezone.now() - timedelta(seconds=1)
    change = Session.objects.filter(id=caller.session.id)
    await in_database(lambda: change.update(expires_at=past, used_at=past))


async def test_a_response_is_accepted_although_its_session_would_have_expired(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _expire(caller)
    assert await in_database(sessions.prune) == 0
    await check(caller.session)
    await caller.answer(shown.requests[0], accept(colour="red"))
    assert (await shown.whole())[-1]["result"]["content"][0]["text"] == "a wall is red"


async def test_a_waiting_call_keeps_its_session_alive(asking: Cast) -> None:
    caller = await Caller.at(asking)
    await _waits(caller)
    await _expire(caller)
    await in_database(housekeeping._write_session_uses)
    row = await in_database(Session.objects.get, id=caller.session.id)
    assert row.expires_at > timezone.now()
