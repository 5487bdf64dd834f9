"""`tasks/cancel`: it is always acknowledged, and ends an unfinished task."""

import asyncio

import pytest
from pytest_django import Settings

from mcphost.serving.execution.owned_task import running_tasks
from tests.cast import Cast
from tests.serving.tasks.task_client import PATIENCE, RED, Follower, did, happened, unknown

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def test_a_call_that_became_a_task_can_be_cancelled(
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


@pytest.mark.requirement("tasks.cancelled")
async def test_a_task_waiting_for_input_is_cancelled_permanently(
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


async def test_cancelling_a_finished_task_is_acknowledged_and_changes_nothing(
    owner: Follower,
) -> None:
    for tool in ("survey", "refuses", "needs_sampling"):
        task = await owner.begin(tool)
        if tool == "survey":
            await task.asked("colour")
            await task.update(RED)
        ended = await task.ended()
        for _ in range(2):
            await task.cancel()
        assert await task.get() == ended


async def test_a_concurrent_response_and_cancellation_lead_to_one_end(owner: Follower) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await asyncio.gather(task.update(RED), task.cancel())
    seen = await task.ended()
    assert seen["status"] in ("completed", "cancelled")
    assert (seen["status"] == "completed") <= (did() == ["it red"])


async def test_a_running_round_ends_when_its_task_expires(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_SECONDS = 2  # the round has begun by then, on a busy machine too
    task = await owner.begin("hangs")
    await happened("running")
    await happened("cancelled")
    async with asyncio.timeout(PATIENCE):
        await running_tasks.all_over()
    unknown(await owner.about("tasks/get", task.id))
    assert did() == ["hangs began"]
