"""Rounds of tasks, and periodic work, as jobs of procrastinate (PostgreSQL): a worker takes them, and no
other process."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.serving.tasks.job_worker import UPKEEP, JobWorker
from mcphost.tasks import selectors
from mcphost.tasks.jobs import QUEUE
from tests.cast import Cast
from tests.serving.tasks.task_client import RED, Follower, Task, did, happened, release

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
PATIENCE = 20


@pytest.fixture
def owner(tasks: Cast, settings: Settings) -> Iterator[Follower]:
    settings.MCPHOST_TASK_ENGINE = "procrastinate"
    settings.MCPHOST_TASK_WORKER_IN_SERVER = False
    yield Follower(tasks.owner.mcp_token)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")


@asynccontextmanager
async def working() -> AsyncIterator[JobWorker]:
    """A worker that takes jobs meanwhile."""
    worker = JobWorker(process.runner)
    worker.start()
    try:
        yield worker
    finally:
        worker.end()
        async with asyncio.timeout(PATIENCE):
            await worker.ended()


def _jobs() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT args->>'task', status::text FROM procrastinate_jobs WHERE queue_name = %s",
            [QUEUE],
        )
        return cursor.fetchall()


async def jobs(*wanted: tuple[Task, str]) -> None:
    """Wait until there are exactly these jobs."""
    rows = sorted((task.id, status) for task, status in wanted)
    async with asyncio.timeout(PATIENCE):
        while sorted(await in_database(_jobs)) != rows:  # noqa: ASYNC110 - it is a poll
            await asyncio.sleep(0.01)


async def test_a_round_waits_for_a_worker(owner: Follower) -> None:
    task = await owner.begin("always", text="hello")
    await jobs((task, "todo"))
    assert did() == []
    async with working():
        assert await task.text() == "hello"
        await jobs()
    assert did() == ["hello"]


async def test_a_serving_process_runs_jobs_if_the_setting_allows_it(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_WORKER_IN_SERVER = True
    task = await owner.begin("always", text="hello")
    assert await task.text() == "hello"
    process.job_worker.end()
    await process.job_worker.ended()


async def test_a_worker_that_leaves_the_queue_completes_its_round(owner: Follower) -> None:
    async with working():
        task = await owner.begin("paint_slowly")
        await task.asked("colour")
        await task.update(RED)
        await happened("running")
    await jobs()
    row = await in_database(selectors.find, UUID(task.id))
    assert row is not None
    assert row.is_owned
    release()
    assert await task.text() == "it is red"


async def test_a_cancelled_task_leaves_no_job(owner: Follower) -> None:
    task = await owner.begin("always", text="hello")
    await jobs((task, "todo"))
    await task.cancel()
    async with working():
        await jobs()
    assert did() == []


async def test_the_jobs_of_a_dead_worker_are_dropped(owner: Follower) -> None:
    task = await owner.begin("always", text="hello")
    await jobs((task, "todo"))
    await in_database(_die_with_a_job)
    await jobs((task, "doing"))
    async with working():
        await jobs()
        await in_database(process.runner.find_tasks)
        assert await task.text() == "hello"


def _die_with_a_job() -> None:
    """As if a worker had taken the job and died a minute ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 min') "
            "RETURNING id"
        )
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s", cursor.fetchone()
        )


async def test_a_worker_wrongly_considered_dead_logs_no_errors_and_takes_jobs_again(
    owner: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    """Its process was stopped for a while, and others have dropped its jobs meanwhile."""
    async with working():
        task = await owner.begin("hangs")
        await happened("running")
        await in_database(_drop_workers_and_jobs)
        release()
        assert await task.text() == "hangs"
        again = await owner.begin("always", text="hello")
        assert await again.text() == "hello"
    gc.collect()  # asyncio logs an exception that was not awaited when its task is collected
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def _drop_workers_and_jobs() -> None:
    """As other workers do when one has written no heartbeats for long."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
        cursor.execute("DELETE FROM procrastinate_workers")


async def test_a_worker_takes_jobs_again_after_its_connections_were_lost(
    owner: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    async with working():
        first = await owner.begin("always", text="one")
        assert await first.text() == "one"
        await in_database(_cut_connections)
        second = await owner.begin("always", text="two")
        assert await second.text() == "two"
    told = [record for record in caplog.records if "queue of tasks" in record.message]
    assert not [record for record in told if record.exc_info]


def _cut_connections() -> None:
    """As a restart of PostgreSQL does to the queue."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
            "datname = current_database() AND pid <> pg_backend_pid() AND query ILIKE '%procrastinate%'"
        )
        assert cursor.fetchone()[0]


async def test_when_a_round_ends_the_next_gets_its_slot(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_ROUNDS_PER_TOOL = 1
    tasks = [await owner.begin("always", text=f"{number}") for number in range(6)]
    await jobs((tasks[0], "todo"))
    async with working():
        assert [await task.text() for task in tasks] == list("012345")
    assert did() == list("012345")


async def test_periodic_work_is_done_by_the_queue_only(owner: Follower, settings: Settings) -> None:
    """It catches up: what expired while no worker lived is deleted when one comes."""
    await in_database(_add_an_expired_sign_in)
    await in_database(Housekeeping().work)
    assert await in_database(Session.objects.exists)
    async with working(), asyncio.timeout(PATIENCE):
        while await in_database(Session.objects.exists):  # noqa: ASYNC110 - it is a poll
            await asyncio.sleep(0.01)


def _add_an_expired_sign_in() -> None:
    past = timezone.now() - timedelta(days=1)
    Session.objects.create(session_key="x" * 32, session_data="", expire_date=past)


async def test_the_periodic_work_of_a_dead_worker_is_done_by_another(owner: Follower) -> None:
    await in_database(_die_with_periodic_work)
    await in_database(_add_an_expired_sign_in)
    async with working(), asyncio.timeout(PATIENCE):
        while await in_database(Session.objects.exists):  # noqa: ASYNC110 - it is a poll
            await asyncio.sleep(0.01)


def _die_with_periodic_work() -> None:
    """As if a worker had taken such a job and died a minute ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 min') "
            "RETURNING id"
        )
        cursor.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, status, worker_id) "
            "VALUES (%s, %s, %s, 'doing', %s)",
            [UPKEEP, UPKEEP, UPKEEP, *cursor.fetchone()],
        )
