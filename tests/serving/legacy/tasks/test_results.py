"""`tasks/get` and `tasks/result` in sessions: the status of a task, and its result."""

from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.serving.legacy.tasks.client import OF_TASKS, TaskClient, client_of, refused
from tests.serving.tasks.task_client import did, happened, release
from tests.wire import RELATED_TASK

pytestmark = pytest.mark.django_db(transaction=True)


def _related(id: str) -> dict[str, Any]:
    return {RELATED_TASK: {"taskId": id}}


# --- how it is ---


async def test_a_task_is_shown_with_its_creation_values_and_without_its_result(
    client: TaskClient,
) -> None:
    task = await client.begin("hangs")
    await happened("running")
    seen = await task.get()
    for name in ("taskId", "status", "createdAt", "ttl", "pollInterval"):
        assert seen[name] == task.handle[name]
    release()
    ended = await task.ended()
    assert ended["status"] == "completed"
    assert ended["lastUpdatedAt"] >= seen["lastUpdatedAt"]
    assert ended["createdAt"] == seen["createdAt"]
    known = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
    assert ended.keys() - {"statusMessage"} == known


@pytest.mark.requirement("session-tasks.failed")
async def test_an_error_result_makes_the_task_failed_and_is_returned_as_in_a_plain_call(
    tasks: Cast,
) -> None:
    client = await client_of(tasks.owner, elicitation={})
    for tool, arguments, words in (
        ("refuses", {}, "out of paper"),
        ("crashes", {}, "has been logged"),
        ("large", {"size": "many"}, "Invalid arguments"),
        ("large", {"size": 60_000_000}, "too large"),
        ("needs_sampling", {}, "sampling"),
    ):
        plain = (await client.call(tool, **arguments)).result
        assert plain["isError"] is True
        assert words in plain["content"][0]["text"], tool
        task = await client.begin(tool, **arguments)
        ended = await task.ended()
        assert (ended["status"], ended["statusMessage"]) == ("failed", plain["content"][0]["text"])
        reply = await task.result()
        assert b"canary" not in reply.raw
        assert reply.result["_meta"] == _related(task.id)
        assert {**reply.result, "_meta": None} == {**plain, "_meta": None}


def _disable(tenant: UUID, name: str) -> None:
    rows = {row.name: row for row in catalogue.primitives([tenant])}  # type: ignore[arg-type]
    services.disable(rows[name].id, ACTOR)


@pytest.mark.requirement("session-tasks.error")
async def test_a_protocol_error_makes_the_task_failed_and_is_returned_as_an_error(
    tasks: Cast, client: TaskClient
) -> None:
    task = await client.begin("paint")
    await task.reaches("input_required")
    async with task.following() as one:
        await one.asked()
        async with task.following() as other:
            question = await other.asked()
            await in_database(_disable, tasks.acme.id, "paint")
            await client.answer(question, {"action": "accept", "content": {"colour": "red"}})
            error = (await other.response())["error"]
        assert (await one.posted.done()).error == error
    assert error["code"] < 0
    seen = await task.get()
    assert seen["status"] == "failed"
    assert seen["statusMessage"]
    for _ in range(2):
        reply = await task.result()
        assert not reply.streamed
        assert reply.error == error
    assert did() == []


# --- the result ---


@pytest.mark.requirement("session-tasks.result")
async def test_the_result_of_a_finished_task_equals_that_of_the_plain_call_and_can_be_repeated(
    client: TaskClient,
) -> None:
    plain = (await client.call("counts", text="hello")).result
    task = await client.begin("counts", text="hello")
    await task.ended()
    first = await task.result()
    assert not first.streamed
    assert first.result["structuredContent"] == {"length": 5}
    assert first.result["_meta"] == _related(task.id)
    assert {**first.result, "_meta": None} == {**plain, "_meta": None}
    assert (await task.result()).result == first.result


@pytest.mark.requirement("session-tasks.blocked")
async def test_several_requests_can_wait_for_the_same_task(client: TaskClient) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as one, task.following() as other:
        assert (await task.get())["status"] == "working"
        assert b"result" not in one.posted.reply.raw
        release()
        assert await one.text() == await other.text() == "hangs"
    assert did() == ["hangs began", "hangs ended"]


async def test_disconnects_and_cancelled_requests_do_not_cancel_the_task(
    client: TaskClient, settings: Settings
) -> None:
    """Neither a disconnect nor a cancellation of a wait, nor one of the request that created it."""
    settings.MCPHOST_STREAM_AFTER_SECONDS = 0.2  # the disconnect is noticed by then
    body = client.calling("hangs", {})
    task = client.task_of(await client.session.send(body))
    await happened("running")
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
    await following.posted.done()
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
        await client.session.notify("notifications/cancelled", {"requestId": following.request})
        reply = await following.posted.done()
        assert b'"result"' not in reply.raw
        assert b'"error"' not in reply.raw
    await client.session.notify("notifications/cancelled", {"requestId": body["id"]})
    assert (await task.get())["status"] == "working"
    release()
    assert await task.text() == "hangs"
    assert did() == ["hangs began", "hangs ended"]


@pytest.mark.requirement("session-tasks.param")
async def test_a_task_is_identified_only_by_the_id_in_the_params(client: TaskClient) -> None:
    task = await client.begin("always", text="mine")
    other = await client.begin("always", text="other")
    for each in (task, other):
        await each.ended()
    got = await client.ask("tasks/get", taskId=task.id, _meta=_related(other.id))
    assert got.result["taskId"] == task.id
    result = await client.ask("tasks/result", taskId=task.id, _meta=_related(other.id))
    assert (result.text, result.result["_meta"]) == ("mine", _related(task.id))
    for method in OF_TASKS[:2]:  # the TypeScript SDK sends `task` with its polls
        reply = await client.ask(method, taskId=task.id, task={"ttl": 1}, more="a")
        assert "result" in reply.last, reply.raw
    listed = (await client.ask("tasks/list", task={})).result["tasks"]
    assert listed == [await task.get(), await other.get()]
    for method in OF_TASKS:
        for params in ({}, {"taskId": None}, {"taskId": 5}, {"taskId": ["a"]}):
            refused(await client.ask(method, **params), -32602)


async def test_a_disconnected_result_stream_can_be_resumed(client: TaskClient) -> None:
    task = await client.begin("paint")
    await task.reaches("input_required")
    async with task.following() as following:
        question = await following.asked()
    await following.posted.done()
    first = following.posted
    async with client.session.begun(b"", "GET", last_event_id=first.last_id) as again:
        await client.answer(question, {"action": "accept", "content": {"colour": "red"}})
        found = await again.message()
        assert task.text_of(found) == "it is red"
        assert found["id"] == following.request
