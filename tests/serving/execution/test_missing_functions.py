"""Rounds of stateless calls at a process that lacks the function: another process runs them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.calls.models import Claim
from mcphost.calls.ownership import LEASE
from mcphost.catalogue import services
from mcphost.catalogue.models import Primitive
from mcphost.feed import nodes
from mcphost.feed.nodes import heartbeat
from mcphost.identity.models import Token
from mcphost.kinds.declarations import ABSENT, NO_PROCESS
from mcphost.observability import counters
from mcphost.routing import process
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.execution import claims, released_rounds
from mcphost.serving.execution.claims import ClaimLimits
from mcphost.serving.execution.missing_functions import NOT_TAKEN
from mcphost.serving.execution.released_rounds import NOT_OFFERED
from mcphost.serving.execution.rounds import GIVEN_UP, MAX_ATTEMPTS
from tests.cast import ACTOR, Cast
from tests.mcp import Reply, begun
from tests.rounds.client_steps import BLUE, RED, Asker, asked, calling, done, frozen, state_of
from tests.rounds.conftest import asking, module
from tests.serving.processes_without_code import BOUND, Lacking, becomes, lacking

__all__ = ["asking"]

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = ClaimLimits(wait=0.2, first_look=0.02, longest_pause=0.02)
UNAVAILABLE = 503
PAINT = "asking.paint"


@pytest.fixture(autouse=True)
async def _stopped(asking: Cast) -> AsyncIterator[None]:
    """Stop the threads that wake the event loop before it is closed."""
    yield
    await process.stop()


@pytest.fixture
def asker(asking: Cast) -> Asker:
    return calling(asking.owner.mcp_token, "paint", what="it")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait for another process only for a moment."""
    monkeypatch.setattr(claims._claiming, "_limits", SHORT)


async def _is_left() -> None:
    left = Claim.objects.exclude(function="").filter(state="released")
    await becomes(left.exists, "a round is left")


async def _run_elsewhere(here: Lacking, request: "asyncio.Task[Reply]") -> Reply:
    """Let the other process run the round that a request has left; return the reply."""
    await _is_left()
    here.end()
    async with asyncio.timeout(BOUND):
        return await request


async def _recorded(target: str, *actions: str) -> list[tuple[str, str]]:
    entries = Entry.objects.filter(target=target, method="tools/call").order_by("at", "id")
    if actions:
        entries = entries.filter(action__in=actions)
    return [(entry.action, entry.outcome) for entry in await in_database(lambda: list(entries))]


def _did() -> list[str]:
    made: list[str] = module("asking").did
    return made


def _retryable(reply: Reply, message: str = ABSENT) -> None:
    assert reply.status == UNAVAILABLE, reply.raw
    assert reply.error["message"] == message
    assert reply.error["data"]["retryAfter"] > 0


async def test_a_first_call_is_run_by_a_process_that_has_the_function(asker: Asker) -> None:
    async with lacking(PAINT) as here:
        first = await _run_elsewhere(here, asyncio.create_task(asker.leg()))
    assert list(asked(first)) == ["colour"]
    assert done(await asker.leg(state_of(first), RED)) == "it is red"
    assert _did() == ["it red"]
    calls = Entry.objects.filter(target="paint", method="tools/call").values_list("call", flat=True)
    assert len(await in_database(lambda: set(calls))) == 1
    assert await _recorded("paint") == [
        ("round.started", ""),
        ("round.finished", "input_required"),
        ("question.asked", ""),
        ("answer.received", "accept"),
        ("round.started", ""),
        ("round.finished", "complete"),
    ]


@pytest.mark.parametrize("tool", ["paint", "repaint"])
async def test_a_response_is_recorded_here_and_run_once_by_a_process_with_the_function(
    asking: Cast, tool: str
) -> None:
    asker = calling(asking.owner.mcp_token, tool, what="it")
    state = state_of(await asker.leg())
    async with lacking(f"asking.{tool}") as here:
        request = asyncio.create_task(asker.leg(state, RED))
        await _is_left()
        assert await _recorded(tool, "answer.received") == [("answer.received", "accept")]
        assert _did() == []
        if tool == "paint":
            frozen(await asker.leg(state, BLUE))
            again = asyncio.create_task(asker.leg(state, RED))
        assert done(await _run_elsewhere(here, request)) == "it is red"
        if tool == "paint":
            async with asyncio.timeout(BOUND):
                assert done(await again) == "it is red"
            assert done(await asker.leg(state, RED)) == "it is red"
            frozen(await asker.leg(state, BLUE))
    assert _did() == ["it red"]
    assert await _recorded(tool, "answer.received") == [("answer.received", "accept")]


