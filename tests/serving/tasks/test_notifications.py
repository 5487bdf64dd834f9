"""`notifications/tasks` on `subscriptions/listen`: every change of the caller's own tasks."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.serving import shutdown
from tests.cast import Cast
from tests.mcp import PREFIX, send
from tests.serving.tasks.task_client import (
    RED,
    TERMINAL,
    Follower,
    Seen,
    Watching,
    happened,
    own,
    release,
    unable,
    watching,
)

pytestmark = pytest.mark.django_db(transaction=True)

LATER = ("resultType", "lastUpdatedAt")
LEADS_TO: Mapping[str, set[str]] = {
    "working": {"working", "input_required", *TERMINAL},
    "input_required": {"input_required", "working", *TERMINAL},
}


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def _is_silent(watching: Watching, last: Seen) -> None:
    """Nothing new comes any more, and then the result of the subscription."""
    shutdown.begin()
    while "result" not in (message := await watching.exchange.message()):
        assert (message["method"], message["params"]) == ("notifications/tasks", last)
    await watching.exchange.done()


def _statuses(heard: list[Any]) -> list[str]:
    return [seen["status"] for seen in heard]


@pytest.mark.requirement("tasks.notified")
async def test_each_change_of_a_task_is_notified(owner: Follower) -> None:
    task = await owner.begin("paint_later")
    await happened("running")
    async with watching(owner, [task.id]) as watch:
        assert watch.honoured == {"taskIds": [task.id]}
        release()
        heard = await watch.until(lambda seen: seen["status"] == "input_required")
        assert set(heard[-1]["inputRequests"]) == {"colour"}
        assert own(heard[-1], *LATER) == own(await task.get(), *LATER)
        await task.update(RED)
        heard += await watch.until(lambda seen: seen["status"] in TERMINAL)
        assert own(heard[-1]) == own(await task.get(), "resultType")
        assert heard[-1]["result"]["content"][0]["text"] == "it is red"
        for before, after in zip(_statuses(heard), _statuses(heard)[1:], strict=False):
            assert after in LEADS_TO[before]
        assert {seen["taskId"] for seen in heard} == {task.id}
        assert all(seen["_meta"] == {f"{PREFIX}subscriptionId": 1} for seen in heard)
        await _is_silent(watch, heard[-1])


@pytest.mark.requirement("tasks.no-progress")
async def test_progress_and_logs_of_a_task_are_not_notified(owner: Follower) -> None:
    params = {"name": "paint_later", "arguments": {}}
    begun = await owner.send("tools/call", params, progressToken="p", logLevel="debug")
    assert "method" not in begun.messages[0]
    id = begun.result["taskId"]
    await happened("running")
    async with watching(owner, [id]) as watch:
        release()
        heard = await watch.until(lambda seen: seen["status"] == "input_required")
        assert {seen["taskId"] for seen in heard} == {id}
        await _is_silent(watch, heard[-1])


@pytest.mark.requirement("tasks.notified-own")
async def test_task_ids_of_other_callers_are_left_out_and_not_notified(
    tasks: Cast, owner: Follower
) -> None:
    member = Follower(tasks.member.mcp_token)
    stranger = Follower(tasks.stranger.mcp_token, "globex")
    ours, theirs = await owner.begin("paint_later"), await member.begin("paint_later")
    foreign = await stranger.begin("paint_later")
    wanted = [theirs.id, ours.id, foreign.id, "A" * 22]
    async with watching(owner, wanted) as watch:
        assert watch.honoured == {"taskIds": [ours.id]}
        release()
        await theirs.asked("colour")
        await theirs.cancel()
        await foreign.asked("colour")
        await theirs.ended()
        await ours.asked("colour")
        await ours.cancel()
        heard = await watch.until(lambda seen: seen["status"] in TERMINAL)
        assert {seen["taskId"] for seen in heard} == {ours.id}


async def test_an_anonymous_caller_can_subscribe_to_a_task_by_its_id(tasks: Cast) -> None:
    anonymous = Follower(None, "commons")
    task = await anonymous.begin("paint")
    await task.asked("colour")
    async with watching(anonymous, [task.id]) as watch:
        assert watch.honoured == {"taskIds": [task.id]}
        await task.update(RED)
        heard = await watch.until(lambda seen: seen["status"] in TERMINAL)
        assert heard[-1]["status"] == "completed"


@pytest.mark.requirement("tasks.notified-able")
async def test_subscribing_to_tasks_without_the_extension_is_refused(owner: Follower) -> None:
    task = await owner.begin("hangs")
    plain = owner.unable()
    for ids in ([task.id], ["A" * 22]):
        for more in ({}, {"toolsListChanged": True}):
            body = plain.message(
                "subscriptions/listen", {"notifications": {"taskIds": ids, **more}}
            )
            unable(await send("acme", body, owner.token))
