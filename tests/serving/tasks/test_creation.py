"""Which calls become tasks, their handles, and how they end (extension of tasks: "Task Creation")."""

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_FINISHED, Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, writer
from mcphost.serving.execution import rounds
from mcphost.tasks.models import Task as TaskModel
from mcphost.tasks.states import TaskState
from tests.cast import Cast
from tests.mcp import Reply, begun, send
from tests.rounds.conftest import module
from tests.serving.legacy.callers import PATIENCE, true
from tests.serving.tasks.task_client import (
    ABLE,
    EXTENSION,
    RED,
    TERMINAL,
    Follower,
    Task,
    accept,
    did,
    done,
    handle,
    happened,
    own,
    release,
    unable,
)
from tests.wire import check_type

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = {"name": accept(name="Alice")}
SPARE = ("task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval")


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _time(text: str) -> datetime:
    read = datetime.fromisoformat(text)
    assert read.tzinfo is not None
    return read


@pytest.mark.requirement("tasks.declared", "tasks.required")
async def test_the_extension_of_each_request_decides_whether_the_call_becomes_a_task(
    owner: Follower,
) -> None:
    plain = owner.unable()
    for tool in ("never", "quick"):
        for follower in (owner, plain):
            assert done(await follower.call(tool, text=tool)) == tool
    for tool in ("always", "reads", "required"):
        task = await owner.begin(tool, text=tool)
        assert await task.text() == tool
    for tool in ("always", "reads"):
        assert done(await plain.call(tool, text="plain")) == "plain"
    ran = [*("never", "quick") * 2, "always", "reads", "required", "plain", "plain"]
    assert sorted(did()) == sorted(ran)
    unable(await plain.call("required", text="hello"))
    assert len(did()) == len(ran)
    handle(await owner.call("always", text="three"))


@pytest.mark.requirement("tasks.named")
async def test_the_server_declares_the_extension_and_has_no_earlier_methods(
    owner: Follower,
) -> None:
    capabilities = (await owner.send("server/discover", {})).result["capabilities"]
    assert capabilities["extensions"][EXTENSION] == {}
    assert "tasks" not in capabilities
    task = await owner.begin("always", text="a")
    for method in ("tasks/result", "tasks/list"):
        reply = await owner.send(method, {"taskId": task.id})
        assert (reply.status, reply.error["code"]) == (404, -32601)


@pytest.mark.requirement("tasks.result-type")
async def test_a_handle_contains_exactly_the_fields_a_client_needs(owner: Follower) -> None:
    given = (await owner.begin("hangs")).handle
    assert given["status"] == "working"
    assert re.fullmatch(r"[!-~]{22,}", given["taskId"])
    assert _time(given["createdAt"]) <= _time(given["lastUpdatedAt"])
    assert given["ttlMs"] is None or given["ttlMs"] > 0
    assert given["pollIntervalMs"] > 0
    assert not given.keys() & set(SPARE)


@pytest.mark.requirement("tasks.unguessable", "tasks.durable")
async def test_a_task_exists_with_its_handle_under_an_unguessable_id(
    owner: Follower,
) -> None:
    ids = []
    for tool in ("hangs", "paint", "needs_sampling"):
        task = await owner.begin(tool)
        ids.append(task.id)
        seen = await task.get()
        assert seen["taskId"] == task.id
        assert seen["createdAt"] == task.handle["createdAt"]
        assert not seen.keys() & {"requestState", "task"}
    assert len({id[:10] for id in ids}) == len({id[-10:] for id in ids}) == 3


