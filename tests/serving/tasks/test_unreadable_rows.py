"""Tasks with unreadable rows: each ends by itself, and affects no other task."""

from itertools import product
from uuid import UUID

import pytest

from mcphost.routing import process
from mcphost.sealing.tokens import Purpose
from mcphost.serving import sealing
from mcphost.serving.database import in_database
from mcphost.serving.execution import stored_tasks
from mcphost.serving.execution.deliveries import state_context
from mcphost.tasks.models import Task as TaskModel
from mcphost.tasks.models import TaskQuestion
from tests.cast import Cast
from tests.serving.legacy.tasks.client import client_of
from tests.serving.tasks.task_client import RED, Follower, Task, did

pytestmark = pytest.mark.django_db(transaction=True)

GONE = "The task can no longer be read"
COLUMNS = ("journal", "request")
OTHER_FORMATS = [b"[99]", b"{}", b"no JSON"]


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _write(task: Task, **columns: str) -> None:
    TaskModel.objects.filter(id=UUID(hex=task.id)).update(**columns)


async def _sealed(task: Task, column: str, written: bytes) -> str:
    row = await in_database(TaskModel.objects.get, id=UUID(hex=task.id))
    if column == "journal":
        context = state_context(row.call)
        return await sealing.seal(Purpose.ROW, row.tenant, written, context=context)
    return await stored_tasks.seal(row.tenant, row.id, stored_tasks.REQUEST, written)


async def test_a_task_of_an_unknown_format_fails_and_delays_no_other_task(
    owner: Follower,
) -> None:
    sound = await owner.begin("paint")
    rows = [(await owner.begin("paint"), *row) for row in product(COLUMNS, OTHER_FORMATS)]
    for task in (sound, *(broken for broken, _, _ in rows)):
        await task.asked("colour")
    for broken, column, written in rows:
        await in_database(_write, broken, **{column: await _sealed(broken, column, written)})
        await broken.update(RED)
    await sound.update(RED)
    process.runner.on_gap()
    assert await sound.text() == "it is red"
    for broken, *row in rows:
        seen = await broken.ended()
        assert (seen["status"], seen["error"]["message"]) == ("failed", GONE), row
        assert seen["statusMessage"] == GONE
    assert did() == ["it red"]


async def test_an_unreadable_outcome_or_input_request_is_an_error_for_its_task(
    owner: Follower,
) -> None:
    ended, asking = await owner.begin("always", text="a"), await owner.begin("paint")
    await ended.ended()
    await asking.asked("colour")
    await in_database(_write, ended, outcome="unreadable")
    asked = TaskQuestion.objects.filter(task=UUID(hex=asking.id))
    await in_database(lambda: asked.update(request="unreadable"))
    for task in (ended, asking):
        reply = await owner.about("tasks/get", task.id)
        assert reply.error == {"code": -32603, "message": GONE}
        await task.cancel()
    assert (await asking.get())["status"] == "cancelled"


async def test_an_unreadable_task_hides_no_other_task_of_the_list(tasks: Cast) -> None:
    client = await client_of(tasks.owner)
    broken, sound = await client.begin("always", text="a"), await client.begin("always", text="b")
    for task in (broken, sound):
        await task.ended()
    id = UUID(hex=broken.id)
    await in_database(TaskModel.objects.filter(id=id).update, outcome="unreadable")
    for method in ("tasks/get", "tasks/result"):
        reply = await client.ask(method, taskId=broken.id)
        assert reply.last["error"] == {"code": -32603, "message": GONE}
    assert await client.listed() == {sound.id}
