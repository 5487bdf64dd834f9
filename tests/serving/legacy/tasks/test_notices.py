"""Task notifications on the GET stream of the session that created the task."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.legacy import Posted
from tests.serving.legacy.tasks.client import RED, Task, TaskClient, client_of
from tests.serving.subscriptions.test_resources import publish_poem
from tests.serving.tasks.task_client import release
from tests.wire import RELATED_TASK

pytestmark = pytest.mark.django_db(transaction=True)

STATUS = "notifications/tasks/status"
PROGRESS = "notifications/progress"
MARK = "notifications/prompts/list_changed"


async def _told(stream: Posted, method: str = STATUS) -> Mapping[str, Any]:
    """The params of the next notification, which must have this method."""
    message = await stream.message()
    assert message["method"] == method, message
    params: Mapping[str, Any] = message.get("params", {})
    return params


async def _status(stream: Posted, task: Task) -> str:
    """The status in the next notification, which must be of this task, in a complete state."""
    seen = await _told(stream)
    assert "_meta" not in seen
    fixed = {name: task.handle[name] for name in ("taskId", "createdAt", "ttl", "pollInterval")}
    assert {name: seen[name] for name in fixed} == fixed
    assert seen["lastUpdatedAt"] >= seen["createdAt"]
    status: str = seen["status"]
    return status


async def _begun_with(client: TaskClient, token: str | int, tool: str, **arguments: Any) -> Task:
    """A task whose request has a progress token."""
    body = client.calling(tool, {}, **arguments)
    body["params"]["_meta"] = {"progressToken": token}
    return client.task_of(await client.session.send(body))


async def _nothing_but(cast: Cast, *streams: Posted) -> None:
    """These streams are told of a later change of a list, and of nothing before."""
    await in_database(publish_poem, cast.acme.id)
    for stream in streams:
        await _told(stream, MARK)


async def test_each_status_notification_contains_the_whole_task(
    tasks: Cast, client: TaskClient
) -> None:
    async with client.session.listening() as stream:
        task = await client.begin("paint")
        assert await _status(stream, task) == "input_required"
        async with task.following() as following:
            await client.answer(await following.asked(), RED)
            assert await following.text() == "it is red"
        last = await _status(stream, task)
        if last == "working":
            last = await _status(stream, task)
        assert last == "completed"
        await _nothing_but(tasks, stream)


async def test_progress_notifications_have_the_progress_token_of_the_request(
    tasks: Cast, client: TaskClient
) -> None:
    async with client.session.listening() as stream:
        task = await _begun_with(client, "bar", "progresses")
        assert await _told(stream, PROGRESS) == {
            "progressToken": "bar",
            "progress": 0.5,
            "message": "half",
            "_meta": {RELATED_TASK: {"taskId": task.id}},
        }
        assert await _status(stream, task) == "working"
        release()
        assert await _status(stream, task) == "completed"
        await _nothing_but(tasks, stream)


async def test_no_other_session_receives_notifications_of_the_task(
    tasks: Cast, client: TaskClient
) -> None:
    same = await client_of(tasks.owner)
    operator = await client_of(tasks.operator)
    stranger = await client_of(None, "commons")
    async with (
        client.session.listening() as stream,
        same.session.listening() as beside,
        operator.session.listening() as colleague,
        stranger.session.listening(),
    ):
        task = await _begun_with(client, "bar", "progresses")
        await _told(stream, PROGRESS)
        assert await _status(stream, task) == "working"
        release()
        assert await _status(stream, task) == "completed"
        await _nothing_but(tasks, stream, beside, colleague)