async def test_if_no_other_process_takes_the_round_the_state_keeps_the_responses(
    asker: Asker, impatient: None
) -> None:
    state = state_of(await asker.leg())
    async with lacking(PAINT) as here:
        sent_on = await asker.leg(state, RED)
        assert "inputRequests" not in sent_on.result
        held = state_of(sent_on)
        assert state_of(await asker.leg(state, RED)) == held, "the same request, the same state"
        _retryable(await asker.leg(held), NOT_TAKEN)
        _retryable(await asker.leg(held), NOT_TAKEN)
        assert _did() == []
        here.end()
        assert done(await asker.leg(held)) == "it is red"
        assert done(await asker.leg(held)) == "it is red"
        assert state_of(await asker.leg(state, RED)) == held
    assert _did() == ["it red"]
    assert await _recorded("paint", "answer.received") == [("answer.received", "accept")]


async def test_a_first_call_is_sent_on_with_a_state_and_runs_even_if_its_client_does_not_return(
    asker: Asker, impatient: None
) -> None:
    shed = counters.rounds_shed.series[("absent",)]
    before = shed.value
    async with lacking(PAINT) as here:
        sent_on = await asker.leg()
        assert "inputRequests" not in sent_on.result
        assert shed.value == before + 1
        held = state_of(sent_on)
        _retryable(await asker.leg(held), NOT_TAKEN)
        here.end()
        ended = Claim.objects.exclude(function="").exclude(outcome="").filter(epoch=1)
        await becomes(ended.exists, "the round has run")
        first = await asker.leg(held)
    assert list(asked(first)) == ["colour"]
    assert done(await asker.leg(state_of(first), RED)) == "it is red"
    assert _did() == ["it red"]


async def _set_claim(**changes: object) -> None:
    await in_database(lambda: Claim.objects.exclude(function="").update(**changes))


async def test_a_first_call_whose_process_died_is_sent_on(asker: Asker, impatient: None) -> None:
    async with lacking(PAINT) as here:
        request = asyncio.create_task(asker.leg())
        await _is_left()
        long_ago = timezone.now() - 2 * LEASE
        await _set_claim(state="running", owner=uuid4(), epoch=1, taken_at=long_ago)
        with pytest.MonkeyPatch.context() as judging:
            judging.setattr(nodes, "can_judge", lambda: True)
            async with asyncio.timeout(BOUND):
                sent_on = state_of(await request)
        here.end()
        assert list(asked(await asker.leg(sent_on))) == ["colour"]


@pytest.mark.parametrize(("epoch", "end"), [(3, ""), (MAX_ATTEMPTS, GIVEN_UP)])
async def test_a_round_released_by_its_process_is_claimed_again_a_limited_number_of_times(
    asker: Asker, epoch: int, end: str
) -> None:
    state = state_of(await asker.leg())
    async with lacking(PAINT) as here:
        request = asyncio.create_task(asker.leg(state, RED))
        await _is_left()
        # As if other processes had begun the round and had released it at their end.
        await _set_claim(epoch=epoch)
        reply = await _run_elsewhere(here, request)
    if end:
        assert (reply.error["code"], reply.error["message"]) == (-32603, end)
    else:
        assert done(reply) == "it is red"
    assert _did() == ([] if end else ["it red"])


READING: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "asking.blocking": ("tools/call", {"name": "blocking", "arguments": {}}),
    "asking.letter": ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}),
    "asking.page": ("resources/read", {"uri": "asking://page"}),
    "asking.day": ("resources/read", {"uri": "asking://days/1"}),
}


async def test_a_read_only_first_call_gets_retry_after_and_a_final_error_without_processes(
    asking: Cast,
) -> None:
    askers = [
        Asker(asking.owner.mcp_token, params, method=method) for method, params in READING.values()
    ]
    async with lacking(*READING) as here:
        for asker in askers:
            _retryable(await asker.leg())
        assert not await in_database(Claim.objects.exists)
        here.end()
        for asker in askers:
            assert asked(await asker.leg())
    async with lacking(*READING) as here:
        await here.none_lives()
        for asker in askers:
            refused = await asker.leg()
            assert (refused.error["code"], refused.error["message"]) == (-32603, NO_PROCESS)


async def test_a_first_call_is_not_run_after_its_client_disconnects(
    asking: Cast, asker: Asker
) -> None:
    async with lacking(PAINT) as here:
        async with begun("acme", asker.message(), asking.owner.mcp_token) as exchange:
            await _is_left()
            exchange.hang_up()
        ended = Claim.objects.filter(state="finished")
        await becomes(ended.exists, "the round is given up")
        here.end()
    assert await _recorded("paint") == [("round.finished", "cancelled")]


