"""Concurrent responses and cancellations of many tasks, by clients and by operators."""

import asyncio
from uuid import UUID

import pytest
from django.db.models import Count
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.serving.database import in_database
from mcphost.tasks import services
from mcphost.tasks.models import Task as TaskModel
from mcphost.tasks.models import TaskQuestion
from tests.cast import Cast
from tests.serving.tasks.task_client import RED, Follower, Task, did

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 20


async def test_concurrent_responses_and_cancellations_are_accepted_and_each_task_ends_once(
    tasks: Cast, settings: Settings
) -> None:
    settings.MCPHOST_TASKS_PER_CALLER = settings.MCPHOST_TASKS_PER_TENANT = MANY
    owner = Follower(tasks.owner.mcp_token)
    begun = [await owner.begin("paint", what=str(number)) for number in range(MANY)]
    for task in begun:
        await task.asked("colour")
    await asyncio.gather(
        *(task.update(RED) for task in begun),
        *(task.cancel() for task in reversed(begun)),
        *(_operator_cancels(tasks, task) for task in begun[::3]),
        *(in_database(services.expire_questions) for _ in range(3)),
        *(in_database(services.ready) for _ in range(3)),
    )
    statuses = [(await task.ended())["status"] for task in begun]
    painted = [line.split()[0] for line in did()]
    assert len(set(painted)) == len(painted)
    for number, status in enumerate(statuses):
        assert status in ("cancelled", "completed")
        assert status == "cancelled" or str(number) in painted
    await in_database(services.prune)  # as the periodic work does
    assert not await in_database(TaskQuestion.objects.exists)
    assert not await in_database(TaskModel.objects.filter(state="working").exists)
    assert await in_database(_most_ends) <= 1


async def _operator_cancels(tasks: Cast, task: Task) -> None:
    await in_database(services.cancel, UUID(hex=task.id), tasks.acme.id)


def _most_ends() -> int:
    """How often the task was cancelled that was cancelled most often."""
    ends = Entry.objects.filter(action="task.cancelled").values("call")
    counted = ends.annotate(times=Count("id")).values_list("times", flat=True)
    return max(counted, default=0)
