"""Which due rounds are queued as jobs (PostgreSQL)."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from mcphost.calls.ownership import NO_OWNER
from mcphost.tasks.jobs import QUEUE, Places, hand_out
from mcphost.tasks.models import Task
from mcphost.tasks.states import TaskState
from tests.cast import Cast
from tests.tasks.rows import a_question as question
from tests.tasks.rows import a_task as task

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]
WIDE = Places(100, 100)


def queued() -> list[str]:
    """The tasks of the jobs, in the order in which workers take them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT args->>'task' FROM procrastinate_jobs WHERE queue_name = %s AND status = 'todo' "
            "ORDER BY priority DESC, id",
            [QUEUE],
        )
        return [row[0] for row in cursor.fetchall()]


def fetched() -> int:
    """A worker takes the first job; return its id."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
        (worker,) = cursor.fetchone()
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s WHERE id = "
            "(SELECT min(id) FROM procrastinate_jobs WHERE status = 'todo') RETURNING id",
            [worker],
        )
        job: int = cursor.fetchone()[0]
        return job


def forget(job: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs WHERE id = %s", [job])


def due(tenant: UUID, seconds: float, **columns: object) -> Task:
    """A task that has been due for so long."""
    return task(tenant, due_at=timezone.now() - timedelta(seconds=seconds), **columns)


def hexes(rows: Collection[Task]) -> list[str]:
    return [row.id.hex for row in rows]


def test_due_tasks_are_queued_once_and_in_order(cast: Cast) -> None:
    second, first = due(cast.acme.id, 1), due(cast.globex.id, 2)
    due(cast.acme.id, -60)
    due(cast.acme.id, 1, state=TaskState.CANCELLED)
    due(cast.acme.id, 1, expires_at=timezone.now() - timedelta(seconds=1))
    task(cast.acme.id, owner=uuid4())
    assert hand_out((), WIDE) == 2
    assert queued() == hexes([first, second])
    assert hand_out((), WIDE) == 0
    assert queued() == hexes([first, second])


def test_notified_tasks_become_due_unless_they_run_or_wait_for_input(cast: Cast) -> None:
    woken, asks, other = (task(cast.acme.id) for _ in range(3))
    runs = task(cast.acme.id, owner=uuid4())
    question(asks)
    assert hand_out([woken.id, asks.id, runs.id], WIDE) == 1
    assert queued() == [woken.id.hex]
    assert Task.objects.filter(due_at=None).count() == 3
    assert other.due_at is None


def test_queued_rounds_are_limited_per_tool_and_per_tenant(cast: Cast) -> None:
    paints = [due(cast.acme.id, 100 - number) for number in range(5)]
    counts = [due(cast.acme.id, 50 - number, tool="count") for number in range(5)]
    foreign = due(cast.globex.id, 1)
    assert hand_out((), Places(of_tenant=5, of_tool=3)) == 6
    assert queued() == hexes([*paints[:3], *counts[:2], foreign])
    assert hand_out((), Places(of_tenant=5, of_tool=3)) == 0
    assert hand_out((), Places(of_tenant=7, of_tool=4)) == 2
    assert queued()[6:] == hexes([paints[3], counts[2]])


def test_running_rounds_count_against_the_limits(cast: Cast) -> None:
    for _ in range(2):
        task(cast.acme.id, owner=uuid4())
    waiting = [due(cast.acme.id, 10 - number) for number in range(3)]
    assert hand_out((), Places(of_tenant=3, of_tool=9)) == 1
    assert queued() == hexes(waiting[:1])
    Task.objects.exclude(owner=NO_OWNER).delete()
    assert hand_out((), Places(of_tenant=9, of_tool=2)) == 1


def test_a_fetched_job_is_queued_again_only_after_its_task_ran_or_the_job_was_lost(
    cast: Cast,
) -> None:
    row = due(cast.acme.id, 1)
    hand_out((), WIDE)
    fetched()
    assert hand_out((), WIDE) == 0
    Task.objects.filter(id=row.id).update(epoch=row.epoch + 1)  # it ran, and is due again
    assert hand_out((), WIDE) == 1
    assert queued() == [row.id.hex]
    forget(fetched())
    assert queued() == []
    assert hand_out((), WIDE) == 1
    assert queued() == [row.id.hex]
