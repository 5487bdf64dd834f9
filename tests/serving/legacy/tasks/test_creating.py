"""Declared task support in sessions, and calls that become tasks (spec: basic/utilities/tasks)."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from mcphost.serving.database import in_database
from mcphost.tasks.models import Task as TaskRows
from tests.cast import Cast
from tests.serving.legacy.callers import true
from tests.serving.legacy.processes import Processes, processes
from tests.serving.legacy.tasks.client import OF_TASKS, RED, Task, TaskClient, client_of, refused
from tests.serving.tasks.task_client import Follower, did, full, release
from tests.wire import RELATED_TASK, SESSION_BASED

__all__ = ["processes"]

pytestmark = pytest.mark.django_db(transaction=True)

EARLIER = SESSION_BASED[:-1]
SUPPORT = {
    "never": "forbidden",
    "quick": "optional",
    "slow": "optional",
    "always": "optional",
    "required": "required",
}
WRONG: Sequence[Any] = (
    *([1], "a", 5, True),
    *({"ttl": ttl} for ttl in (0, "a", -1, True, [], {}, "1000")),
)


# --- what is declared ---


@pytest.mark.requirement("session-tasks.declared")
async def test_the_server_and_its_tools_declare_their_task_support(client: TaskClient) -> None:
    assert client.session.server["capabilities"]["tasks"] == {
        "list": {},
        "cancel": {},
        "requests": {"tools": {"call": {}}},
    }
    tools = (await client.ask("tools/list")).result["tools"]
    support = {one["name"]: one.get("execution", {}).get("taskSupport") for one in tools}
    assert {name: support[name] or "forbidden" for name in SUPPORT} == SUPPORT


@pytest.mark.parametrize("revision", EARLIER)
@pytest.mark.requirement("session-tasks.undeclared")
async def test_an_earlier_revision_has_no_tasks_and_ignores_the_task_parameter(
    tasks: Cast, revision: str
) -> None:
    newer = await client_of(tasks.owner)
    task = await newer.begin("always", text="a")
    await task.ended()
    older = await client_of(tasks.owner, revision=revision)
    assert "tasks" not in older.session.server["capabilities"]
    for method in (*OF_TASKS, "tasks/update"):
        refused(await older.ask(method, taskId=task.id), -32601)
    refused(await older.ask("tasks/list"), -32601)
    tools = (await older.ask("tools/list")).result["tools"]
    assert tools
    assert [one["name"] for one in tools if "execution" in one] == []
    for tool in ("never", "always"):
        assert (await older.call(tool, {"ttl": 1000}, text=tool)).text == tool
    did().clear()
    refused(await older.call("required", text="a"), -32601)
    refused(await older.call("required", {}, text="a"), -32601)
    assert did() == []
    assert (await newer.listed()) == {task.id}


# --- calls as tasks ---


@pytest.mark.requirement("session-tasks.created", "session-tasks.ids")
async def test_a_call_with_the_task_parameter_returns_the_task_and_runs(client: TaskClient) -> None:
    ids = set()
    for tool in ("quick", "always", "required"):
        task = client.task_of(await client.call(tool, {"ttl": 60_000, "more": [1]}, text="hello"))
        ids.add(task.id)
        assert task.handle["status"] == "working"
        assert task.handle["createdAt"] <= task.handle["lastUpdatedAt"]
        assert task.handle["pollInterval"] > 0
        assert await task.text() == "hello"
    assert did() == ["hello"] * 3
    assert {len(id) for id in ids} == {32}
    assert len({id[:8] for id in ids}) == 3, "they cannot be guessed from one another"
    hanging = await client.begin("hangs")
    assert (await hanging.get())["status"] == "working"
    assert await client.listed() == {*ids, hanging.id}, "it is there before it is answered"


async def _is_gone(client: TaskClient, task: Task) -> None:
    """Wait until the time of the task is over: it is unknown then."""
    await true(lambda: not TaskRows.objects.filter(id=task.id, expires_at__gt=Now()).exists())
    refused(await client.ask("tasks/get", taskId=task.id), -32602)


@pytest.mark.requirement("session-tasks.ttl", "session-tasks.expired")
async def test_the_ttl_is_granted_in_whole_milliseconds_up_to_the_servers_limit(
    client: TaskClient, settings: Settings
) -> None:
    settings.MCPHOST_TASK_SECONDS = 300
    for asked, granted in (
        (1000, 1000),
        (60_000, 60_000),
        (60_000.5, 60_000),
        (60_000.9999, 60_000),
        (10**12, 300_000),
        (None, 300_000),
    ):
        wanted = {} if asked is None else {"ttl": asked}
        task = client.task_of(await client.call("hangs", wanted))
        assert task.handle["ttl"] == (await task.get())["ttl"] == granted, asked
        await task.cancel()
    before = await client.listed()
    for short in (0.5, 1, 50):
        task = client.task_of(await client.call("hangs", {"ttl": short}))
        assert task.handle["ttl"] == max(short, 1)
        await _is_gone(client, task)
    assert await client.listed() == before


# --- calls that are refused ---


@pytest.mark.requirement("session-tasks.forbidden", "session-tasks.required")
async def test_requests_that_do_not_fit_the_tools_task_support_are_refused(
    client: TaskClient,
) -> None:
    for task in ({}, {"ttl": 1000}):
        refused(await client.call("never", task, text="a"), -32601)
    reply = refused(await client.call("required", text="a"), -32601)
    assert "task" in reply.error["message"]
    refused(await client.call("no_such_tool", {}), -32602)
    refused(await client.ask("tasks/update", taskId="a", inputResponses={}), -32601)
    for tool in ("always", "required", "quick"):
        for wrong in WRONG:
            params = {"name": tool, "arguments": {"text": "a"}, "task": wrong}
            refused(await client.ask("tools/call", **params), -32602)
    assert did() == []
    assert await client.listed() == set()
    assert (await client.call("never", text="a")).text == "a"


async def test_too_many_tasks_are_refused(client: TaskClient, settings: Settings) -> None:
    settings.MCPHOST_TASKS_PER_CALLER = 2
    held = [await client.begin("hangs") for _ in range(2)]
    reply = await client.call("hangs", {})
    assert "error" in reply.last
    assert await client.listed() == {task.id for task in held}
    await held[0].cancel()
    await (await client.begin("always", text="a")).ended()


# --- the same tools without a task ---


@pytest.mark.requirement("session-tasks.related")
async def test_a_plain_call_requests_input_on_its_own_stream_and_returns_its_result(
    client: TaskClient,
) -> None:
    for tool in ("quick", "always"):
        reply = await client.call(tool, text="hello")
        assert reply.text == "hello"
        assert RELATED_TASK not in reply.result.get("_meta", {})
    release()
    for tool in ("paint", "paint_later", "defers"):
        async with client.session.begun(client.calling(tool)) as stream:
            question = await stream.message()
            while question["method"].startswith("notifications/"):
                question = await stream.message()
            assert question["method"] == "elicitation/create"
            assert RELATED_TASK not in question["params"].get("_meta", {})
            await client.answer(question, RED)
            result = (await stream.message())["result"]
            assert RELATED_TASK not in result.get("_meta", {})
            assert "red" in result["content"][0]["text"]
    assert await client.listed() == set()


async def test_a_call_with_the_task_parameter_uses_no_call_slot(
    tasks: Cast, client: TaskClient
) -> None:
    async with full(tasks, Follower(tasks.owner.mcp_token)):
        task = await client.begin("quick", text="hello")
        assert (await client.call("quick", text="refused")).error["data"]["retryAfter"] > 0
        assert (await task.ended())["status"] == "completed"
    assert did() == ["slow began", "hello", "slow ended"]


async def test_a_process_without_the_code_can_create_a_task(
    client: TaskClient, processes: Processes
) -> None:
    await in_database(processes.only_the_other_has, "tasks.always", "tasks.quick")
    for tool in ("always", "quick"):
        task = await client.begin(tool, text="a")
        assert await in_database(TaskRows.objects.filter(id=task.id).exists)
