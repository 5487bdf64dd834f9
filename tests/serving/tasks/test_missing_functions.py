"""Tasks on a process that lacks their function: they wait for a process that has it."""

import pytest
from pytest_django import Settings

from mcphost.kinds.declarations import NO_PROCESS
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.tasks.models import Task as TaskModel
from tests.cast import Cast
from tests.serving.processes_without_code import becomes, lacking
from tests.serving.tasks.task_client import RED, Follower, Task, did, handle

pytestmark = pytest.mark.django_db(transaction=True)

PAINT = "tasks.paint"


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def _looked() -> None:
    """Let this process look for due tasks, until it has left what it cannot run."""
    await in_database(process.runner.find_tasks)
    await becomes(lambda: bool(process.runner._absent), "a task is left to others")


async def test_a_task_stays_due_until_a_process_with_its_function_runs_it(
    owner: Follower,
) -> None:
    async with lacking(PAINT) as here:
        task = Task(owner, handle(await owner.call("paint")))
        await _looked()
        assert (await task.get())["status"] == "working"
        row = await in_database(TaskModel.objects.get)
        assert (row.epoch, row.attempts) == (0, 0), "nothing has taken it"
        here.end()
        await task.asked("colour")
        await task.update(RED)
        assert await task.text() == "it is red"


async def test_a_response_to_a_task_waits_for_a_process_with_its_function(owner: Follower) -> None:
    task = Task(owner, handle(await owner.call("paint")))
    await task.asked("colour")
    async with lacking(PAINT) as here:
        await task.update(RED)
        await _looked()
        assert (await task.get())["status"] == "working"
        here.end()
        assert await task.text() == "it is red"


async def test_a_task_without_its_function_delays_no_other_task(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_ROUNDS_PER_TENANT = 2
    async with lacking(PAINT):
        for _ in range(5):
            await owner.call("paint")
        await _looked()
        other = Task(owner, handle(await owner.call("always", text="here")))
        assert await other.text() == "here"


async def test_a_task_whose_function_no_process_has_fails_with_a_message(owner: Follower) -> None:
    async with lacking(PAINT) as here:
        task = Task(owner, handle(await owner.call("paint")))
        await _looked()
        await here.none_lives()
        await in_database(process.runner.find_tasks)
        ended = await task.ended()
    assert ended["status"] == "failed"
    assert ended["error"]["message"] == NO_PROCESS
    assert did() == []
