"""`tasks/cancel`: acknowledged always, and it ends what has not ended."""

import asyncio
import time

import pytest
from pytest_django import Settings

from mcphost.audit.records import new_id
from mcphost.feed.nodes import heartbeat
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.execution.held_task import HeldTask, RunningTasks, running_tasks
from mcphost.tasks.changes import TaskOwner
from tests.cast import Cast
from tests.serving.tasks.following import PATIENCE, RED, Follower, did, happened, release, unknown

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


@pytest.mark.requirement("tasks.cancelled")
async def test_the_tool_that_runs_is_cancelled(owner: Follower) -> None:
    task = await owner.begin("hangs")
    await happened("running")
    await task.cancel()
    await happened("cancelled")
    seen = await task.ended()
    assert seen["status"] == "cancelled"
    assert not seen.keys() & {"result", "error", "inputRequests"}
    assert did() == ["hangs began"]


async def test_a_call_that_became_a_task_on_the_way_is_cancelled(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    slow = await owner.begin("slow")
    await slow.cancel()
    await happened("cancelled")
    deferred = await owner.begin("defers")
    await deferred.asked("colour")
    await deferred.cancel()
    for task in (slow, deferred):
        assert (await task.ended())["status"] == "cancelled"
    assert did() == ["slow began", "deferred"]


async def test_a_task_that_waits_for_an_answer_is_cancelled_once_and_for_all(
    owner: Follower,
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await task.cancel()
    seen = await task.ended()
    assert seen["status"] == "cancelled"
    assert "inputRequests" not in seen
    await task.update(RED)
    await task.cancel()
    assert await task.get() == seen
    assert did() == []


async def test_a_question_beside_a_running_step_is_gone_with_the_step(owner: Follower) -> None:
    task = await owner.begin("asks_while_it_works")
    await happened("running")
    await task.asked("colour")
    await task.cancel()
    await happened("cancelled")
    assert (await task.ended())["status"] == "cancelled"
    assert did() == ["work began"]


async def test_after_the_end_it_is_acknowledged_and_changes_nothing(owner: Follower) -> None:
    for tool in ("survey", "refuses", "needs_sampling"):
        task = await owner.begin(tool)
        if tool == "survey":
            await task.asked("colour")
            await task.update(RED)
        ended = await task.ended()
        for _ in range(2):
            await task.cancel()
        assert await task.get() == ended


async def test_many_times_at_once_it_is_cancelled_once(owner: Follower) -> None:
    task = await owner.begin("hangs")
    await happened("running")
    await asyncio.gather(*(task.cancel() for _ in range(5)))
    assert (await task.ended())["status"] == "cancelled"


async def test_an_answer_and_a_cancellation_at_once_leave_one_end(owner: Follower) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await asyncio.gather(task.update(RED), task.cancel())
    seen = await task.ended()
    assert seen["status"] in ("completed", "cancelled")
    assert (seen["status"] == "completed") <= (did() == ["it red"])


async def test_a_cancelled_task_keeps_no_other_from_running(owner: Follower) -> None:
    first, second = await owner.begin("hangs"), await owner.begin("hangs")
    await happened("running")
    await first.cancel()
    await happened("cancelled")
    release()
    assert await second.text() == "hangs"
    assert (await first.ended())["status"] == "cancelled"
    assert did().count("hangs ended") == 1


async def test_a_round_ends_when_its_task_expires(owner: Follower, settings: Settings) -> None:
    settings.MCPHOST_TASK_SECONDS = 2  # the round has begun by then, on a busy machine too
    task = await owner.begin("hangs")
    await happened("running")
    await happened("cancelled")
    async with asyncio.timeout(PATIENCE):
        await running_tasks.all_over()
    unknown(await owner.about("tasks/get", task.id))
    assert did() == ["hangs began"]


async def test_a_round_that_is_cancelled_before_its_first_step_leaves_nothing_behind(
    tasks: Cast,
) -> None:
    taking = TaskOwner(new_id(), tasks.acme.id, heartbeat.id, 1)
    principal = Principal(PrincipalKind.ANONYMOUS, tasks.acme.id)
    held, freed = HeldTask(new_id(), principal, taking, time.time() + 60), []
    rounds = RunningTasks()
    rounds.freed = freed.append
    rounds.attend(held, asyncio.Event().wait())
    rounds.cancel(taking.task, "the task was cancelled")
    async with asyncio.timeout(PATIENCE):
        await rounds.all_over()
    assert taking.task not in rounds
    assert freed == [held]
