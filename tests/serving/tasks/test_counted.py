"""The metrics of tasks: how many are created, end, work and wait."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.feed import nodes
from mcphost.observability import counters
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution.held_task import running_tasks
from mcphost.tasks import services
from mcphost.tasks.models import Task
from tests.cast import Cast
from tests.serving.tasks.following import RED, Follower, happened, release

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _ended() -> Mapping[str, float]:
    return {labels[0]: one.value for labels, one in counters.tasks_ended.series.items()}


async def _gauges() -> tuple[float, float, float]:
    await in_database(process.runner.look)
    gauges = (counters.tasks_working, counters.tasks_waiting, counters.tasks_due)
    working, waiting, due = (one.value for one in gauges)
    return working, waiting, due


async def test_created_and_ended_tasks_are_counted_by_state(tasks: Cast, owner: Follower) -> None:
    created, before = counters.tasks_created.value, _ended()
    done = await owner.begin("always", text="hello")
    assert await done.text() == "hello"
    failed = await owner.begin("needs_sampling")
    await failed.ended()
    cancelled = await owner.begin("paint")
    await cancelled.asked("colour")
    await cancelled.cancel()
    await cancelled.cancel()
    by_user = await owner.begin("paint")
    await by_user.asked("colour")
    assert await in_database(services.cancel, UUID(by_user.id), tasks.acme.id)
    deferred = await owner.begin("defers")
    await deferred.asked("colour")
    assert counters.tasks_created.value - created == 5
    rose = {state: value - before[state] for state, value in _ended().items()}
    assert {**rose, "other": 0} == {"completed": 1, "failed": 1, "cancelled": 2, "other": 0}


async def test_the_regular_look_counts_tasks_that_work_and_wait(owner: Follower) -> None:
    asks = await owner.begin("paint")
    await asks.asked("colour")
    works = await owner.begin("hangs")
    await happened("running")
    assert await _gauges() == (2, 1, 0)
    assert len(running_tasks) == 1
    release()
    await works.ended()
    await asks.update(RED)
    await asks.ended()
    assert await _gauges() == (0, 0, 0)


async def test_tasks_of_dead_processes_are_counted(
    owner: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "can_judge", lambda: True)  # at once, not after fifteen seconds
    task = await owner.begin("paint")
    await task.asked("colour")
    before = counters.tasks_taken_over.value
    long_ago = timezone.now() - timedelta(minutes=5)
    await in_database(
        lambda: Task.objects.filter(id=UUID(task.id)).update(owner=uuid4(), taken_at=long_ago)
    )
    await in_database(process.runner.look)
    assert counters.tasks_taken_over.value - before == 1
