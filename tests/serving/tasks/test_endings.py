"""Tasks whose tool or caller is gone meanwhile: they end, and say why."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services as tools
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution import stored_tasks
from mcphost.tasks import selectors, services
from mcphost.tasks.models import TaskQuestion
from mcphost.tasks.selectors import TaskRow
from mcphost.tasks.states import TaskState
from mcphost.tenants.services import remove_member
from tests.cast import ACTOR, Cast
from tests.serving.tasks.following import PATIENCE, RED, TERMINAL, Follower, did, happened, release

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _disable(tenant: UUID, name: str) -> None:
    rows = {row.name: row for row in catalogue.primitives([tenant])}  # type: ignore[arg-type]
    tools.disable(rows[name].id, ACTOR)


async def test_a_task_whose_tool_was_withdrawn_fails_with_the_reason(
    tasks: Cast, owner: Follower
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await in_database(_disable, tasks.acme.id, "paint")
    await task.update(RED)
    seen = await task.ended()
    assert seen["status"] == "failed"
    assert seen["error"]["message"]
    assert seen["statusMessage"]
    assert did() == []


async def test_a_round_that_runs_when_its_tool_is_withdrawn_may_end(
    tasks: Cast, owner: Follower
) -> None:
    task = await owner.begin("hangs")
    await happened("running")
    await in_database(_disable, tasks.acme.id, "hangs")
    release()
    assert (await task.ended())["status"] in TERMINAL


@pytest.mark.requirement("tasks.authorized")
async def test_a_caller_that_lost_its_access_learns_nothing_and_its_task_fails(
    tasks: Cast,
) -> None:
    follower = Follower(tasks.member.mcp_token)
    task = await follower.begin("paint")
    await task.asked("colour")
    await in_database(remove_member, tasks.acme.id, tasks.member.user, actor=ACTOR)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert (await follower.about(method, task.id)).status == 401
    await in_database(_expire)
    process.runner.on_gap()
    row = await _ended(UUID(hex=task.id))
    seen = await stored_tasks.view(row, {})
    assert (seen.status, seen.requests) == ("failed", {})
    assert seen.error == {"code": -31401, "message": seen.message, "data": {"presented": True}}
    assert not await in_database(TaskQuestion.objects.exists)
    assert did() == []


async def test_a_withdrawn_tool_ends_a_task_whose_question_expires(
    tasks: Cast, owner: Follower
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await in_database(_disable, tasks.acme.id, "paint")
    await in_database(_expire)
    process.runner.on_gap()
    assert (await task.ended())["status"] == "failed"
    assert not await in_database(TaskQuestion.objects.exists)


def _expire() -> None:
    """Let the time of all questions be over, and look as each process does every few seconds."""
    TaskQuestion.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    services.expire_questions()
    services.ready()


async def _ended(task: UUID) -> TaskRow:
    """Wait until the task works no more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            row = await in_database(selectors.find, task)
            assert row is not None
            if row.state is not TaskState.WORKING:
                return row
            await asyncio.sleep(0.01)  # between looks, as clients do
