"""Calls of sessions that send input requests on their own stream, with long waits."""

from typing import Any

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_REFUSED
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.states import CallState, QuestionState
from mcphost.serving import limits
from mcphost.serving.database import in_database
from mcphost.serving.execution import links
from mcphost.serving.execution.deliveries import MAX_QUESTIONS
from mcphost.serving.limits import REFUSALS_PER_MINUTE
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown, accept

pytestmark = pytest.mark.django_db(transaction=True)


def _text(shown: Shown) -> str:
    text: str = shown.messages[-1]["result"]["content"][0]["text"]
    return text


async def _entries(action: str) -> list[Entry]:
    return await in_database(lambda: list(Entry.objects.filter(action=action).order_by("id")))


async def _questions() -> list[OpenQuestion]:
    return await in_database(lambda: list(OpenQuestion.objects.all()))


async def test_a_waiting_input_request_is_a_row_without_readable_content(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    call = await in_database(StreamedCall.objects.get)
    assert call.state == CallState.WAITING
    (row,) = await _questions()
    assert row.state == QuestionState.OPEN
    for kept in (call.request, call.journal, row.message):
        assert kept.startswith("mcps1.")
    await caller.answer(question, accept(colour="red"))
    await shown.whole()
    over = await in_database(StreamedCall.objects.get)
    assert (over.state, over.request, over.journal) == (CallState.FINISHED, "", "")
    (row,) = await _questions()
    assert (row.state, row.message, row.answer) == (QuestionState.ANSWERED, "", "")


async def test_an_expired_input_request_reaches_the_tool(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("impatient")
    await shown.asked()
    await shown.whole()
    assert _text(shown) == "timed out"
    (answer,) = await _entries("answer.received")
    assert (answer.outcome, answer.facts["evidence"]) == ("expired", "observed")


@pytest.mark.requirement("elicitation.complete")
@pytest.mark.parametrize("page", ["inside", "elsewhere"])
async def test_a_completion_notification_has_the_id_of_the_elicitation(
    asking: Cast, settings: Any, page: str
) -> None:
    settings.MCPHOST_PUBLIC_URL = "https://tools.example.com"
    caller = await Caller.at(asking)
    shown = await caller.streamed("pays", page=page)
    (asked,) = await shown.asked()
    hook = asked["params"]["message"].partition(", for ")[2]
    await caller.answer(asked, accept())
    assert await in_database(
        links.call_back, "acme", hook.rpartition("/")[2], "::1", timezone.now()
    )
    await shown.whole()
    assert _text(shown) == "paid"
    (complete,) = shown.of("notifications/elicitation/complete")
    assert complete["params"] == {"elicitationId": asked["params"]["elicitationId"]}


async def test_the_number_of_input_requests_per_call_is_limited(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("in_turn", count=MAX_QUESTIONS + 1)
    for number in range(1, MAX_QUESTIONS + 1):
        question = (await shown.asked(number))[-1]
        await caller.answer(question, accept(size=1))
    await shown.whole()
    assert shown.messages[-1]["result"]["isError"]
    assert "made more than 32 input requests" in _text(shown)


async def test_the_number_of_recorded_unexpected_responses_per_session_is_limited(
    asking: Cast,
) -> None:
    caller, other = await Caller.at(asking), await Caller.at(asking)
    for _ in range(REFUSALS_PER_MINUTE + 5):
        await caller.answer({"id": "nonsense"}, accept())
    await other.answer({"id": "nonsense"}, accept())
    assert len(await _entries(ANSWER_REFUSED)) == REFUSALS_PER_MINUTE + 1


async def test_the_number_of_recorded_unexpected_responses_per_caller_is_limited(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REFUSALS_PER_MINUTE", 2)
    monkeypatch.setattr(limits, "CALLER_TIMES", 3)
    for _ in range(6):
        caller = await Caller.at(asking)
        for _ in range(3):
            await caller.answer({"id": "nonsense"}, accept())
    assert len(await _entries(ANSWER_REFUSED)) == 2 * 3
