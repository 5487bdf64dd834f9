"""Calls of sessions on a process without their code, and other processes that have it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from mcphost.calls import session_calls
from mcphost.calls.models import StreamedCall
from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import CallState
from mcphost.feed.loop import ChangeNews
from mcphost.feed.models import Change
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.declarations import ABSENT, NO_PROCESS
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy.call import SessionCall
from mcphost.serving.legacy.takeover import takeovers
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true
from tests.serving.legacy.processes import Processes, processes
from tests.serving.legacy.test_takeover import _dies, _only, _row, _text

__all__ = ["processes"]

pytestmark = pytest.mark.django_db(transaction=True)

RED = accept(colour="red")
KINDS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "tool": ("asking.paint", "tools/call", {"name": "paint", "arguments": {"what": "a wall"}}),
    "prompt": ("asking.letter", "prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}),
    "resource": ("asking.page", "resources/read", {"uri": "asking://page"}),
    "template": ("asking.day", "resources/read", {"uri": "asking://days/monday"}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


async def _asks(caller: Caller, kind: str = "tool") -> Shown:
    """A call whose process dies while it waits for its input response."""
    _, method, params = KINDS[kind]
    shown = await caller.shown(method, params)
    await shown.asked()
    await _dies(_only())
    return shown


async def _released() -> StreamedCall:
    """The row of the call, once its process has let it go."""
    free = StreamedCall.objects.filter(owner=NO_OWNER)
    await true(lambda: free.exists() and not calls.under_way)
    return await _row()


async def _becomes_the_other(processes: Processes, row: StreamedCall) -> None:
    """The process with the code learns of the released call."""
    await in_database(processes.becomes_the_other)
    takeovers.on_change(ChangeNews(1, row.tenant, session_calls.RELEASED, row.id.hex))


async def _error(call: SessionCall) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        answer = await call.settled()
    assert answer is not None
    error: dict[str, Any] = orjson.loads(answer.body)["error"]
    return error


# --- takeovers ---


@every_kind
async def test_a_call_stays_due_for_a_process_that_has_its_code(
    asking: Cast, processes: Processes, kind: str
) -> None:
    caller = await Caller.at(asking)
    shown = await _asks(caller, kind)
    before = (await _row()).owner
    await in_database(processes.only_the_other_has, KINDS[kind][0])
    await takeovers.take_over()
    assert ((await _row()).owner, calls.under_way) == (before, set())
    await in_database(processes.becomes_the_other)
    await caller.answer(shown.requests[0], RED)
    resumed = await caller.resumed(shown.ids[-1])
    assert "red" in orjson.dumps(resumed.messages[-1]["result"]).decode()


async def test_a_call_whose_code_no_process_has_fails_with_a_message(
    asking: Cast, processes: Processes
) -> None:
    caller = await Caller.at(asking)
    shown = await _asks(caller)
    await in_database(processes.only_the_other_has, "asking.paint")
    await takeovers.take_over()
    await in_database(processes.the_other_dies)
    await true(lambda: StreamedCall.objects.get().owner == heartbeat.id)
    await caller.answer(shown.requests[0], RED)
    resumed = await caller.resumed(shown.ids[-1])
    assert resumed.messages[-1]["error"]["message"] == NO_PROCESS


async def test_an_input_response_is_stored_and_announced_without_the_code(
    asking: Cast, processes: Processes
) -> None:
    caller = await Caller.at(asking)
    shown = await _asks(caller)
    await in_database(processes.only_the_other_has, "asking.paint")
    follower, following = caller.following(shown.ids[-1])
    await caller.answer(shown.requests[0], RED)
    row = await _row()
    announced = Change.objects.filter(name=session_calls.RELEASED, object_id=row.id.hex)
    await true(announced.exists)
    assert row.state == CallState.WAITING
    await _becomes_the_other(processes, row)
    await follower.whole()
    await following
    assert _text(follower) == "a wall is red"
    assert module("asking").did == ["a wall red"]


# --- first calls ---


async def test_a_call_starts_on_the_process_with_its_code_and_its_stream_stays_open(
    asking: Cast, processes: Processes
) -> None:
    caller = await Caller.at(asking)
    await in_database(processes.only_the_other_has, "asking.paint")
    shown = await caller.streamed("paint", what="a wall")
    row = await _released()
    assert (row.state, shown.ended) == (CallState.WAITING, False)
    await _becomes_the_other(processes, row)
    (question,) = await shown.asked()
    await caller.answer(question, RED)
    await shown.whole()
    assert (_text(shown), shown.retry) == ("a wall is red", None)
    assert module("asking").did == ["a wall red"]


async def test_a_first_call_that_no_process_can_take_fails_with_a_message(
    asking: Cast, processes: Processes
) -> None:
    caller = await Caller.at(asking)
    await in_database(processes.only_the_other_has, "asking.paint")
    shown = await caller.streamed("paint", what="a wall")
    await _released()
    await true(lambda: takeovers._deferred)
    await in_database(processes.the_other_dies)
    messages = await shown.whole()
    assert messages[-1]["error"]["message"] == NO_PROCESS
    assert module("asking").did == []


async def test_read_only_requests_without_their_code_are_refused_with_retry_after(
    asking: Cast, processes: Processes
) -> None:
    survey = ("asking.survey", "tools/call", {"name": "survey"})
    rows = [survey, *(row for kind, row in KINDS.items() if kind != "tool")]
    caller = await Caller.at(asking)
    await in_database(processes.only_the_other_has, *(function for function, _, _ in rows))
    for function, method, params in rows:
        error = await _error(calls.begin(caller.request(method, params), caller.session))
        assert (error["message"], error["data"]) == (ABSENT, {"retryAfter": 2}), function
    assert not await in_database(StreamedCall.objects.exists)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_draining_process_accepts_calls_without_code_only_if_the_client_can_resume(
    asking: Cast, processes: Processes, revision: str
) -> None:
    caller = await Caller.at(asking, revision=revision)
    await in_database(processes.only_the_other_has, "asking.paint")
    shutdown.begin()
    call = caller.call("paint", what="a wall")
    if revision == "2025-06-18":
        assert (await _error(call))["message"] == ABSENT
        return
    await _released()
    shown = Shown()
    call.outgoing.attach(shown)
    assert (shown.ended, shown.retry is not None) == (True, True)


async def test_a_waiting_call_moves_to_the_process_that_has_the_tools_new_code(
    asking: Cast, processes: Processes
) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    await in_database(processes.only_the_other_has, "asking.paint")
    await caller.answer(question, RED)
    row = await _released()
    assert module("asking").did == []
    await _becomes_the_other(processes, row)
    await shown.whole()
    assert _text(shown) == "a wall is red"
