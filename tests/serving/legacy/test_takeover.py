"""Takeover of calls whose process has died or released them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError
from django.db.models import F

from mcphost.audit.models import Entry
from mcphost.calls.models import StreamedCall
from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import CallState
from mcphost.feed.nodes import heartbeat
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy import session, storage
from mcphost.serving.legacy.call import SessionCall
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.serving.legacy.takeover import takeovers
from mcphost.tenants import selectors as tenants
from tests.cast import Cast
from tests.credentials import CREDENTIALS, MakeCredential
from tests.rounds.conftest import module
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true

pytestmark = pytest.mark.django_db(transaction=True)


def _only() -> SessionCall:
    (call,) = calls.under_way
    return call


async def _dies(call: SessionCall) -> None:
    """Simulate the death of the call's process, after which no process owns the call."""
    stored = call.outgoing.stored
    call.outgoing.abandon()
    call._give_up()
    await true(lambda: call not in calls.under_way)
    row = StreamedCall.objects.filter(id=stored.owner.id)
    before = F("taken_at") - timedelta(hours=1)
    await in_database(lambda: row.update(owner=uuid4(), taken_at=before))


async def _row() -> StreamedCall:
    return await in_database(StreamedCall.objects.get)


async def _waits(caller: Caller, tool: str = "paint", **arguments: object) -> Shown:
    shown = await caller.streamed(tool, "t", **(arguments or {"what": "a wall"}))
    await shown.asked()
    return shown


async def _rounds() -> list[tuple[str, int | None]]:
    def read() -> list[tuple[str, int | None]]:
        found = Entry.objects.filter(action__startswith="round.").order_by("id")
        return [(one.action, one.round) for one in found]

    return await in_database(read)


def _text(shown: Shown) -> str:
    text: str = shown.messages[-1]["result"]["content"][0]["text"]
    return text


