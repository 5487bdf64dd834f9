"""Calls that become tasks while they run: no work is done twice, and none is lost."""

from typing import Any

import pytest
from pytest_django import Settings

from mcphost.serving import limits
from tests.cast import Cast
from tests.mcp import begun, send
from tests.serving.tasks.task_client import (
    METHODS,
    RED,
    Follower,
    Task,
    accept,
    did,
    done,
    handle,
    happened,
    release,
)

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = {"name": accept(name="Alice")}


@pytest.fixture
def owner(tasks: Cast, settings: Settings) -> Follower:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    return Follower(tasks.owner.mcp_token)


async def _answering(follower: Follower) -> dict[str, Any]:
    """The second request of a call that asks for a name, and is slow then."""
    params = {"name": "slow_after_its_answer", "arguments": {}}
    first = await follower.send("tools/call", params)
    state = {"requestState": first.result["requestState"], "inputResponses": ALICE}
    return follower.message("tools/call", {**params, **state})


@pytest.mark.parametrize("ends", [True, False])
async def test_a_call_that_is_slow_after_its_response_becomes_a_task(
    owner: Follower, ends: bool
) -> None:
    body = await _answering(owner)
    task = Task(owner, handle(await send("acme", body, owner.token)))
    assert handle(await send("acme", body, owner.token))["taskId"] == task.id
    if ends:
        release()
        assert await task.text() == "Alice slow"
    else:
        await task.cancel()
        await happened("cancelled")
        assert (await task.ended())["status"] == "cancelled"
    assert handle(await send("acme", body, owner.token))["taskId"] == task.id
    assert did() == ["slow began", *(["slow ended"] if ends else [])]


async def test_a_client_that_disconnected_earlier_gets_the_handle_when_it_retries(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 60
    body = await _answering(owner)
    async with begun("acme", body, owner.token) as exchange:
        await happened("running")
        exchange.hang_up()
        await happened("cancelled")
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    task = Task(owner, handle(await send("acme", body, owner.token)))
    release()
    assert await task.text() == "Alice slow"
    assert did() == ["slow began", "slow began", "slow ended"]


async def test_steps_before_and_in_the_task_run_once(owner: Follower) -> None:
    task = await owner.begin("steps_and_defers")
    await task.asked("colour")
    assert did() == ["one", "two"]
    await task.update(RED)
    assert await task.text() == "done"
    assert did() == ["one", "two", "three"]


async def _asked_often(follower: Follower, count: int) -> tuple[int, Any]:
    """Answer a call with many questions as long as it asks: how often it did, and its end."""
    params = {"name": "asks_often", "arguments": {"count": count}}
    reply = await follower.send("tools/call", params)
    asked = 0
    while reply.result["resultType"] == "input_required":
        asked += 1
        answers = {key: accept(size=1) for key in reply.result["inputRequests"]}
        state = {"requestState": reply.result["requestState"], "inputResponses": answers}
        reply = await follower.send("tools/call", {**params, **state})
    return asked, reply


async def test_a_call_with_too_many_input_requests_becomes_a_task_or_fails_without_the_extension(
    owner: Follower,
) -> None:
    asked, reply = await _asked_often(owner, 10)
    assert asked == 7
    task = Task(owner, handle(reply))
    for number in range(7, 10):
        await task.asked(f"size{number}")
        await task.update({f"size{number}": accept(size=2)})
    assert await task.text() == "1 1 1 1 1 1 1 2 2 2"
    asked, reply = await _asked_often(owner.unable(), 10)
    assert (asked, reply.result["isError"]) == (7, True)


# Limits.


async def test_the_number_of_tasks_per_caller_is_limited_and_slow_calls_then_stay_calls(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASKS_PER_CALLER = 1
    first = await owner.begin("paint")
    refused = await owner.call("paint")
    assert (refused.status, refused.error["code"]) == (429, -31429)
    body = owner.message("tools/call", {"name": "slow", "arguments": {}})
    async with begun("acme", body, owner.token) as exchange:
        await happened("running")
        release()
        reply = await exchange.done()
    assert done(reply) == "slow"
    await first.asked("colour")
    await first.cancel()
    await first.ended()
    assert await (await owner.begin("always", text="a")).text() == "a"


@pytest.mark.requirement("tasks.limited")
async def test_a_client_that_polls_too_often_gets_429(
    owner: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, other = await owner.begin("paint"), await owner.begin("paint")
    await task.asked("colour")
    monkeypatch.setattr(limits, "POLLS_PER_MINUTE", 1)
    for method in METHODS:
        reply = await owner.about(method, task.id)
        assert (reply.status, reply.error["code"]) == (429, -31429)
        assert int(reply.headers["retry-after"]) > 0
    monkeypatch.undo()
    assert (await other.until(lambda seen: seen["status"] == "input_required"))["taskId"]
