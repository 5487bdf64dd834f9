"""`tasks/cancel` in sessions: it ends an unfinished task, and is refused for a finished one."""

from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.serving.database import in_database
from mcphost.serving.execution.cancelled_calls import CANCELLED_MESSAGE
from mcphost.serving.execution.cancelling import cancel_task
from mcphost.tasks.listing import of_call
from mcphost.tasks.models import Task as StoredTask
from tests.cast import Cast
from tests.serving.legacy.tasks.client import (
    Task,
    TaskClient,
    client_of,
    refused,
)
from tests.serving.tasks.task_client import did, happened, release

pytestmark = pytest.mark.django_db(transaction=True)


async def _is_cancelled(task: Task) -> None:
    """It is cancelled, and `tasks/result` says so without waiting."""
    seen = await task.get()
    assert seen["status"] == "cancelled"
    reply = await task.result()
    assert not reply.streamed
    assert "cancelled" in reply.error["message"]


@pytest.mark.requirement("session-tasks.cancelled")
async def test_cancel_returns_the_cancelled_task_and_ends_the_tool_and_all_waiting_requests(
    client: TaskClient,
) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as one, task.following() as other:
        assert (await task.get())["status"] == "working"
        seen = await task.cancel()
        assert seen["status"] == "cancelled"
        for name in ("taskId", "createdAt", "ttl", "pollInterval"):
            assert seen[name] == task.handle[name]
        for each in (one, other):
            assert "cancelled" in (await each.response())["error"]["message"]
    await happened("cancelled")
    assert await task.get() == seen
    await _is_cancelled(task)
    assert did() == ["hangs began"]
    reply = refused(await client.ask("tasks/cancel", taskId=task.id), -32602)
    assert "cancelled" in reply.error["message"], "a second time"
    hanging = Entry.objects.filter(target="hangs").values_list("action", flat=True)
    actions = await in_database(lambda: list(hanging))
    assert actions.count("task.cancelled") == 1, actions


async def test_a_request_waiting_for_the_result_receives_the_operators_reason(
    client: TaskClient,
) -> None:
    task = await client.begin("paint")
    await task.reaches("input_required")

    def cancel() -> bool:
        row = StoredTask.objects.get(pk=UUID(hex=task.handle["taskId"]))
        listed = of_call(row.call, row.tenant)
        assert listed is not None
        return cancel_task(listed, "No paint is left.", Actor.system("tests"))

    async with task.following() as following:
        await following.asked()
        assert await in_database(cancel)
        reply = await following.posted.done()
        assert reply.check().error["message"] == CANCELLED_MESSAGE.format("No paint is left.")
    assert (await task.result()).error["message"] == CANCELLED_MESSAGE.format("No paint is left.")


async def test_another_session_of_the_caller_may_cancel_the_task(
    tasks: Cast, client: TaskClient
) -> None:
    task = await client.begin("paint")
    await task.reaches("input_required")
    second = await client_of(tasks.owner)
    async with task.following() as following:
        await following.asked()
        assert (await second.known(task.id).cancel())["status"] == "cancelled"
        assert "cancelled" in (await following.posted.done()).error["message"]
    await _is_cancelled(task)


@pytest.mark.requirement("session-tasks.cancelled-late")
async def test_cancelling_a_finished_task_is_refused_and_changes_nothing(tasks: Cast) -> None:
    client = await client_of(tasks.owner, elicitation={})
    for tool, arguments in (("counts", {"text": "a"}), ("refuses", {}), ("needs_sampling", {})):
        task = await client.begin(tool, **arguments)
        seen = await task.ended()
        result = await task.result()
        for _ in range(2):
            reply = refused(await client.ask("tasks/cancel", taskId=task.id), -32602)
            assert seen["status"] in reply.error["message"]
        assert await task.get() == seen
        assert {**(await task.result()).last, "id": 0} == {**result.last, "id": 0}


async def test_cancelling_or_ending_a_session_does_not_affect_other_tasks(tasks: Cast) -> None:
    first, second = await client_of(tasks.owner), await client_of(tasks.owner)
    kept, cancelled = await first.begin("hangs"), await first.begin("paint")
    await happened("running")
    await cancelled.cancel()
    assert (await kept.get())["status"] == "working"
    assert (await first.session.end()).status == 204
    assert (await second.known(kept.id).get())["status"] == "working"
    release()
    assert await second.known(kept.id).text() == "hangs"
