"""Rounds of tasks that fail unexpectedly: they run again as often as their author allows."""

from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.serving.database import in_database
from mcphost.serving.execution import owned_task
from mcphost.tasks.models import Task as TaskModel
from tests.cast import Cast
from tests.serving.tasks.task_client import Follower, Task, did

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause is long."""
    monkeypatch.setattr(owned_task, "MAX_RETRY_SECONDS", 0.01)


def _outcomes(task: str) -> list[str]:
    call = TaskModel.objects.get(id=UUID(task)).call
    ends = Entry.objects.filter(action="round.finished", call=call).order_by("id")
    return list(ends.values_list("outcome", flat=True))


async def outcomes(task: Task) -> list[str]:
    """How the rounds of a task ended, in the record."""
    found: list[str] = await in_database(_outcomes, task.id)
    return found


@pytest.mark.usefixtures("hasty")
async def test_a_failed_round_runs_again_from_its_journal(owner: Follower) -> None:
    task = await owner.begin("fails", times=2)
    assert await task.text() == "done"
    first, *again = did()
    assert first == "first"
    assert len(again) == 3
    assert len(set(again)) == 1, "the step has the same idempotency key each time"
    assert await outcomes(task) == ["deferred", "crashed", "crashed", "complete"]


@pytest.mark.usefixtures("hasty")
async def test_a_task_fails_after_its_last_attempt(owner: Follower) -> None:
    task = await owner.begin("fails", times=10)
    assert "has been logged" in await task.failure()
    assert len(did()) == 1 + 3
    assert await outcomes(task) == ["deferred", "crashed", "crashed", "crashed"]


@pytest.mark.usefixtures("hasty")
async def test_final_errors_and_calls_without_retries_or_task_run_once(
    owner: Follower,
) -> None:
    task = await owner.begin("refuses_for_good")
    assert "out of paper" in await task.failure()
    assert did() == ["refused"]
    task = await owner.begin("crashes")
    await task.failure()
    assert await outcomes(task) == ["deferred", "crashed"]
    did().clear()
    reply = await owner.unable().call("fails_for_all")
    assert reply.result["isError"]
    assert did() == ["failed"]
