"""`manage.py worker`: a process that runs rounds of tasks and ends on a signal."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from mcphost.calls.models import StreamedCall
from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import CallState
from mcphost.routing import process
from mcphost.serving import shutdown
from mcphost.serving.background import background
from mcphost.serving.database import in_database
from mcphost.serving.legacy.call import under_way
from mcphost.serving.process.worker import WorkerProcess
from mcphost.tasks import selectors
from mcphost.tasks.selectors import TaskRow
from mcphost.tasks.states import TaskState
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, true
from tests.serving.tasks.task_client import RED, Follower, did, happened, release

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 20


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


@asynccontextmanager
async def working(drain_seconds: float) -> AsyncIterator[asyncio.Task[None]]:
    """A worker in this process; the test tells it to end."""
    worker = asyncio.create_task(WorkerProcess(process, drain_seconds).run())
    try:
        await asyncio.sleep(0)  # its signal handlers are there
        yield worker
        async with asyncio.timeout(PATIENCE):
            await worker
    finally:
        worker.cancel()
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(each)
        shutdown.reset()


def tell() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


async def draining() -> None:
    """Wait until the worker drains."""
    async with asyncio.timeout(PATIENCE):
        while not shutdown.draining():  # noqa: ASYNC110 - it is a poll
            await asyncio.sleep(0)


async def the_task(follower: Follower, tool: str) -> str:
    """Begin a task of which only the id is of interest: nobody can ask after the worker's end."""
    return (await follower.begin(tool)).id


async def row(id: str) -> TaskRow:
    found = await in_database(selectors.find, UUID(id))
    assert found is not None
    return found


def test_workers_are_refused_with_sqlite(settings: Settings) -> None:
    settings.MCPHOST_ALONE = True
    with pytest.raises(CommandError, match="Workers need PostgreSQL"):
        call_command("worker", stdout=StringIO())


async def test_a_worker_runs_rounds_until_it_receives_a_signal(owner: Follower) -> None:
    async with working(10):
        task = await owner.begin("always", text="hello")
        assert await task.text() == "hello"
        tell()


async def test_running_rounds_may_complete_before_the_worker_ends(owner: Follower) -> None:
    async with working(PATIENCE) as worker:
        id = await the_task(owner, "hangs")
        await happened("running")
        tell()
        await draining()
        assert not worker.done()
        release()
    assert (await row(id)).state is TaskState.COMPLETED
    assert did() == ["hangs began", "hangs ended"]


async def test_a_round_that_does_not_end_in_time_is_released(owner: Follower) -> None:
    async with working(0.05):
        id = await the_task(owner, "hangs")
        await happened("running")
        tell()
    await happened("cancelled")
    left = await row(id)
    assert (left.state, left.is_owned) == (TaskState.WORKING, False)


async def test_a_stopping_server_releases_its_calls_and_tasks(owner: Follower, tasks: Cast) -> None:
    hanging = await the_task(owner, "hangs")
    await happened("running")
    caller = await Caller.at(tasks)
    waiting, running = caller.call("paint"), caller.call("hangs")
    await true(lambda: StreamedCall.objects.filter(state=CallState.WAITING).exists())
    await process.stop()
    assert not background
    assert not under_way
    assert not (await row(hanging)).is_owned
    owners = await in_database(lambda: dict(StreamedCall.objects.values_list("state", "owner")))
    assert owners == {CallState.WAITING: NO_OWNER}
    assert await waiting.settled() is None
    assert (await running.settled()) is not None


async def test_a_draining_worker_starts_no_round(owner: Follower) -> None:
    async with working(PATIENCE):
        waiting = await owner.begin("paint")
        await waiting.asked("colour")
        hanging = await the_task(owner, "hangs")
        await happened("running")
        tell()
        await draining()
        await waiting.update(RED)
        release()
    assert (await row(hanging)).state is TaskState.COMPLETED
    left = await row(waiting.id)
    assert (left.state, left.is_owned, left.open) == (TaskState.WORKING, False, ())
    assert did() == ["hangs began", "hangs ended"]
