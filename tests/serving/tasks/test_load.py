"""A call without a free slot becomes a task if its client and tool support it."""

import asyncio
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.observability import counters
from mcphost.serving.database import in_database
from mcphost.tasks.models import Task as TaskOfTable
from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.conftest import module
from tests.serving.tasks.task_client import (
    PATIENCE,
    Follower,
    Task,
    accept,
    did,
    done,
    full,
    handle,
)

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = {"name": accept(name="Alice")}


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _refused(reply: Reply) -> None:
    assert reply.status == 429, reply.raw
    assert reply.error["data"]["retryAfter"] > 0


def _count() -> float:
    return counters.tasks_of_load.value


async def test_calls_without_a_free_slot_become_tasks_if_client_and_tool_support_it(
    tasks: Cast, owner: Follower
) -> None:
    before, texts = _count(), [f"number {number}" for number in range(3)]
    async with full(tasks, owner):
        begun = await asyncio.gather(*(owner.begin("quick", text=text) for text in texts))
        assert await asyncio.gather(*(task.text() for task in begun)) == texts
        assert _count() == before + 3
        assert await (await owner.begin("always", text="hello")).text() == "hello"
        assert _count() == before + 3, "what is always a task takes no place"
        _refused(await owner.unable().call("quick", text="hello"))
        _refused(await owner.call("never", text="hello"))
    assert sorted(did()) == sorted([*texts, "hello", "slow began", "slow ended"])


async def test_the_limit_of_calls_per_minute_also_refuses_calls_that_could_become_tasks(
    tasks: Cast, owner: Follower
) -> None:
    async with full(tasks, owner, calls_per_minute=1):
        _refused(await owner.call("quick", text="hello"))
    assert not await in_database(TaskOfTable.objects.count)


async def _answer(owner: Follower, tool: str, asked: Reply) -> Reply:
    state = {"requestState": asked.result["requestState"], "inputResponses": ALICE}
    params: dict[str, Any] = {"name": tool, "arguments": {}, **state}
    return await owner.send("tools/call", params)


@pytest.mark.parametrize("suffix", ["", "_without_claims"])
async def test_a_response_without_a_free_slot_continues_as_a_task_and_is_recorded(
    tasks: Cast, owner: Follower, suffix: str
) -> None:
    tool = f"slow_after_its_answer{suffix}"
    asked = await owner.call(tool)
    async with full(tasks, owner):
        task = handle(await _answer(owner, tool, asked))
        if not suffix:
            repeated = handle(await _answer(owner, tool, asked))
            assert repeated["taskId"] == task["taskId"]
    assert await Task(owner, task).text() == "Alice slow"
    found = Entry.objects.filter(target=tool, action="answer.received")
    assert await in_database(lambda: found.values_list("outcome", flat=True).get()) == "accept"
    ends = Entry.objects.filter(target=tool, action="round.finished")
    ended = await in_database(lambda: list(ends.order_by("at").values_list("outcome", flat=True)))
    assert ended == ["input_required", "deferred", "complete"]


async def test_a_call_without_a_free_thread_becomes_a_task_that_waits_for_one(
    owner: Follower, settings: Settings
) -> None:
    before, most = _count(), settings.MCPHOST_THREADS_PER_TENANT
    holding = [asyncio.create_task(owner.unable().call("slow_in_a_thread")) for _ in range(most)]
    async with asyncio.timeout(PATIENCE):
        while len(did()) < most:  # noqa: ASYNC110 - a thread sets no asyncio event
            await asyncio.sleep(0.01)
    task = await owner.begin("slow_in_a_thread")
    _refused(await owner.unable().call("slow_in_a_thread"))
    assert _count() == before + 1
    module("tasks").thread_release.set()
    assert {done(await call) for call in holding} == {"slow"}
    assert await task.text() == "slow"
    assert did().count("began") == did().count("ended") == most + 1