async def test_a_response_reaches_its_call_after_its_process_died(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    assert (shown.ended, shown.retry is not None) == (True, True)
    await caller.answer(shown.requests[0], accept(colour="red"))
    resumed = await caller.resumed(shown.ids[-1])
    assert _text(resumed) == "a wall is red"
    row = await _row()
    assert (row.state, row.owner, row.epoch) == (CallState.FINISHED, heartbeat.id, 2)
    assert module("asking").did == ["a wall red"]
    started, finished = "round.started", "round.finished"
    assert await _rounds() == [(started, 1), (finished, 1), (started, 2), (finished, 2)]


async def test_resuming_a_stream_takes_over_its_call(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    follower, following = caller.following(shown.ids[0])
    await follower.asked()
    await true(lambda: calls.under_way)
    await caller.answer(follower.requests[0], accept(colour="red"))
    await follower.whole()
    assert _text(follower) == "a wall is red"
    await following


async def test_housekeeping_takes_over_calls_without_a_request(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    await in_database(takeovers.find_orphans)
    await true(lambda: calls.under_way)
    assert (await _row()).owner == heartbeat.id
    await in_database(takeovers.find_orphans)
    await caller.answer(shown.requests[0], accept(colour="red"))
    assert _text(await caller.resumed(shown.ids[0])) == "a wall is red"


async def test_a_round_with_responses_runs_again_after_its_process_died(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller, "paint_slowly")
    await caller.answer(shown.requests[0], accept(colour="red"))
    await asyncio.wait_for(module("asking").running.wait(), PATIENCE)
    await _dies(_only())
    module("asking").release.set()
    assert _text(await caller.resumed(shown.ids[-1])) == "a wall is red"
    assert (await _row()).state == CallState.FINISHED
    assert module("asking").did == ["a wall red"] * 2


async def test_a_first_round_with_possible_effects_is_not_run_again(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("says_and_hangs", "t")
    await shown.until(lambda shown: len(shown.messages) > 1)
    await _dies(_only())
    resumed = await caller.resumed(shown.ids[-1])
    assert "it may have taken effect" in resumed.messages[-1]["error"]["message"]


async def test_a_call_cancelled_meanwhile_is_not_continued(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    await cancellations.cancel(caller.session, 1)
    resumed = await caller.resumed(shown.ids[-1])
    (withdrawn,) = resumed.messages
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == shown.requests[0]["id"]
    assert (await _row()).state == CallState.CANCELLED


async def test_a_call_of_an_ended_session_ends(asking: Cast) -> None:
    caller = await Caller.at(asking)
    await _waits(caller)
    await _dies(_only())
    await session.end(caller.session)
    await in_database(takeovers.find_orphans)
    await true(lambda: StreamedCall.objects.get().state == CallState.CANCELLED)


@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_a_caller_with_a_revoked_credential_gets_no_result_after_a_takeover(
    asking: Cast, credential: MakeCredential
) -> None:
    bearer, revoke = await in_database(credential, asking, asking.owner)
    caller = await Caller.at(asking, replace(asking.owner, mcp_token=bearer))
    shown = await _waits(caller)
    await _dies(_only())
    await in_database(revoke)
    resumed = await caller.resumed(shown.ids[-1])
    assert resumed.messages[0]["method"] == "notifications/cancelled"
    assert "no longer valid" in resumed.messages[-1]["error"]["message"]


async def test_a_draining_process_releases_its_waiting_calls(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    shutdown.begin()
    await shown.until(lambda shown: shown.ended)
    assert shown.retry == 10_000
    await true(lambda: StreamedCall.objects.get().owner == NO_OWNER)
    await in_database(takeovers.find_orphans)
    await true(lambda: not calls.under_way)
    shutdown.reset()  # as in another process
    await caller.answer(shown.requests[0], accept(colour="red"))
    assert _text(await caller.resumed(shown.ids[-1])) == "a wall is red"


async def test_a_running_call_continues_on_another_process_from_its_next_step(asking: Cast) -> None:
    caller = await Caller.at(asking)
    call = caller.call("steps_slowly")
    await asyncio.wait_for(module("asking").running.wait(), PATIENCE)
    shutdown.begin()
    module("asking").release.set()
    assert await asyncio.wait_for(call.settled(), PATIENCE) is None
    shown = Shown()
    call.outgoing.attach(shown)
    await shown.until(lambda shown: shown.ended)
    await true(lambda: StreamedCall.objects.get().owner == NO_OWNER)
    shutdown.reset()
    assert _text(await caller.resumed(shown.ids[0])) == "done"
    assert module("asking").did == ["one", "two"]


async def test_each_call_is_answered_once_whichever_process_dies(asking: Cast) -> None:
    caller = await Caller.at(asking)
    chance = Random(7)
    every = [await _waits(caller, what=f"w{n}") for n in range(12)]
    colours = [chance.choice(["red", "green", "blue"]) for _ in every]

    async def kill() -> None:
        for call in chance.sample(list(calls.under_way), 3):
            await _dies(call)

    async def answer(number: int) -> None:
        question = every[number].requests[0]
        given = [accept(colour=colours[number]), accept(colour="red")]
        for one in given:
            await caller.answer(question, one)

    await kill()
    await asyncio.gather(*(answer(n) for n in range(0, 12, 2)), in_database(takeovers.find_orphans))
    await kill()
    await asyncio.gather(in_database(takeovers.find_orphans), *(answer(n) for n in range(1, 12, 2)))
    ends = await asyncio.gather(*(caller.resumed(shown.ids[0]) for shown in every))
    assert [_text(one) for one in ends] == [f"w{n} is {c}" for n, c in enumerate(colours)]
    assert set(module("asking").did) == {f"w{n} {c}" for n, c in enumerate(colours)}


async def test_a_process_wrongly_considered_dead_sends_nothing_more(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("says_twice", "t")
    await shown.until(lambda shown: len(shown.messages) > 1)
    row = StreamedCall.objects.filter(state=CallState.RUNNING)
    await in_database(lambda: row.update(epoch=F("epoch") + 1))
    module("asking").release.set()
    await shown.until(lambda shown: shown.ended)
    assert shown.retry == 1000
    assert len(shown.messages) == 2
    await true(lambda: not calls.under_way)


async def _finds_its_answer(caller: Caller, shown: Shown) -> bool:
    await caller.answer(shown.requests[0], accept(colour="red"))
    return _text(await caller.resumed(shown.ids[-1])) == "a wall is red"


async def test_a_takeover_survives_a_lost_database_connection(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    monkeypatch.setattr(tenants, "tenant", _once_away(tenants.tenant))
    await in_database(takeovers.find_orphans)
    await true(lambda: calls.under_way)
    assert await _finds_its_answer(caller, shown)


async def test_a_call_that_cannot_be_continued_ends_its_stream(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    await in_database(lambda: StreamedCall.objects.update(request="not sealed by us"))
    assert await caller.resumed(shown.ids[-1])
    assert (await _row()).state == CallState.CANCELLED


async def test_a_draining_process_takes_over_no_more_calls(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    with monkeypatch.context() as patched:
        patched.setattr(storage, "unseal", _as_the_drain_begins(storage.unseal))
        await takeovers.take_over()
        await true(lambda: StreamedCall.objects.get().owner == NO_OWNER)
    assert (await _row()).state == CallState.WAITING
    shutdown.reset()
    assert await _finds_its_answer(caller, shown)


def _once_away(real: Callable[..., Any]) -> Callable[..., Any]:
    left = [OperationalError("the connection was lost")]

    def look(*which: Any) -> Any:
        if left:
            raise left.pop()
        return real(*which)

    return look


def _as_the_drain_begins(real: Callable[..., Any]) -> Callable[..., Any]:
    def open_it(*what: Any) -> Any:
        shutdown.begin()
        return real(*what)

    return open_it
