"""Input requests of tasks in sessions: one `tasks/result` request of the task carries each."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import new_id
from mcphost.serving.database import in_database
from mcphost.serving.legacy import tasks as task_methods
from mcphost.tasks import selectors, services
from tests.cast import Cast
from tests.legacy import Event, Posted
from tests.serving.legacy.tasks.client import (
    BLUE,
    RED,
    Following,
    Task,
    TaskClient,
    accept,
    client_of,
)
from tests.serving.tasks.task_client import PATIENCE, did, happened, release
from tests.wire import SESSION_TASKS, check_message

pytestmark = pytest.mark.django_db(transaction=True)


async def _asking(client: TaskClient, tool: str = "paint", **arguments: Any) -> Task:
    """A task that has asked its first question."""
    task = await client.begin(tool, **arguments)
    await task.reaches("input_required")
    return task


def _asks_nothing(stream: Posted) -> None:
    """Nothing came on the session's GET stream but the states of its tasks."""
    for frame in stream.unread.split(b"\n\n")[:-1]:
        message = check_message(Event.read(frame).data, revision=SESSION_TASKS)
        assert message["method"] == "notifications/tasks/status", message


# --- one question ---


@pytest.mark.requirement("session-tasks.asked")
async def test_an_input_request_is_sent_on_the_result_stream_and_its_response_continues_the_task(
    client: TaskClient,
) -> None:
    task = await _asking(client, what="a wall")
    async with task.following() as following:
        question = await following.asked()
        assert question["params"]["message"] == "Which colour for a wall?"
        assert (await task.get())["status"] == "input_required"
        await client.answer(question, RED)
        assert await following.text() == "a wall is red"
    assert (await task.get())["status"] == "completed"
    assert did() == ["a wall red"]


async def test_an_error_response_reaches_the_tool(client: TaskClient) -> None:
    task = await _asking(client)
    async with task.following() as following:
        question = await following.asked()
        error = {"code": -1, "message": "no user"}
        body = {"jsonrpc": "2.0", "id": question["id"], "error": error}
        assert (await client.session.send(body)).status == 202
        response = await following.response()
    assert response.get("error") or response["result"].get("isError")
    assert (await task.ended())["status"] == "failed"
    assert did() == []


# --- on no other stream ---


async def test_no_other_stream_of_the_session_carries_an_input_request_of_the_task(
    client: TaskClient,
) -> None:
    async with client.session.listening() as standing:
        task = await client.begin("paint_later")
        other = await client.begin("paint_later", what="another")
        await happened("running")
        async with (
            client.session.begun(client.calling("hangs")) as plain,
            other.following() as elsewhere,
            task.following() as following,
        ):
            release()
            mine, theirs = await following.asked(), await elsewhere.asked()
            assert mine["params"]["message"] == "Which colour for it?"
            assert theirs["params"]["message"] == "Which colour for another?"
            await client.answer(mine, RED)
            assert await following.text() == "it is red"
            await client.answer(theirs, BLUE)
            assert await elsewhere.text() == "another is blue"
            reply = await plain.done()
            assert b"elicitation" not in reply.raw
            assert b"related-task" not in reply.raw
        assert b"elicitation" not in standing.reply.raw
        assert b"related-task" not in standing.reply.raw


# --- one stream at a time ---


async def _next(stack: AsyncExitStack, task: Task) -> tuple[Following, dict[str, Any]]:
    """One more request, and the question that it has sent."""
    following = await stack.enter_async_context(task.following())
    return following, await following.asked()


async def test_the_newest_result_request_carries_the_input_request(
    client: TaskClient,
) -> None:
    task = await _asking(client, "paint_sized")
    async with AsyncExitStack() as stack:
        one, two = [await _next(stack, task) for _ in range(2)]
        async with task.following() as three:
            third = await three.asked()
            assert [each["params"] for _, each in (one, two)] == [third["params"]] * 2
            await client.answer(third, RED)
            size = await three.asked()
            assert size["params"]["message"] == "How large?"
            await client.answer(size, accept(size=3))
            assert await three.text() == "it is red, size 3"
        for earlier, _ in (one, two):
            reply = await earlier.posted.done()
            assert reply.raw.count(b"elicitation/create") == 1
            assert b"it is red, size 3" in reply.raw
    assert did() == ["it red 3"]
    found = await in_database(
        lambda: list(Entry.objects.filter(target="paint_sized").values_list("action", flat=True))
    )
    assert found.count("question.asked") == found.count("answer.received") == 2, found