@pytest.mark.requirement("tasks.completed")
async def test_the_result_of_a_task_equals_that_of_the_plain_call(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_RESULT_LIMIT = 10_000
    for tool, arguments in (
        ("always", {"text": "hello"}),
        ("counts", {"text": "hello"}),
        ("refuses", {}),
        ("crashes", {}),
        ("large", {"size": 20_000}),
    ):
        plain = await owner.unable().call(tool, **arguments)
        seen = await (await owner.begin(tool, **arguments)).ended()
        assert seen["status"] == "completed"
        assert own(seen["result"]) == own(plain.result)
        assert seen["result"].get("isError", False) == (tool not in ("always", "counts"))
        assert "error" not in seen
        check_type("CallToolResult", seen["result"])
        assert "canary" not in str(seen)


@pytest.mark.requirement("tasks.failed")
async def test_a_protocol_error_makes_the_task_failed(owner: Follower) -> None:
    plain = await owner.unable().call("needs_sampling")
    seen = await (await owner.begin("needs_sampling")).ended()
    assert seen["status"] == "failed"
    assert seen["error"] == plain.error
    assert seen["error"]["code"] == -32021
    assert seen["statusMessage"]
    assert "result" not in seen


def _creates(condition: Condition) -> bool:
    return condition.change.name == "task_create"


@pytest.fixture
def no_task_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit of each new task is lost."""
    submit = writer.submit_if

    def losing(condition: Condition, records: Sequence[Record] = ()) -> "asyncio.Future[bool]":
        if not _creates(condition):
            return submit(condition, records)
        lost: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        lost.set_exception(RecordLostError("the database is away"))
        return lost

    monkeypatch.setattr(writer, "submit_if", losing)


@pytest.mark.usefixtures("no_task_recorded")
async def test_a_task_that_cannot_be_recorded_is_refused_and_has_not_run(owner: Follower) -> None:
    error = (await owner.call("paint", what="the door")).error
    assert error["code"] == -32603
    assert error["message"] == "The call could not be recorded as a task, and has not run"
    assert (await owner.call("no_such_tool")).error["code"] == -32602


# A call that asks first, and becomes a task once it has the answer.


async def _answered(follower: Follower, tool: str = "registers") -> tuple[dict[str, Any], Reply]:
    """The second request of `registers`, and its reply."""
    first = await follower.call(tool)
    assert first.result["resultType"] == "input_required"
    assert "taskId" not in first.result
    assert set(first.result["inputRequests"]) == {"name"}
    params = {"name": tool, "arguments": {}, "inputResponses": ALICE}
    state = {"requestState": first.result["requestState"]}
    body = follower.message("tools/call", {**params, **state})
    return body, await send(follower.tenant, body, follower.token)


@pytest.mark.requirement("tasks.asked-before")
async def test_an_answered_call_becomes_a_task_and_a_repeated_request_gets_its_handle(
    owner: Follower,
) -> None:
    body, reply = await _answered(owner)
    task = Task(owner, handle(reply))
    assert not task.handle.keys() & {"requestState", "inputRequests"}
    await happened("running")
    seen = await task.get()
    assert not seen.keys() & {"requestState", "inputRequests"}
    assert handle(await send("acme", body, owner.token))["taskId"] == task.id
    release()
    assert await task.text() == "Alice registers"
    late = await send("acme", {**body, "id": 2}, owner.token)
    assert handle(late)["taskId"] == task.id
    assert did() == ["registers began", "registers ended"]


@pytest.mark.usefixtures("no_task_recorded")
async def test_an_answered_call_that_cannot_be_recorded_as_a_task_is_refused(
    owner: Follower,
) -> None:
    _, reply = await _answered(owner)
    assert reply.error["code"] == -32603
    assert reply.error["message"] == "The tool has run, but its result could not be recorded"


async def test_a_repeated_request_gets_the_handle_of_its_task_even_without_claims(
    owner: Follower,
) -> None:
    body, reply = await _answered(owner, "looks_up")
    for number in (2, 3):
        again = await send("acme", {**body, "id": number}, owner.token)
        assert handle(again)["taskId"] == handle(reply)["taskId"]
    release()
    assert await Task(owner, handle(reply)).text() == "Alice registers"


async def test_a_task_whose_creation_is_in_doubt_is_cancelled(
    owner: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit takes hold, and its connection is lost before that is known."""
    submit = writer.submit_if

    def losing(condition: Condition, records: Sequence[Record] = ()) -> "asyncio.Future[bool]":
        commit = submit(condition, records)
        return asyncio.ensure_future(lost(commit)) if _creates(condition) else commit

    async def lost(commit: "asyncio.Future[bool]") -> bool:
        await commit
        raise RecordLostError("the connection was lost")

    monkeypatch.setattr(writer, "submit_if", losing)
    assert (await owner.call("paint", what="the door")).error["code"] == -32603
    await true(lambda: TaskModel.objects.get().state == TaskState.CANCELLED)


async def test_concurrent_equal_requests_create_one_task(owner: Follower) -> None:
    first = await owner.call("registers")
    state = first.result["requestState"]
    params = {"name": "registers", "arguments": {}, "inputResponses": ALICE, "requestState": state}
    body = owner.message("tools/call", params)
    replies = await asyncio.gather(*(send("acme", body, owner.token) for _ in range(5)))
    assert len({handle(reply)["taskId"] for reply in replies}) == 1
    release()
    assert await Task(owner, handle(replies[0])).text() == "Alice registers"
    assert did() == ["registers began", "registers ended"]


async def test_a_tool_that_becomes_a_task_at_once_requests_input_in_the_task(
    owner: Follower,
) -> None:
    for tool in ("defers", "defers_in_a_thread"):
        task = await owner.begin(tool)
        await task.asked("colour")
        await task.update(RED)
        assert await task.text() == "red"


# A call that turns out slow.


async def test_a_slow_call_becomes_a_task_that_a_disconnect_does_not_cancel_or_restart(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    body = owner.message("tools/call", {"name": "slow", "arguments": {}})
    async with begun("acme", body, owner.token) as exchange:
        task = Task(owner, handle(await exchange.done()))
        exchange.hang_up()
    assert not module("tasks").cancelled.is_set()
    assert did() == ["slow began"]
    assert (await task.get())["status"] == "working"
    release()
    assert await task.text() == "slow"
    assert did() == ["slow began", "slow ended"]


async def test_a_disconnect_before_the_call_becomes_a_task_cancels_it(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 60
    body = owner.message("tools/call", {"name": "slow", "arguments": {}})
    async with begun("acme", body, owner.token) as exchange:
        await happened("running")
        exchange.hang_up()
        await happened("cancelled")
    assert exchange.reply.raw == b""
    assert did() == ["slow began"]
    await true(lambda: _endings() == ["cancelled"])


async def test_a_disconnect_while_a_call_becomes_a_task_ends_neither(
    owner: Follower, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    submit, result = writer.submit_if, rounds._result
    gone, creating = asyncio.Event(), asyncio.Event()

    def slowly(condition: Condition, records: Sequence[Record] = ()) -> "asyncio.Future[bool]":
        return (
            asyncio.ensure_future(held(condition, records))
            if _creates(condition)
            else submit(condition, records)
        )

    async def held(condition: Condition, records: Sequence[Record]) -> bool:
        creating.set()
        await asyncio.wait_for(gone.wait(), PATIENCE)
        return await submit(condition, records)

    async def noting(moving: Any) -> Any:
        gone.set()
        return await result(moving)

    monkeypatch.setattr(writer, "submit_if", slowly)
    monkeypatch.setattr(rounds, "_result", noting)
    body = owner.message("tools/call", {"name": "slow", "arguments": {}})
    async with begun("acme", body, owner.token) as exchange:
        await asyncio.wait_for(creating.wait(), PATIENCE)
        exchange.hang_up()
        await asyncio.wait_for(gone.wait(), PATIENCE)
    assert not module("tasks").cancelled.is_set()
    release()
    await true(lambda: TaskModel.objects.get().state == TaskState.COMPLETED)
    assert did() == ["slow began", "slow ended"]


def _endings() -> list[str]:
    """The outcomes of the rounds that have ended."""
    return list(Entry.objects.filter(action=ROUND_FINISHED).values_list("outcome", flat=True))


async def test_a_slow_call_completes_in_its_request_if_the_client_lacks_the_extension(
    owner: Follower, settings: Settings
) -> None:
    settings.MCPHOST_TASK_AFTER_SECONDS = 0.05
    body = owner.unable().message("tools/call", {"name": "slow", "arguments": {}})
    async with begun("acme", body, owner.token) as exchange:
        await happened("running")
        task = await owner.begin("slow")  # another call: by now the time of the first has passed
        release()
        assert done(await exchange.done()) == "slow"
    assert await task.text() == "slow"


# Callers without a credential.


@pytest.fixture
def anonymous(tasks: Cast) -> Follower:
    return Follower(None, "commons")


async def test_an_anonymous_callers_task_lasts_at_most_ten_minutes(anonymous: Follower) -> None:
    task = await anonymous.begin("paint")
    assert task.handle["ttlMs"] <= 600_000
    await task.asked("colour")
    await task.update(RED)
    seen = await task.ended()
    assert (seen["status"], seen["ttlMs"] <= 600_000) == ("completed", True)


async def test_an_anonymous_caller_receives_no_url_requests(anonymous: Follower) -> None:
    for tool in ("signs_in", "signs_in_while_it_works"):
        task = await anonymous.begin(tool)
        if tool != "signs_in":
            await happened("running")
            for _ in range(20):
                assert "example.com" not in str(await task.get())
            release()
        seen = await task.until(lambda seen: seen["status"] != "working")
        assert seen["status"] in TERMINAL
        assert seen["status"] == "failed" or seen["result"]["isError"]
        assert "example.com" not in str(seen)


async def test_the_capabilities_of_the_creating_request_apply_to_the_task(
    tasks: Cast,
) -> None:
    token = tasks.owner.mcp_token
    bare = {"extensions": ABLE["extensions"]}
    task = await Follower(token, capabilities=bare).begin("paint")
    seen = await Task(Follower(token), task.handle).until(lambda seen: seen["status"] != "working")
    assert seen["status"] in TERMINAL
    assert did() == []
