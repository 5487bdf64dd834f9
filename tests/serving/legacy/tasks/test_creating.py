"""What a session is told of tasks, and calls that become tasks (spec: basic/utilities/tasks)."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from mcphost.serving.database import in_database
from mcphost.tasks.models import Task as TaskRows
from tests.cast import Cast
from tests.legacy import calling
from tests.serving.legacy.callers import true
from tests.serving.legacy.processes import Processes, processes
from tests.serving.legacy.tasks.client import OF_TASKS, TaskClient, client_of, refused
from tests.serving.tasks.following import Follower, did, full, happened, release
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
    *(None, [], "a", 5, True),
    *(
        {"ttl": None},
        {"ttl": 0},
        {"ttl": "a"},
        {"ttl": -1},
        {"ttl": True},
        {"ttl": []},
        {"ttl": {}},
        {"ttl": "1000"},
    ),
)


# --- what is declared ---


@pytest.mark.requirement("session-tasks.declared")
async def test_the_server_declares_what_it_can_do_with_tasks(client: TaskClient) -> None:
    assert client.session.server["capabilities"]["tasks"] == {
        "list": {},
        "cancel": {},
        "requests": {"tools": {"call": {}}},
    }


@pytest.mark.parametrize("revision", EARLIER)
async def test_an_earlier_revision_has_no_tasks(tasks: Cast, revision: str) -> None:
    newer = await client_of(tasks.owner)
    task = await newer.begin("always", text="a")
    await task.ended()
    older = await client_of(tasks.owner, revision=revision)
    assert "tasks" not in older.session.server["capabilities"]
    for method in OF_TASKS:
        refused(await older.ask(method, taskId=task.id), -32601)
    refused(await older.ask("tasks/list"), -32601)
    assert (await newer.listed()) == {task.id}


@pytest.mark.parametrize("revision", SESSION_BASED)
async def test_the_methods_of_the_extension_are_no_methods_of_a_session(
    tasks: Cast, revision: str
) -> None:
    client = await client_of(tasks.owner, revision=revision)
    refused(await client.ask("tasks/update", taskId="a", inputResponses={}), -32601)


@pytest.mark.parametrize("revision", EARLIER)
@pytest.mark.requirement("session-tasks.undeclared")
async def test_an_earlier_revision_ignores_that_a_task_is_wanted(
    tasks: Cast, revision: str
) -> None:
    client = await client_of(tasks.owner, revision=revision)
    for tool in ("never", "always"):
        assert (await client.call(tool, {"ttl": 1000}, text=tool)).text == tool
    assert await (await client_of(tasks.owner)).listed() == set()


async def test_tools_say_whether_they_can_be_called_as_tasks(client: TaskClient) -> None:
    tools = (await client.ask("tools/list")).result["tools"]
    support = {one["name"]: one.get("execution", {}).get("taskSupport") for one in tools}
    found = {name: support[name] or "forbidden" for name in SUPPORT}
    assert found == SUPPORT


@pytest.mark.parametrize("revision", EARLIER)
async def test_tools_say_nothing_of_tasks_on_an_earlier_revision(
    tasks: Cast, revision: str
) -> None:
    client = await client_of(tasks.owner, revision=revision)
    tools = (await client.ask("tools/list")).result["tools"]
    assert tools
    assert [one["name"] for one in tools if "execution" in one] == []


# --- calls as tasks ---


@pytest.mark.parametrize("tool", ["quick", "always", "required"])
@pytest.mark.requirement("session-tasks.created")
async def test_a_call_as_a_task_is_answered_with_the_task_and_runs(
    client: TaskClient, tool: str
) -> None:
    task = await client.begin(tool, text="hello")
    assert task.handle["status"] == "working"
    assert task.handle["createdAt"] <= task.handle["lastUpdatedAt"]
    assert task.handle["pollInterval"] > 0
    assert await task.text() == "hello"
    assert did() == ["hello"]


async def test_the_task_is_there_before_it_is_answered(client: TaskClient) -> None:
    task = await client.begin("hangs")
    assert (await task.get())["status"] == "working"
    assert await client.listed() == {task.id}
    await happened("running")
    release()
    assert await task.text() == "hangs"


@pytest.mark.requirement("session-tasks.ids")
async def test_ids_differ_and_cannot_be_guessed(client: TaskClient) -> None:
    ids = {(await client.begin("always", text="a")).id for _ in range(5)}
    assert len(ids) == 5
    assert {len(id) for id in ids} == {32}
    assert len({id[:8] for id in ids}) == 5


@pytest.mark.parametrize("asked", [1, 1000, 60_000])
async def test_a_shorter_time_to_live_is_granted(client: TaskClient, asked: int) -> None:
    task = client.task_of(await client.call("hangs", {"ttl": asked}))
    assert 0 < task.handle["ttl"] <= asked


@pytest.mark.requirement("session-tasks.ttl")
async def test_a_longer_time_to_live_is_cut_to_the_servers(
    client: TaskClient, settings: Settings
) -> None:
    settings.MCPHOST_TASK_SECONDS = 300
    wanted = 10**12
    task = client.task_of(await client.call("always", {"ttl": wanted}, text="a"))
    assert task.handle["ttl"] == 300_000
    task = client.task_of(await client.call("always", {}, text="a"))
    assert task.handle["ttl"] == 300_000
    assert (await task.ended())["ttl"] == 300_000


@pytest.mark.requirement("session-tasks.expired")
async def test_a_task_is_gone_when_its_time_is_over(client: TaskClient) -> None:
    task = client.task_of(await client.call("hangs", {"ttl": 50}))
    await true(lambda: not TaskRows.objects.filter(id=task.id, expires_at__gt=Now()).exists())
    refused(await client.ask("tasks/get", taskId=task.id), -32602)
    assert await client.listed() == set()


@pytest.mark.parametrize("ttl", [b"1e400", b"1" + b"0" * 400, b"18446744073709551615", b"1e308"])
async def test_a_time_to_live_without_measure_is_cut_or_refused(
    client: TaskClient, ttl: bytes
) -> None:
    body = orjson.dumps(client.calling("always", {"ttl": 7}, text="a"))
    last = (await client.session.send(body.replace(b'"ttl":7', b'"ttl":' + ttl))).last
    if "error" in last:
        assert last["error"]["code"] in (-32602, -32700)
    else:
        assert last["result"]["task"]["ttl"] == 86_400_000


@pytest.mark.parametrize(("asked", "granted"), [(60_000.5, 60_000), (60_000.9999, 60_000)])
async def test_a_fraction_of_a_millisecond_is_cut(
    client: TaskClient, asked: float, granted: int
) -> None:
    task = client.task_of(await client.call("hangs", {"ttl": asked}))
    assert task.handle["ttl"] == granted
    assert (await task.get())["ttl"] == granted


async def test_less_than_a_millisecond_is_one(client: TaskClient) -> None:
    task = client.task_of(await client.call("hangs", {"ttl": 0.5}))
    assert task.handle["ttl"] == 1
    await true(lambda: not TaskRows.objects.filter(id=task.id, expires_at__gt=Now()).exists())
    refused(await client.ask("tasks/get", taskId=task.id), -32602)


async def test_other_members_of_the_params_are_ignored(client: TaskClient) -> None:
    reply = await client.call("always", {"ttl": 60_000, "more": [1]}, text="a")
    assert await client.task_of(reply).text() == "a"


# --- calls that are refused ---


@pytest.mark.requirement("session-tasks.forbidden")
async def test_a_tool_that_is_never_a_task_cannot_be_called_as_one(client: TaskClient) -> None:
    refused(await client.call("never", {}, text="a"), -32601)
    refused(await client.call("never", {"ttl": 1000}, text="a"), -32601)
    assert did() == []
    assert await client.listed() == set()
    assert (await client.call("never", text="a")).text == "a"


@pytest.mark.requirement("session-tasks.required")
async def test_a_tool_that_is_always_a_task_cannot_be_called_otherwise(client: TaskClient) -> None:
    reply = refused(await client.call("required", text="a"), -32601)
    assert "task" in reply.error["message"]
    assert did() == []
    assert await client.listed() == set()


async def test_an_earlier_revision_cannot_call_a_tool_that_is_always_a_task(tasks: Cast) -> None:
    for revision in EARLIER:
        client = await client_of(tasks.owner, revision=revision)
        refused(await client.call("required", text="a"), -32601)
        refused(await client.call("required", {}, text="a"), -32601)
    assert did() == []


@pytest.mark.parametrize("task", WRONG)
@pytest.mark.parametrize("tool", ["always", "required", "quick"])
async def test_a_wrong_shape_is_refused(client: TaskClient, tool: str, task: Any) -> None:
    params = {"name": tool, "arguments": {"text": "a"}, "task": task}
    refused(await client.ask("tools/call", **params), -32602)
    assert did() == []
    assert await client.listed() == set()


async def test_an_unknown_tool_is_unknown_as_a_task_too(client: TaskClient) -> None:
    refused(await client.call("no_such_tool", {}), -32602)
    assert await client.listed() == set()


async def test_too_many_tasks_are_refused(client: TaskClient, settings: Settings) -> None:
    settings.MCPHOST_TASKS_PER_CALLER = 2
    held = [await client.begin("hangs") for _ in range(2)]
    reply = await client.call("hangs", {})
    assert "error" in reply.last
    assert await client.listed() == {task.id for task in held}
    await held[0].cancel()
    await (await client.begin("always", text="a")).ended()


# --- the same tools without a task ---


@pytest.mark.parametrize("tool", ["quick", "always"])
async def test_a_plain_call_is_answered_in_its_request(client: TaskClient, tool: str) -> None:
    reply = await client.call(tool, text="hello")
    assert reply.text == "hello"
    assert RELATED_TASK not in reply.result.get("_meta", {})
    assert await client.listed() == set()


@pytest.mark.parametrize("revision", SESSION_BASED)
async def test_a_plain_call_that_is_slow_stays_in_its_request(
    tasks: Cast, settings: Settings, revision: str
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    client = await client_of(tasks.owner, revision=revision)
    body = calling("slow", id="slow")
    async with client.session.begun(body) as stream:
        await happened("running")
        current = await client_of(tasks.owner)
        task = await current.begin("slow")
        assert await current.listed() == {task.id}
        release()
        assert (await stream.done()).check().text == "slow"
    assert await task.text() == "slow"


@pytest.mark.parametrize("tool", ["paint", "paint_later", "defers"])
async def test_a_plain_call_asks_on_its_own_stream(client: TaskClient, tool: str) -> None:
    release()
    async with client.session.begun(client.calling(tool)) as stream:
        question = await stream.message()
        while question["method"].startswith("notifications/"):
            question = await stream.message()
        assert question["method"] == "elicitation/create"
        assert RELATED_TASK not in question["params"].get("_meta", {})
        assert await client.listed() == set()
        await client.answer(question, {"action": "accept", "content": {"colour": "red"}})
        assert "red" in (await stream.message())["result"]["content"][0]["text"]


async def test_a_call_that_is_to_be_a_task_takes_no_place(tasks: Cast, client: TaskClient) -> None:
    async with full(tasks, Follower(tasks.owner.mcp_token)):
        task = await client.begin("quick", text="hello")
        assert (await client.call("quick", text="refused")).error["data"]["retryAfter"] > 0
        assert (await task.ended())["status"] == "completed"
    assert did() == ["slow began", "hello", "slow ended"]


@pytest.mark.parametrize("tool", ["always", "quick"])
async def test_a_task_is_created_by_a_process_without_its_code(
    client: TaskClient, processes: Processes, tool: str
) -> None:
    await in_database(processes.only_the_other_has, f"tasks.{tool}")
    task = await client.begin(tool, text="a")
    assert await in_database(TaskRows.objects.filter(id=task.id).exists)
