"""An operator can cancel a call that waits for input, and its caller receives the reason."""

from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.calls.models import CancelledCall, Claim
from mcphost.serving.database import in_database
from mcphost.serving.execution.cancelled_calls import cancelled_calls
from mcphost.serving.execution.cancelling import CancelResult, cancel
from tests.serving.contracts.clients import DELIVERIES, Client, Following, Result, SessionTask
from tests.serving.contracts.offers import Offer
from tests.serving.contracts.test_contract import got, named, refused
from tests.serving.legacy.callers import true

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "the release is off"
OLGA = Actor.system("olga")
BY_RETRY = [
    ("python", "modern"),
    ("script", "modern"),
    ("http", "modern"),
    ("python", "playground"),
]
ONE = [("python", delivery) for delivery in DELIVERIES]
OTHERS = [(kind, delivery) for kind in ("http", "script") for delivery in DELIVERIES]


def the_call() -> UUID:
    found = Entry.objects.filter(action="question.asked").order_by("-id").first()
    assert found is not None and found.call is not None
    return found.call


async def cancelled(offer: Offer) -> CancelResult:
    await true(Entry.objects.filter(action="question.asked").exists)  # a task shows it earlier
    call = await in_database(the_call)
    return await in_database(cancel, call, offer.cast.acme.id, WHY, OLGA)


async def told(caller: Client) -> str:
    """Return the text that the client of a cancelled call gets, whenever it gets it."""
    if isinstance(caller, Following):
        seen = await caller._task.ended()
        assert seen["status"] == "cancelled"
        return str(seen["statusMessage"])
    if isinstance(caller, SessionTask):
        return str((await caller.result())["error"]["message"])
    return refused(await result(caller))


async def result(caller: Client) -> Result:
    if hasattr(caller, "_reply") or hasattr(caller, "_trial"):  # it returns to its call
        await caller.answer(a=named("x"))
    return await caller.result()


def state_of(offer: Offer) -> str:
    found = call_list.call(the_call(), frozenset({offer.cast.acme.id}), timezone.now())
    assert found is not None
    (act,) = found.acts
    assert (act.actor_label, act.reason) == ("olga", WHY)
    return found.state


@pytest.mark.parametrize("pair", OTHERS, ids="-".join, indirect=True)
async def test_the_caller_of_a_cancelled_call_receives_the_reason(offer: Offer, caller: Client):
    await caller.begin("once")
    await caller.asked("a")
    assert await cancelled(offer) is CancelResult.DONE
    assert WHY in await told(caller)
    assert await in_database(state_of, offer) == "cancelled"


@pytest.mark.parametrize("pair", ONE, ids="-".join, indirect=True)
async def test_a_call_is_cancelled_once_by_its_own_tenant_and_its_responses_stay_recorded(
    offer: Offer, caller: Client
):
    await caller.begin("twice")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    await caller.asked("b")
    call, claims = await in_database(the_call), await in_database(Claim.objects.count)
    foreign = await in_database(cancel, call, offer.cast.globex.id, WHY, OLGA)
    assert foreign is CancelResult.OVER
    assert not await in_database(CancelledCall.objects.exists)
    assert await in_database(Claim.objects.count) == claims
    before = await in_database(lambda: set(Entry.objects.values_list("id")))
    assert await cancelled(offer) is CancelResult.DONE
    assert await cancelled(offer) is CancelResult.OVER
    assert WHY in await told(caller)
    assert await in_database(state_of, offer) == "cancelled"
    assert before < await in_database(lambda: set(Entry.objects.values_list("id")))
    answers = Entry.objects.filter(action="answer.received")
    assert await in_database(lambda: [each.facts["key"] for each in answers]) == ["a"]
    assert (
        await in_database(Entry.objects.filter(action="call.cancelled", call__isnull=False).count)
        == 1
    )


@pytest.mark.parametrize("pair", BY_RETRY, ids="-".join, indirect=True)
async def test_a_cancelled_call_is_not_run_even_by_a_process_without_the_notification(
    offer: Offer, caller: Client
):
    await caller.begin("once")
    await caller.asked("a")
    assert await cancelled(offer) is CancelResult.DONE
    cancelled_calls.on_gap()
    await in_database(cancelled_calls.read)
    cancelled_calls._known = frozenset()  # as on a process that has not been notified
    assert WHY in refused(await result(caller))
    assert await in_database(state_of, offer) == "cancelled"


@pytest.mark.parametrize("pair", ONE, ids="-".join, indirect=True)
async def test_a_completed_call_cannot_be_cancelled(offer: Offer, caller: Client):
    await caller.begin("once")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    assert got(await caller.result()) == ["x"]
    assert await cancelled(offer) is CancelResult.OVER
    assert not await in_database(CancelledCall.objects.exists)
