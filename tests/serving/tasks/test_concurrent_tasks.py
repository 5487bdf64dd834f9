"""Many concurrent tasks: each ends once with its own result, and waits for its slot."""

import asyncio

import pytest
from pytest_django import Settings

from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.tasks.task_client import (
    RED,
    Follower,
    Task,
    did,
    happened,
    release,
)

pytestmark = pytest.mark.django_db(transaction=True)


MANY = 12


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def test_rounds_wait_for_a_free_slot(owner: Follower, settings: Settings) -> None:
    for limit in ("ROUNDS", "ROUNDS_PER_TENANT", "ROUNDS_PER_TOOL"):
        name = f"MCPHOST_TASK_{limit}"
        before = getattr(settings, name)
        setattr(settings, name, 1)
        module("tasks").reset()
        waiting = [await owner.begin("hangs") for _ in range(3)]
        await happened("running")
        assert {seen["status"] for seen in [await task.get() for task in waiting]} == {"working"}
        assert did() == ["hangs began"], limit
        release()
        assert [await task.text() for task in waiting] == ["hangs"] * 3
        assert did() == ["hangs began", "hangs ended"] * 3, limit
        setattr(settings, name, before)


async def test_tasks_waiting_for_input_use_no_slot(owner: Follower, settings: Settings) -> None:
    settings.MCPHOST_TASK_ROUNDS = 1
    waiting = [await owner.begin("paint", what=f"door{n}") for n in range(5)]
    for task in waiting:
        await task.asked("colour")
    assert await (await owner.begin("always", text="a")).text() == "a"
    await asyncio.gather(*(task.update(RED) for task in waiting))
    texts = [await task.text() for task in waiting]
    assert texts == [f"door{n} is red" for n in range(5)]


async def test_one_tenant_cannot_use_all_slots(
    tasks: Cast, owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_ROUNDS = 2
    settings.MCPHOST_TASK_ROUNDS_PER_TENANT = 1
    ours: list[Task] = [await owner.begin("hangs") for _ in range(3)]
    await happened("running")
    theirs = await Follower(tasks.stranger.mcp_token, "globex").begin("always", text="theirs")
    assert await theirs.text() == "theirs"
    assert did() == ["hangs began", "theirs"]
    release()
    for task in ours:
        assert await task.text() == "hangs"
