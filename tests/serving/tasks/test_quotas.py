"""Limits of tasks, reached by many requests at once."""

import asyncio

import pytest
from pytest_django import Settings

from mcphost.serving import limits
from mcphost.serving.database import in_database
from mcphost.tasks.models import Task as TaskModel
from tests.cast import Cast
from tests.serving.tasks.task_client import Follower

pytestmark = pytest.mark.django_db(transaction=True)

MOST = 3


@pytest.mark.parametrize(("of", "tool"), [("CALLER", "paint"), ("TENANT", "defers")])
async def test_concurrent_calls_create_no_more_tasks_than_the_limit(
    tasks: Cast, settings: Settings, of: str, tool: str
) -> None:
    setattr(settings, f"MCPHOST_TASKS_PER_{of}", MOST)
    owner = Follower(tasks.owner.mcp_token)
    replies = await asyncio.gather(*(owner.call(tool) for _ in range(12)))
    assert sorted(reply.status for reply in replies) == [200] * MOST + [429] * (12 - MOST)
    assert await in_database(TaskModel.objects.count) == MOST


async def test_polls_by_other_callers_do_not_count_against_the_owner_of_the_task(
    tasks: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "POLLS_PER_MINUTE", MOST)
    owner, member = Follower(tasks.owner.mcp_token), Follower(tasks.member.mcp_token)
    task = await owner.begin("paint")
    statuses = [(await member.about("tasks/get", task.id)).status for _ in range(MOST + 1)]
    assert statuses[-1] == 429
    statuses = [(await owner.about("tasks/get", task.id)).status for _ in range(MOST + 1)]
    assert statuses == [200] * MOST + [429]
