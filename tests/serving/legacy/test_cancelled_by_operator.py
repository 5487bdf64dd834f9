"""An operator cancels a waiting call of a session: its client receives the reason on the call's
stream, whichever process owns the call, and no further round starts."""

import asyncio
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.calls.models import StreamedCall
from mcphost.calls.states import CallState
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.execution.cancelling import CancelResult, cancel
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy.takeover import takeovers
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true
from tests.serving.legacy.test_takeover import _dies, _waits

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "the release is off"


async def _cancelled(tenant: UUID) -> CancelResult:
    call = await in_database(lambda: StreamedCall.objects.get().id)
    return await in_database(cancel, call, tenant, WHY, Actor.system("olga"))


def _told(shown: Shown) -> str:
    last = shown.messages[-1]
    assert last["id"] == 1
    assert last["result"]["isError"] is True
    text: str = last["result"]["content"][0]["text"]
    return text


async def test_the_client_receives_the_reason_and_its_input_request_is_withdrawn(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    assert await _cancelled(asking.acme.id) is CancelResult.DONE
    await shown.whole()
    assert WHY in _told(shown)
    (withdrawn,) = shown.of("notifications/cancelled")
    assert withdrawn["params"]["requestId"] == shown.requests[0]["id"]
    await caller.answer(shown.requests[0], accept(colour="red"))
    assert module("asking").did == []
    ends = Entry.objects.filter(action="round.finished").order_by("id")
    assert await in_database(lambda: [(each.outcome, each.round) for each in ends]) == [
        ("input_required", 1),
        ("cancelled", 2),
    ]
    await true(lambda: not calls.under_way)


async def test_a_call_of_a_dead_process_is_ended_by_another(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    (call,) = calls.under_way
    await _dies(call)
    assert await _cancelled(asking.acme.id) is CancelResult.DONE
    resumed = await caller.resumed(shown.ids[-1])
    assert WHY in _told(resumed)
    assert module("asking").did == []


async def test_a_response_that_arrives_before_the_cancellation_completes_the_call(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller, "paint_slowly", what="a wall")
    await caller.answer(shown.requests[0], accept(colour="red"))
    await asyncio.wait_for(module("asking").running.wait(), PATIENCE)
    assert await _cancelled(asking.acme.id) is CancelResult.RUNS
    module("asking").release.set()
    await shown.whole()
    assert shown.messages[-1]["result"]["content"][0]["text"] == "a wall is red"
    cancellations = Entry.objects.filter(action="call.cancelled", call__isnull=False)
    assert not await in_database(cancellations.exists)


async def test_housekeeping_ends_a_cancelled_call_without_an_owner(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    (call,) = calls.under_way
    shutdown.begin()  # the change is read by processes that take nothing over
    await _dies(call)
    assert await _cancelled(asking.acme.id) is CancelResult.DONE
    shutdown.reset()
    assert await in_database(lambda: StreamedCall.objects.get().state) == CallState.CANCELLED
    await in_database(takeovers.find_orphans)
    await true(lambda: StreamedCall.objects.get().state == CallState.FINISHED)
    assert WHY in _told(await caller.resumed(shown.ids[-1]))
