"""Scripts whose calls become tasks: their questions, their expiry, and processes that die."""

import asyncio
from contextlib import AsyncExitStack
from textwrap import dedent
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from mcphost.calls.ownership import NO_OWNER
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.kinds.script.kind import script_kind
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.tasks.models import Task as TaskModel
from tests.cast import ACTOR, Cast
from tests.serving.tasks.task_client import Follower, accept, done

pytestmark = pytest.mark.django_db(transaction=True)

ORDER = """
async def order(rounds: int = 1) -> dict:
    import asyncio
    got = []
    for number in range(rounds):
        await asyncio.sleep(PAUSE)
        answer = await elicit(f"count-{number}", "How many?", {"count": int})
        got.append(answer["count"])
        progress(number + 1, rounds, f"{number + 1} of {rounds}")
    return {"got": got}
"""


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def publish(tasks: Cast, choice: str, pause: float = 0.0) -> None:
    def save() -> None:
        config = {"code": dedent(ORDER).strip().replace("PAUSE", str(pause)), "tasks": choice}
        fields = PrimitiveFields("order", config, kind="script", description="Order.")
        catalogue.publish(catalogue.create(tasks.acme.id, fields, ACTOR).id, ACTOR)

    await in_database(save)


def _free(task: UUID) -> None:
    TaskModel.objects.filter(id=task).update(owner=NO_OWNER, due_at=timezone.now())


async def test_a_script_becomes_a_task_only_for_clients_with_the_extension(
    tasks: Cast, owner: Follower
) -> None:
    await publish(tasks, "always")
    assert '"got":[]' in await (await owner.begin("order", rounds=0)).text()
    assert '"got":[]' in done(await owner.unable().call("order", rounds=0))


async def test_a_slow_script_becomes_a_task_and_requests_input_there(
    tasks: Cast, owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    await publish(tasks, "slow", pause=1.0)
    task = await owner.begin("order")
    assert (await task.get())["status"] == "working"
    await task.asked("count-0")
    await task.update({"count-0": accept(count=3)})
    assert '"got":[3]' in await task.text()


async def test_a_script_without_a_free_worker_becomes_a_task(
    tasks: Cast, owner: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(tasks, "slow")
    sandbox = script_kind.sandbox
    monkeypatch.setattr(sandbox, "_wait_seconds", 0.1)
    async with AsyncExitStack() as taken:
        for _ in range(sandbox.max_workers // 2):
            await taken.enter_async_context(sandbox.worker(str(tasks.acme.id)))
        task = await owner.begin("order", rounds=0)
    assert '"got":[]' in await task.text()


async def test_a_round_of_a_dead_process_runs_again_and_repeats_no_input_request(
    tasks: Cast, owner: Follower
) -> None:
    await publish(tasks, "always", pause=1.0)
    task = await owner.begin("order", rounds=2)
    await task.asked("count-0")
    await task.update({"count-0": accept(count=3)})
    id = UUID(hex=task.id)
    await _runs(id)
    running_tasks.cancel(id, "the process is killed")
    await in_database(_free, id)
    process.runner.on_gap()
    await task.asked("count-1")
    await task.update({"count-1": accept(count=4)})
    assert '"got":[3,4]' in await task.text()


async def _runs(task: UUID) -> None:
    """Wait until this process runs a round of the task."""
    async with asyncio.timeout(15):
        while True:
            if await in_database(_has_owner, task):
                return
            await asyncio.sleep(0.01)  # between looks, as clients do


def _has_owner(task: UUID) -> Any:
    return TaskModel.objects.exclude(owner=NO_OWNER).filter(id=task).exists()
