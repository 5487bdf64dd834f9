"""What the GET stream of a session says of the tasks that the session made."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from mcphost.protocol.legacy.tasks import TaskProgress
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.database import in_database
from mcphost.serving.execution import stored_tasks
from mcphost.serving.execution.held_task import HeldTask
from mcphost.tasks import selectors
from mcphost.tasks.changes import TaskOwner
from tests.cast import Cast
from tests.legacy import Posted
from tests.serving.legacy.tasks.client import RED, Task, TaskClient, client_of
from tests.serving.subscriptions.test_resources import publish_poem
from tests.serving.tasks.following import happened, release
from tests.tasks.rows import a_task
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


async def test_each_state_of_a_task_is_sent_whole(tasks: Cast, client: TaskClient) -> None:
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


async def test_a_notification_says_what_tasks_get_returns(client: TaskClient) -> None:
    async with client.session.listening() as stream:
        task = await client.begin("refuses")
        seen = await _told(stream)
        assert seen == await task.get()
        assert seen["status"] == "failed"
        other = await client.begin("hangs")
        cancelled = await other.cancel()
        assert await _told(stream) == cancelled


async def test_a_status_message_is_sent(client: TaskClient) -> None:
    async with client.session.listening() as stream:
        task = await client.begin("progresses")
        seen = await _told(stream)
        assert (seen["status"], seen["statusMessage"]) == ("working", "half")
        release()
        assert await _status(stream, task) == "completed"


async def test_progress_is_sent_with_the_token_of_the_request(
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


async def test_progress_rises_through_all_rounds(client: TaskClient) -> None:
    async with client.session.listening() as stream:
        task = await _begun_with(client, 7, "progresses_and_asks")
        first = await _told(stream, PROGRESS)
        assert (first["progressToken"], first["progress"], first["total"]) == (7, 1, 4)
        assert await _status(stream, task) == "input_required"
        async with task.following() as following:
            await client.answer(await following.asked(), RED)
            await following.text()
        sent = [await stream.message()]
        while sent[-1]["params"].get("status") != "completed":
            sent.append(await stream.message())
        risen = [one["params"]["progress"] for one in sent if one["method"] == PROGRESS]
        assert risen in ([], [3])  # none if the task had ended before it was read


async def test_only_the_newest_stream_of_the_session_is_told(
    tasks: Cast, client: TaskClient
) -> None:
    async with client.session.listening() as older:
        async with client.session.listening() as newer:
            task = await _begun_with(client, "bar", "progresses")
            await _told(newer, PROGRESS)
            assert await _status(newer, task) == "working"
            await _nothing_but(tasks, newer)
        release()
        assert await _status(older, task) == "completed"


async def test_no_other_session_is_told(tasks: Cast, client: TaskClient) -> None:
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


async def test_a_session_of_an_anonymous_caller_is_told_of_its_own_tasks_only(
    tasks: Cast,
) -> None:
    first, second = await client_of(None, "commons"), await client_of(None, "commons")
    async with first.session.listening() as one, second.session.listening() as two:
        task = await first.begin("quick", text="a")
        assert await _status(one, task) == "completed"
        other = await second.begin("quick", text="b")
        assert await _status(two, other) == "completed"


async def test_without_a_stream_nothing_is_kept_for_a_later_one(
    tasks: Cast, client: TaskClient
) -> None:
    await (await client.begin("always", text="a")).ended()
    async with client.session.listening() as stream:
        task = await client.begin("hangs")
        await happened("running")
        release()
        assert await _status(stream, task) == "completed"
        await _nothing_but(tasks, stream)


@pytest.mark.parametrize(("reported", "kept"), [((3, 2), None), ((6, 5.5), 6), ((5,), None)])
async def test_a_round_that_runs_again_stores_no_progress_below_that_of_before(
    tasks: Cast, client: TaskClient, reported: tuple[float, ...], kept: float | None
) -> None:
    await (await client.begin("always", text="a")).ended()  # the tenant's keys are there
    owner = uuid4()
    row = await in_database(lambda: a_task(tasks.acme.id, owner=owner, message=""))
    taking = TaskOwner(row.id, tasks.acme.id, owner, 1)
    caller = Principal(PrincipalKind.ANONYMOUS, tasks.acme.id)
    before = TaskProgress("bar", 5, None, None)
    held = HeldTask(row.call, caller, taking, row.expires_at.timestamp(), progress=before)
    for progress in reported:
        held.describe(None, TaskProgress("bar", progress, None, None))
    held.describe("later")
    await held.keep(_journal)
    found = await in_database(selectors.find, row.id)
    assert found is not None
    assert found.journal == "journal"
    stored = await stored_tasks.progress(found)
    assert (None if stored is None else stored.progress) == kept


async def _journal() -> str:
    return "journal"
