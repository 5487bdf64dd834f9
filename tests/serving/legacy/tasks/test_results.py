"""`tasks/get` and `tasks/result` in sessions: how a task is, and how it ends."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.mcp import Reply
from tests.serving.legacy.tasks.client import OF_TASKS, TaskClient, client_of, refused
from tests.serving.tasks.following import did, happened, release
from tests.wire import RELATED_TASK

pytestmark = pytest.mark.django_db(transaction=True)


def _related(id: str) -> dict[str, Any]:
    return {RELATED_TASK: {"taskId": id}}


# --- how it is ---


async def test_a_task_that_works_is_shown_as_it_was_created(client: TaskClient) -> None:
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


async def test_a_result_is_not_shown_with_the_state(client: TaskClient) -> None:
    task = await client.begin("counts", text="hello")
    seen = await task.ended()
    known = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
    assert seen.keys() - {"statusMessage"} == known


async def test_progress_becomes_the_message_of_the_state(client: TaskClient) -> None:
    task = await client.begin("progresses")
    seen = await task.until(lambda seen: seen.get("statusMessage"))
    assert seen["statusMessage"] == "half"
    release()
    await task.ended()


@pytest.mark.requirement("session-tasks.failed")
async def test_a_result_with_an_error_is_a_failure(client: TaskClient) -> None:
    task = await client.begin("refuses")
    assert (await task.ended())["status"] == "failed"
    result = (await task.result()).result
    assert result["isError"] is True
    assert "out of paper" in result["content"][0]["text"]
    assert result["_meta"] == _related(task.id)


async def test_a_tool_that_raises_is_a_failure_without_its_traceback(client: TaskClient) -> None:
    task = await client.begin("crashes")
    seen = await task.ended()
    assert seen["status"] == "failed"
    reply = await task.result()
    assert reply.result["isError"] is True
    assert b"canary-of-the-traceback" not in reply.raw
    assert "canary" not in str(seen)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("large", {"size": "many"}, "Invalid arguments"),
        ("large", {"size": 60_000_000}, "too large"),
        ("needs_sampling", {}, "sampling"),
    ],
)
async def test_an_error_is_told_as_in_a_plain_call(
    tasks: Cast, tool: str, arguments: dict[str, Any], words: str
) -> None:
    client = await client_of(tasks.owner, elicitation={})
    plain = (await client.call(tool, **arguments)).result
    assert plain["isError"]
    assert words in plain["content"][0]["text"]
    task = await client.begin(tool, **arguments)
    assert (await task.ended())["status"] == "failed"
    result = (await task.result()).result
    assert result.pop("_meta") == _related(task.id)
    assert result == plain


def _disable(tenant: UUID, name: str) -> None:
    rows = {row.name: row for row in catalogue.primitives([tenant])}  # type: ignore[arg-type]
    services.disable(rows[name].id, ACTOR)


@pytest.mark.requirement("session-tasks.error")
async def test_an_error_of_the_protocol_is_a_failure_and_returned_as_one(
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


async def test_the_result_of_an_ended_task_comes_at_once_and_again(client: TaskClient) -> None:
    task = await client.begin("counts", text="hello")
    await task.ended()
    first = await task.result()
    assert not first.streamed
    assert first.result["structuredContent"] == {"length": 5}
    assert first.result["_meta"] == _related(task.id)
    again = await task.result()
    assert again.result == first.result


@pytest.mark.requirement("session-tasks.result")
async def test_it_is_the_result_of_the_plain_call(client: TaskClient) -> None:
    plain = (await client.call("counts", text="hello")).result
    task = await client.begin("counts", text="hello")
    found = (await task.result()).result
    assert {**found, "_meta": None} == {**plain, "_meta": None}


@pytest.mark.requirement("session-tasks.blocked")
async def test_it_waits_for_the_end(client: TaskClient) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
        assert b"result" not in following.posted.reply.raw
        release()
        assert await following.text() == "hangs"


async def test_several_requests_wait_for_one_end(client: TaskClient) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as one, task.following() as other:
        assert (await task.get())["status"] == "working"
        release()
        assert await one.text() == await other.text() == "hangs"
    assert did() == ["hangs began", "hangs ended"]


async def test_a_failure_comes_to_a_request_that_waits(client: TaskClient) -> None:
    task = await client.begin("paint_later")
    await happened("running")
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
        release()
        await client.answer(await following.asked(), {"action": "decline"})
        result = (await following.response())["result"]
    assert result["isError"]
    assert result["_meta"] == _related(task.id)
    assert (await task.get())["status"] == "failed"


async def test_a_client_that_disconnects_from_its_wait_cancels_nothing(client: TaskClient) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
    await following.posted.done()
    assert (await task.get())["status"] == "working"
    release()
    assert await task.text() == "hangs"
    assert did() == ["hangs began", "hangs ended"]


async def test_a_client_that_cancels_its_wait_cancels_nothing_else(client: TaskClient) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
        await client.session.notify("notifications/cancelled", {"requestId": following.request})
        reply = await following.posted.done()
        assert b'"result"' not in reply.raw
        assert b'"error"' not in reply.raw
    release()
    assert await task.text() == "hangs"


async def test_to_cancel_the_request_that_created_a_task_does_not_cancel_the_task(
    client: TaskClient,
) -> None:
    body = client.calling("hangs", {})
    task = client.task_of(await client.session.send(body))
    await happened("running")
    await client.session.notify("notifications/cancelled", {"requestId": body["id"]})
    release()
    assert await task.text() == "hangs"


@pytest.mark.requirement("session-tasks.param")
async def test_the_metadata_of_a_request_does_not_name_its_task(client: TaskClient) -> None:
    task = await client.begin("always", text="mine")
    other = await client.begin("always", text="other")
    for method in OF_TASKS[:2]:
        reply = await client.ask(method, taskId=task.id, _meta=_related(other.id))
        assert reply.status == 200
        if method == "tasks/get":
            assert reply.result["taskId"] == task.id
        else:
            assert reply.text == "mine"
            assert reply.result["_meta"] == _related(task.id)


async def test_other_params_are_ignored(client: TaskClient) -> None:
    task = await client.begin("always", text="mine")
    await task.ended()
    for method in OF_TASKS[:2]:  # the TypeScript SDK sends it with its polls
        reply = await client.ask(method, taskId=task.id, task={"ttl": 1}, more="a")
        assert "result" in reply.last, reply.raw
    assert (await client.ask("tasks/list", task={})).result["tasks"] == [await task.get()]


async def test_a_long_wait_can_be_read_again_from_where_it_was_left(client: TaskClient) -> None:
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


@pytest.mark.parametrize("method", OF_TASKS)
@pytest.mark.parametrize("params", [{}, {"taskId": None}, {"taskId": 5}, {"taskId": ["a"]}])
async def test_a_request_without_an_id_is_refused(
    client: TaskClient, method: str, params: dict[str, Any]
) -> None:
    refused(await client.ask(method, **params), -32602)


async def test_results_come_to_their_own_requests(client: TaskClient) -> None:
    begun = [await client.begin("always", text=str(number)) for number in range(4)]
    replies: list[Reply] = await asyncio.gather(*(task.result() for task in begun))
    assert [reply.text for reply in replies] == ["0", "1", "2", "3"]
