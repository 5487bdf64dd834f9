"""`notifications/tasks` on `subscriptions/listen`: own tasks only, and each change of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.serving import shutdown
from tests.cast import Cast
from tests.mcp import PREFIX, send
from tests.serving.tasks.following import (
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
async def test_each_change_of_a_task_is_told(owner: Follower) -> None:
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


async def test_answers_one_by_one_and_a_cancellation_are_told(owner: Follower) -> None:
    task = await owner.begin("both")
    await task.asked("colour", "size")
    async with watching(owner, [task.id]) as watch:
        await task.update(RED)
        heard = await watch.until(lambda seen: set(seen.get("inputRequests", ())) == {"size"})
        assert heard[-1]["status"] == "input_required"
        await task.cancel()
        heard = await watch.until(lambda seen: seen["status"] in TERMINAL)
        assert heard[-1]["status"] == "cancelled"
        await _is_silent(watch, heard[-1])


async def test_a_failure_is_told(owner: Follower) -> None:
    task = await owner.begin("paint_later")
    await happened("running")
    bare = Follower(owner.token, capabilities={"extensions": owner.capabilities["extensions"]})
    other = await bare.begin("paint_later")
    async with watching(owner, [other.id, task.id]) as watch:
        release()
        heard = await watch.until(lambda seen: seen["taskId"] == other.id and seen.get("error"))
        assert heard[-1]["status"] == "failed"
        assert heard[-1]["statusMessage"]


@pytest.mark.requirement("tasks.no-progress")
async def test_neither_progress_nor_logs_are_told(owner: Follower) -> None:
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
async def test_ids_of_others_are_left_out_and_not_told(tasks: Cast, owner: Follower) -> None:
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


async def test_foreign_ids_look_like_unknown_ones_also_beside_lists_and_own_tasks(
    tasks: Cast, owner: Follower
) -> None:
    theirs = await Follower(tasks.member.mcp_token).begin("hangs")
    looks = []
    for id in (theirs.id, "A" * len(theirs.id)):
        async with watching(owner, [id], toolsListChanged=True) as watch:
            looks.append(watch.honoured)
    assert looks[0] == looks[1]
    assert not looks[0].get("taskIds")
    task = await owner.begin("hangs")
    async with watching(owner, [task.id, theirs.id], toolsListChanged=True) as watch:
        assert watch.honoured == {"taskIds": [task.id], "toolsListChanged": True}
        await task.cancel()
        heard = await watch.until(lambda seen: seen["status"] in TERMINAL)
        assert heard[-1]["status"] == "cancelled"


async def test_an_anonymous_caller_listens_to_an_id_that_it_has(tasks: Cast) -> None:
    anonymous = Follower(None, "commons")
    task = await anonymous.begin("paint")
    await task.asked("colour")
    async with watching(anonymous, [task.id]) as watch:
        assert watch.honoured == {"taskIds": [task.id]}
        await task.update(RED)
        heard = await watch.until(lambda seen: seen["status"] in TERMINAL)
        assert heard[-1]["status"] == "completed"


@pytest.mark.requirement("tasks.notified-able")
async def test_without_the_extension_it_is_refused(owner: Follower) -> None:
    task = await owner.begin("hangs")
    plain = owner.unable()
    for ids in ([task.id], ["A" * 22]):
        for more in ({}, {"toolsListChanged": True}):
            body = plain.message(
                "subscriptions/listen", {"notifications": {"taskIds": ids, **more}}
            )
            unable(await send("acme", body, owner.token))


async def test_ids_of_the_wrong_shape_are_refused(owner: Follower) -> None:
    for ids in (None, "a", 5, [5], [None], {"a": 1}):
        body = owner.message("subscriptions/listen", {"notifications": {"taskIds": ids}})
        reply = await send("acme", body, owner.token)
        assert (reply.status, reply.error["code"]) == (400, -32602), ids
