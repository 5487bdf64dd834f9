"""Cancelled calls in the memory of a process, and the cost and reply of a request for one."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.calls import cancelled
from mcphost.feed.loop import ChangeNews
from mcphost.serving.database import in_database
from mcphost.serving.execution.cancelled_calls import CancelledCalls
from mcphost.serving.execution.cancelling import CancelResult, cancel
from tests.cast import Cast
from tests.rounds.client_steps import RED, asked, calling, state_of
from tests.rounds.conftest import asking, module

__all__ = ["asking"]

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "the release is off"


@pytest.fixture
def tenant() -> Iterator[UUID]:
    yield uuid4()


def put(call: UUID, tenant: UUID) -> None:
    with transaction.atomic():
        cancelled.cancel(call, tenant, WHY, 600)


def news(call: UUID, tenant: UUID) -> ChangeNews:
    return ChangeNews(1, tenant, cancelled.CANCELLED, call.hex)


def test_missed_cancellations_are_read_after_a_gap_in_the_change_log(tenant: UUID) -> None:
    memory, missed = CancelledCalls(), uuid4()
    memory.read()
    put(missed, tenant)
    assert memory.surely_not(missed)
    memory.on_gap()
    assert not memory.surely_not(missed)
    memory.read()
    assert not memory.surely_not(missed)
    assert memory.surely_not(uuid4())


def test_a_cancellation_during_the_read_is_not_lost(
    tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, meanwhile = CancelledCalls(), uuid4()

    def known() -> frozenset[UUID]:
        memory.on_change(news(meanwhile, tenant))
        return frozenset()

    monkeypatch.setattr(cancelled, "unexpired_calls", known)
    memory.read()
    assert not memory.surely_not(meanwhile)


@pytest.mark.parametrize("tool", ["paint", "repaint"])
async def test_a_retry_without_a_response_receives_the_cancellation_reason(
    asking: Cast, tool: str
) -> None:
    """Also of a tool whose rounds are not claimed, because repeating them does no harm."""
    asker = calling(asking.owner.mcp_token, tool, what="a wall")
    first = await asker.leg()
    asked(first)

    def called_off() -> CancelResult:
        call = Entry.objects.get(action="question.asked").call
        assert call is not None
        return cancel(call, asking.acme.id, WHY, Actor.system("olga"))

    assert await in_database(called_off) is CancelResult.DONE
    for answers in (None, RED):
        reply = await asker.leg(state_of(first), answers)
        assert reply.result["isError"] is True
        assert WHY in reply.result["content"][0]["text"]
    assert module("asking").did == []
    refused = Entry.objects.filter(action="state.refused").values_list("reason", flat=True)
    assert await in_database(lambda: list(refused)) == ["cancelled", "cancelled"]