async def test_a_response_is_processed_even_if_its_client_disconnects(
    asking: Cast, asker: Asker
) -> None:
    state = state_of(await asker.leg())
    async with lacking(PAINT) as here:
        message = asker.message(requestState=state, inputResponses=RED)
        async with begun("acme", message, asking.owner.mcp_token) as exchange:
            await _is_left()
            exchange.hang_up()
        here.end()
        await becomes(Claim.objects.filter(state="finished").exists, "the round has run")
        assert done(await asker.leg(state, RED)) == "it is red"
    assert _did() == ["it red"]


async def test_a_round_cut_by_the_shutdown_of_its_process_is_run_by_another(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "paint_slowly", what="it")
    state = state_of(await asker.leg())
    async with lacking("asking.paint_slowly") as here:
        message = asker.message(requestState=state, inputResponses=RED)
        async with begun("acme", message, asking.owner.mcp_token) as exchange:
            await _is_left()
            exchange.hang_up()
        here.end()
        try:
            async with asyncio.timeout(BOUND):
                await module("asking").running.wait()
            shutdown.begin()
            shutdown.cut()
            given_up = Claim.objects.filter(function="asking.paint_slowly").exclude(state="running")
            await becomes(given_up.exists, "the round is cut")
        finally:
            shutdown.reset()
        assert (await in_database(given_up.get)).state == "released"
        module("asking").release.set()
        assert done(await asker.leg(state, RED)) == "it is red"


def _are_left(number: int) -> bool:
    return Claim.objects.filter(state="released").count() == number


async def test_the_rounds_of_one_tenant_do_not_block_those_of_another(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released_rounds, "MAX_ROUNDS", 2)
    monkeypatch.setattr(released_rounds, "MAX_ROUNDS_PER_TENANT", 1)
    askers = [
        *(calling(asking.owner.mcp_token, "paint_slowly", what=what) for what in ("a", "b")),
        calling(None, "paint_slowly", what="c").but(tenant="commons"),
    ]
    states = [state_of(await asker.leg()) for asker in askers]
    requests = []
    async with lacking("asking.paint_slowly") as here:
        for number, (asker, state) in enumerate(zip(askers, states, strict=True)):
            requests.append(asyncio.create_task(asker.leg(state, RED)))
            await becomes(partial(_are_left, number + 1), "a round is left")
        here.end()
        await becomes(lambda: len(_did()) == 2, "two rounds run")
        assert sorted(_did()) == ["a red", "c red"]
        module("asking").release.set()
        async with asyncio.timeout(BOUND):
            replies = [done(await request) for request in requests]
    assert replies == ["a is red", "b is red", "c is red"]


async def test_a_tool_disabled_meanwhile_is_not_run(asking: Cast, asker: Asker) -> None:
    state = state_of(await asker.leg())
    async with lacking(PAINT) as here:
        request = asyncio.create_task(asker.leg(state, RED))
        await _is_left()
        tool = await in_database(Primitive.objects.get, tenant=asking.acme.id, name="paint")
        await in_database(services.disable, tool.id, ACTOR)
        refused = await _run_elsewhere(here, request)
    assert (refused.error["code"], refused.error["message"]) == (-32602, NOT_OFFERED)
    assert _did() == []


async def test_a_caller_who_has_lost_access_meanwhile_is_refused(asker: Asker) -> None:
    state = state_of(await asker.leg())
    async with lacking(PAINT) as here:
        held = asyncio.create_task(asker.leg(state, RED))
        await _is_left()
        # Not announced: the request itself stays, so that the other process has to find out.
        await in_database(lambda: Token.objects.all().delete())
        refused = await _run_elsewhere(here, held)
    assert refused.status in (401, 200), refused.raw
    assert refused.error["message"] == "This credential is no longer valid"
    assert _did() == []


async def test_a_published_function_that_no_process_has_is_not_reported_as_unknown(
    asker: Asker,
) -> None:
    async with lacking(PAINT) as here:
        await here.none_lives()
        refused = await asker.leg()
        assert (refused.error["code"], refused.error["message"]) == (-32603, NO_PROCESS)
        heartbeat._steady_since = heartbeat._clock()  # this process has just started
        _retryable(await asker.leg())
        missing = await asker.but(params={"name": "nothing", "arguments": {}}).leg()
        assert missing.error["message"] == "Unknown tool: 'nothing'"
