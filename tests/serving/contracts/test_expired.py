"""An input request that expires or is cancelled is withdrawn before any other message of its
stream."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.serving.contracts.clients import Session, SessionTask
from tests.serving.contracts.conftest import KINDS
from tests.serving.contracts.offers import Offer

pytestmark = pytest.mark.django_db(transaction=True)

IN_SESSIONS = [(kind, delivery) for kind in KINDS for delivery in ("session", "session-task")]


def withdrawn(messages: list[dict[str, Any]]) -> list[Any]:
    """Return the ids of the requests that are withdrawn in messages of which the last is the response."""
    *before, response = messages
    assert "method" not in response, response
    cancelled = [one["params"] for one in before if one["method"] == "notifications/cancelled"]
    assert all(one["reason"] for one in cancelled)
    return [one["requestId"] for one in cancelled]


@pytest.mark.parametrize("pair", IN_SESSIONS, ids="-".join, indirect=True)
async def test_an_expired_input_request_is_withdrawn_before_the_result(
    offer: Offer, caller: Session | SessionTask, settings: Settings
) -> None:
    settings.MCPHOST_ANSWER_SECONDS = 0.5
    await caller.begin("beside")
    await caller.asked("a", "b")
    asked = caller.question_ids
    assert len(asked) == 2
    assert sorted(withdrawn(await caller.messages())) == sorted(asked)


@pytest.mark.parametrize("pair", IN_SESSIONS, ids="-".join, indirect=True)
async def test_the_input_request_of_a_cancelled_call_or_task_is_withdrawn(
    offer: Offer, caller: Session | SessionTask
) -> None:
    await caller.begin("twice")
    await caller.asked("a")
    await caller.answer(a={"action": "accept", "content": {"name": "x"}})
    await caller.asked("b")
    asked = caller.question_ids[-1:]
    await caller.cancel()
    messages = await caller.messages()
    if isinstance(caller, Session):  # a cancelled request has no response
        messages.append({})
    assert withdrawn(messages) == asked
