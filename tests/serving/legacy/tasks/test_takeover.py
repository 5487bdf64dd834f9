"""A `tasks/result` whose process dies or stops: the task's input request is not lost."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F

from mcphost.calls.models import StreamedCall
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from tests.serving.legacy.callers import true
from tests.serving.legacy.tasks.client import RED, Task, TaskClient
from tests.serving.tasks.task_client import did, happened, release

pytestmark = pytest.mark.django_db(transaction=True)


async def _asking(client: TaskClient) -> Task:
    task = await client.begin("paint")
    await task.reaches("input_required")
    return task


async def _its_process_dies() -> None:
    """Simulate the death of the process of the only call under way."""
    (call,) = calls.under_way
    call.outgoing.abandon()
    call._give_up()
    await true(lambda: call not in calls.under_way)
    row = StreamedCall.objects.filter(id=call.outgoing.stored.owner.id)
    before = F("taken_at") - timedelta(hours=1)
    await in_database(lambda: row.update(owner=uuid4(), taken_at=before))


async def test_a_response_continues_the_task_after_its_process_died(client: TaskClient) -> None:
    task = await _asking(client)
    async with task.following() as following:
        question = await following.asked()
        await _its_process_dies()
    await following.posted.done()
    assert (await task.get())["status"] == "input_required"
    await client.answer(question, RED)
    assert (await task.ended())["status"] == "completed"
    last = following.posted.last_id
    async with client.session.begun(b"", "GET", last_event_id=last) as again:
        assert task.text_of(await again.message()) == "it is red"
    assert did() == ["it red"]


async def test_the_next_result_request_carries_the_input_request_of_a_dead_process(
    client: TaskClient,
) -> None:
    task = await _asking(client)
    async with task.following() as one:
        first = await one.asked()
        await _its_process_dies()
    await one.posted.done()
    async with task.following() as other:
        second = await other.asked()
        assert second["params"] == first["params"]
        await client.answer(first, {"action": "decline"})
        assert (await task.get())["status"] == "input_required"
        await client.answer(second, RED)
        assert await other.text() == "it is red"
    assert did() == ["it red"]


async def test_a_result_stream_taken_over_later_does_not_repeat_the_input_request(
    client: TaskClient,
) -> None:
    task = await _asking(client)
    async with task.following() as one:
        await one.asked()
        await _its_process_dies()
    await one.posted.done()
    last = one.posted.last_id
    async with task.following() as other:
        question = await other.asked()
        async with client.session.begun(b"", "GET", last_event_id=last) as again:
            await true(lambda: len(calls.under_way) == 2)
            await client.answer(question, RED)
            assert await other.text() == "it is red"
            assert (await again.message())["method"] == "notifications/cancelled"
            assert task.text_of(await again.message()) == "it is red"
        assert b"elicitation" not in again.reply.raw
    assert did() == ["it red"]


# --- a process that stops ---


async def test_a_result_request_with_an_input_request_is_released_when_its_process_stops(
    client: TaskClient,
) -> None:
    task = await _asking(client)
    async with task.following() as following:
        question = await following.asked()
        shutdown.begin()
        await following.posted.done()
    shutdown.reset()
    last = following.posted.last_id
    async with client.session.begun(b"", "GET", last_event_id=last) as again:
        await client.answer(question, RED)
        assert task.text_of(await again.message()) == "it is red"
    assert did() == ["it red"]


async def test_a_waiting_result_request_does_not_delay_the_shutdown_of_its_process(
    client: TaskClient,
) -> None:
    task = await client.begin("hangs")
    await happened("running")
    async with task.following() as following:
        assert (await task.get())["status"] == "working"
        shutdown.begin()
        reply = await following.posted.done()
        assert b'"result"' not in reply.raw
    shutdown.reset()
    release()
    assert await task.text() == "hangs"