@pytest.mark.parametrize("earlier_first", [True, False])
async def test_only_the_first_response_counts_and_a_late_one_changes_nothing(
    client: TaskClient, earlier_first: bool
) -> None:
    task = await _asking(client)
    async with task.following() as one:
        first = await one.asked()
        async with task.following() as other:
            second = await other.asked()
            answers = [(second, BLUE), (first, RED)]
            for question, answer in reversed(answers) if earlier_first else answers:
                await client.answer(question, answer)
            text = await other.text()
            for question in (second, first):
                await client.answer(question, RED)
    assert text in ("it is blue", *(["it is red"] if earlier_first else []))
    assert await task.text() == text
    assert did() == [text.replace(" is", "")]


@pytest.mark.parametrize("how", ["cancelled", "dropped"])
async def test_the_input_request_of_a_cancelled_or_dropped_result_request_moves_to_the_next(
    client: TaskClient, how: str
) -> None:
    task = await _asking(client)
    async with task.following() as one:
        first = await one.asked()
        if how == "cancelled":
            await client.session.notify("notifications/cancelled", {"requestId": one.request})
            await one.posted.done()
    await one.posted.done()
    assert (await task.get())["status"] == "input_required"
    async with task.following() as other:
        second = await other.asked()
        assert second["params"] == first["params"]
        if how == "cancelled":
            await client.answer(first, BLUE)
            assert (await task.get())["status"] == "input_required"
        await client.answer(second, RED)
        assert await other.text() == "it is red"
    assert did() == ["it red"]


async def test_if_a_result_request_dies_before_streaming_an_earlier_one_sends_the_input_request(
    client: TaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_methods, "SENT_SECONDS", 0.1)
    monkeypatch.setattr(task_methods, "POLL_SECONDS", 0.2)
    task = await client.begin("paint_later")
    await happened("running")
    async with task.following() as earlier:
        await _carrier(task, None)
        await in_database(services.carry, UUID(hex=task.id), new_id())
        release()
        await client.answer(await earlier.asked(), RED)
        assert await earlier.text() == "it is red"


async def _carrier(task: Task, before: UUID | None) -> UUID | None:
    """Wait until another request carries the task's questions than before; return which."""
    async with asyncio.timeout(PATIENCE):
        while True:
            row = await in_database(selectors.find, UUID(hex=task.id))
            assert row is not None
            if row.carrier != before:
                return row.carrier
            await asyncio.sleep(0.005)  # between looks, as clients do


# --- several sessions ---


async def test_another_session_of_the_caller_takes_over_the_input_request(tasks: Cast) -> None:
    first, second = await client_of(tasks.owner), await client_of(tasks.owner)
    task = await _asking(first)
    async with task.following() as one, first.session.listening() as standing:
        asked = await one.asked()
        async with second.session.listening() as other_standing, task.following(second) as other:
            again = await other.asked()
            assert again["params"] == asked["params"]
            await second.answer(again, RED)
            assert await other.text() == "it is red"
            assert other_standing.unread == b""  # the task is of the other session
        _asks_nothing(standing)
    assert await task.text() == "it is red"
    assert did() == ["it red"]


async def test_a_response_from_another_session_or_caller_is_ignored(tasks: Cast) -> None:
    client, other = await client_of(tasks.owner), await client_of(tasks.owner)
    strangers = [await client_of(tasks.member), await client_of(tasks.stranger, "globex")]
    task = await _asking(client)
    async with task.following() as following:
        question = await following.asked()
        for each in (other, *strangers):
            await each.answer(question, BLUE)
        assert (await task.get())["status"] == "input_required"
        await client.answer(question, RED)
        assert await following.text() == "it is red"
    assert did() == ["it red"]


async def test_a_session_without_form_support_receives_no_form(tasks: Cast) -> None:
    client, unable = await client_of(tasks.owner), await client_of(tasks.owner, sampling={})
    task = await _asking(client)
    async with task.following(unable) as blind, unable.session.listening() as standing:
        async with task.following() as following:
            await client.answer(await following.asked(), RED)
            assert await following.text() == "it is red"
        assert b"elicitation" not in standing.reply.raw
        reply = await blind.posted.done()
        assert b"elicitation" not in reply.raw
        assert b"it is red" in reply.raw


async def test_when_the_asking_session_ends_the_input_request_moves_to_the_next(
    tasks: Cast,
) -> None:
    first, second = await client_of(tasks.owner), await client_of(tasks.owner)
    task = await _asking(first)
    async with task.following() as one:
        await one.asked()
        assert (await first.session.end()).status == 204
        await one.posted.done()
    seen = await second.known(task.id).get()
    assert seen["status"] == "input_required"
    async with task.following(second) as other:
        await second.answer(await other.asked(), RED)
        assert await other.text() == "it is red"
    assert did() == ["it red"]
