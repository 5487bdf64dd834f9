"""The metrics of tasks: how many are created, finished, working and waiting."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from mcphost.observability import counters
from mcphost.serving.database import in_database
from mcphost.tasks import services
from tests.cast import Cast
from tests.serving.tasks.task_client import Follower

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _ended() -> Mapping[str, float]:
    return {labels[0]: one.value for labels, one in counters.tasks_ended.series.items()}


async def test_created_and_finished_tasks_are_counted_by_state(
    tasks: Cast, owner: Follower
) -> None:
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
