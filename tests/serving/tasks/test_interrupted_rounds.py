"""Tasks whose process dies while a round runs: another one runs the round again."""

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, writer
from mcphost.calls.ownership import NO_OWNER
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.serving.execution.rounds import MAX_ATTEMPTS
from mcphost.tasks.models import Task as TaskModel
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.tasks.task_client import Follower, Task, did, happened, release

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def _die(task: Task) -> None:
    """End the round as a killed process does: nothing of it is stored, and others find that out."""
    id = UUID(hex=task.id)
    running_tasks.cancel(id, "the process is killed")
    await happened("cancelled")
    module("tasks").running.clear()
    module("tasks").cancelled.clear()
    await in_database(_free, id)
    process.runner.on_gap()


def _free(task: UUID) -> None:
    # What `free_orphans` does once the heartbeat of the owner is too old.
    TaskModel.objects.filter(id=task).update(owner=NO_OWNER, due_at=timezone.now())


async def test_a_recorded_step_does_not_run_again(owner: Follower) -> None:
    task = await owner.begin("two_steps")
    await happened("running")
    await _die(task)
    await happened("running")
    release()
    assert await task.text() == "first second"
    assert did() == ["first", "second began", "second began", "second ended"]


async def test_the_code_after_a_step_waits_until_its_result_is_stored(
    owner: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, done = writer.submit_if, []

    def losing(condition: Condition, records: Sequence[Record] = ()) -> "asyncio.Future[bool]":
        if condition.change.name == "task_checkpoint" and len(done) < 2:
            done.append([*did()])
            raise RecordLostError("the database is away")
        return submit(condition, records)

    monkeypatch.setattr(writer, "submit_if", losing)
    task = await owner.begin("two_steps")
    await happened("running")
    release()
    assert await task.text() == "first second"
    assert done == [["first"], ["first"]]


async def test_a_step_recorded_before_its_call_became_a_task_does_not_run_again(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    task = await owner.begin("slow_after_a_step")
    await happened("running")
    await _die(task)
    await happened("running")
    release()
    assert await task.text() == "second"
    assert did() == ["first", "second began", "second began", "second ended"]


async def test_a_task_whose_processes_die_repeatedly_fails(owner: Follower) -> None:
    task = await owner.begin("hangs")
    for _ in range(MAX_ATTEMPTS):
        await happened("running")
        await _die(task)
    seen = await task.ended()
    assert seen["status"] == "failed"
    assert "several times" in seen["error"]["message"]
    assert did() == ["hangs began"] * MAX_ATTEMPTS


async def test_a_process_wrongly_considered_dead_runs_no_further_step(owner: Follower) -> None:
    task = await owner.begin("two_held_steps")
    await happened("running")
    module("tasks").running.clear()
    taken = TaskModel.objects.filter(id=UUID(hex=task.id))
    await in_database(lambda: taken.update(epoch=F("epoch") + 1, owner=uuid4()))
    release()
    await running_tasks.all_over()
    assert did() == ["first began", "first ended"]
    assert (await task.get())["status"] == "working"
