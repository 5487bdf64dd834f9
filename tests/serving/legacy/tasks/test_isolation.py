"""Whose tasks a session sees: `tasks/list`, and ids that are not its own."""

from collections.abc import Mapping
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.identity.services import TokenRequest, issue
from mcphost.serving.database import in_database
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS
from tests.cast import ACTOR, Cast, Person
from tests.mcp import Reply
from tests.serving.legacy.tasks.client import (
    OF_TASKS,
    RED,
    Task,
    TaskClient,
    client_of,
    refused,
)
from tests.serving.tasks.following import Follower, did, happened, release

pytestmark = pytest.mark.django_db(transaction=True)

OWN = ("date", "traceparent", "mcp-request-id")


def _seen(reply: Reply, id: int) -> tuple[int, bytes, Mapping[str, str]]:
    """All that a caller sees of a refusal, without the id of its request."""
    refused(reply, -32602)
    headers = {name: value for name, value in reply.headers.items() if name not in OWN}
    own = b'"id":%d,' % id
    assert own in reply.raw
    headers.pop("content-length", None)
    return reply.status, reply.raw.replace(own, b""), headers


async def _about(client: TaskClient, method: str, id: Any) -> tuple[int, bytes, Any]:
    body = client.message(method, {"taskId": id})
    return _seen(await client.session.send(body), body["id"])


async def _looks_unknown(client: TaskClient, id: str) -> None:
    """It gets what an id gets that never was, by each method; and it is not in the list."""
    refusals = set()
    for method in OF_TASKS:
        found = await _about(client, method, id)
        assert found == await _about(client, method, "A" * len(id)), method
        assert id.encode() not in found[1]
        refusals.add(found[1])
    assert len(refusals) == 1
    assert id not in await client.listed()


async def _still_asks(task: Task) -> None:
    """The task is as it was: its question is answered, and it ends."""
    assert (await task.get())["status"] == "input_required"
    async with task.following() as following:
        await task.client.answer(await following.asked(), RED)
        assert await following.text() == "it is red"


async def _asking(client: TaskClient) -> Task:
    task = await client.begin("paint")
    await task.reaches("input_required")
    return task


# --- ids ---


@pytest.mark.parametrize("id", ["", " ", "x", "A" * 22, "A" * 64, "ä", "../..", "0" * 36, "%00"])
async def test_ids_that_never_were_are_refused_alike(client: TaskClient, id: str) -> None:
    for method in OF_TASKS:
        assert await _about(client, method, id) == await _about(client, method, "b" * 32)


async def test_another_way_to_write_an_id_is_another_id(client: TaskClient) -> None:
    task = await client.begin("always", text="a")
    await task.ended()
    dashed = f"{task.id[:8]}-{task.id[8:12]}-{task.id[12:16]}-{task.id[16:20]}-{task.id[20:]}"
    for other in (task.id.upper(), dashed, f" {task.id}", f"{{{dashed}}}", f"urn:uuid:{dashed}"):
        if other != task.id:
            await _looks_unknown(client, other)


async def test_a_task_of_another_tenant_is_unknown(tasks: Cast, client: TaskClient) -> None:
    stranger = await client_of(tasks.stranger, "globex")
    theirs, ours = await _asking(stranger), await _asking(client)
    await _looks_unknown(client, theirs.id)
    await _looks_unknown(stranger, ours.id)
    assert did() == []
    assert await client.listed() == {ours.id}
    assert await stranger.listed() == {theirs.id}
    await _still_asks(theirs)
    await _still_asks(ours)


@pytest.mark.parametrize("who", ["member", "operator", "auditor"])
@pytest.mark.requirement("session-tasks.bound")
async def test_a_task_of_another_caller_of_the_tenant_is_unknown(
    tasks: Cast, client: TaskClient, who: str
) -> None:
    other = await client_of(getattr(tasks, who))
    task = await _asking(client)
    await _looks_unknown(other, task.id)
    assert await other.listed() == set()
    await _still_asks(task)


async def test_a_task_of_another_credential_of_the_same_person_is_unknown(
    tasks: Cast, client: TaskClient
) -> None:
    wanted = TokenRequest("second", (LIST_TOOLS, CALL_TOOLS))
    token = await in_database(issue, tasks.acme.id, tasks.owner.user, wanted, actor=ACTOR)
    second = await client_of(Person(tasks.owner.user, mcp_token=token.plaintext))
    task = await _asking(client)
    await _looks_unknown(second, task.id)
    assert await second.listed() == set()
    await _still_asks(task)


async def test_an_ended_task_of_another_caller_is_unknown(tasks: Cast, client: TaskClient) -> None:
    task = await client.begin("always", text="a")
    await task.ended()
    await _looks_unknown(await client_of(tasks.member), task.id)
    cancelled = await client.begin("hangs")
    await cancelled.cancel()
    await _looks_unknown(await client_of(tasks.member), cancelled.id)


async def test_an_expired_task_is_unknown(client: TaskClient) -> None:
    task = client.task_of(await client.call("hangs", {"ttl": 1}))
    while task.id in await client.listed():  # it has one millisecond
        pass
    await _looks_unknown(client, task.id)


async def test_a_task_of_the_stateless_revision_is_unknown(tasks: Cast, client: TaskClient) -> None:
    modern = Follower(tasks.owner.mcp_token)
    theirs = await modern.begin("paint")
    await theirs.asked("colour")
    await _looks_unknown(client, theirs.id)
    assert await client.listed() == set()
    ours = await _asking(client)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        reply = await modern.about(method, ours.id)
        never = await modern.about(method, "A" * len(ours.id))
        assert (reply.status, reply.raw) == (never.status, never.raw)
        assert reply.error["code"] == -32602
    assert did() == []
    await _still_asks(ours)
    await theirs.update({"colour": RED})
    assert await theirs.text() == "it is red"


# --- sessions ---


async def test_two_sessions_of_one_caller_share_its_tasks(tasks: Cast) -> None:
    first, second = await client_of(tasks.owner), await client_of(tasks.owner)
    one, other = await first.begin("hangs"), await second.begin("always", text="b")
    await happened("running")
    assert await first.listed() == await second.listed() == {one.id, other.id}
    assert await first.known(other.id).text() == "b"
    assert (await second.known(one.id).get())["status"] == "working"
    release()
    assert await second.known(one.id).text() == "hangs"


@pytest.mark.requirement("session-tasks.unbound")
async def test_anonymous_sessions_do_not_see_one_anothers_tasks(tasks: Cast) -> None:
    first, second = await client_of(None, "commons"), await client_of(None, "commons")
    one, other = await _asking(first), await _asking(second)
    assert await first.listed() == {one.id}
    assert await second.listed() == {other.id}
    await _looks_unknown(first, other.id)
    await _looks_unknown(second, one.id)
    for task in (one, other):
        await _still_asks(task)


async def test_an_anonymous_caller_without_a_session_does_not_see_the_tasks_of_one(
    tasks: Cast,
) -> None:
    session, modern = await client_of(None, "commons"), Follower(None, "commons")
    task = await _asking(session)
    theirs = await modern.begin("paint")
    await theirs.asked("colour")
    never = await modern.about("tasks/get", "A" * len(task.id))
    assert (await modern.about("tasks/get", task.id)).raw == never.raw
    await _looks_unknown(session, theirs.id)
    await _still_asks(task)


async def test_a_session_with_a_credential_does_not_see_anonymous_tasks(tasks: Cast) -> None:
    anonymous, owner = await client_of(None, "commons"), await client_of(tasks.owner)
    task, own = await _asking(anonymous), await _asking(owner)
    await _looks_unknown(owner, task.id)
    await _looks_unknown(anonymous, own.id)


# --- the list ---


async def test_without_tasks_the_list_is_empty(client: TaskClient) -> None:
    assert (await client.ask("tasks/list")).result == {"tasks": []}


async def test_the_list_shows_tasks_as_they_are(client: TaskClient) -> None:
    asking = await _asking(client)
    done = await client.begin("always", text="a")
    failed = await client.begin("refuses")
    cancelled = await client.begin("hangs")
    await cancelled.cancel()
    await done.ended()
    await failed.ended()
    listed = (await client.ask("tasks/list")).result["tasks"]
    assert listed == [await task.get() for task in (asking, done, failed, cancelled)]
    statuses = [one["status"] for one in listed]
    assert statuses == ["input_required", "completed", "failed", "cancelled"]


@pytest.mark.parametrize(("size", "pages"), [(1, 5), (2, 3), (4, 2), (5, 1), (100, 1)])
@pytest.mark.requirement("session-tasks.pages")
async def test_the_list_comes_in_pages(
    client: TaskClient, settings: Settings, size: int, pages: int
) -> None:
    begun = [(await client.begin("always", text="a")).id for _ in range(5)]
    settings.MCPHOST_PAGE_SIZE = size
    found = await client.pages()
    assert len(found) == pages
    assert max(map(len, found)) <= size
    assert [id for page in found for id in page] == begun


async def test_what_comes_or_goes_between_two_pages_shifts_nothing(
    tasks: Cast, client: TaskClient, settings: Settings
) -> None:
    settings.MCPHOST_PAGE_SIZE = 2
    begun = [(await client.begin("hangs")).id for _ in range(4)]
    page = (await client.ask("tasks/list")).result
    assert [one["taskId"] for one in page["tasks"]] == begun[:2]
    await (await client_of(tasks.member)).begin("hangs")
    late = (await client.begin("hangs")).id
    found: list[str] = []
    while "nextCursor" in page:
        page = (await client.ask("tasks/list", cursor=page["nextCursor"])).result
        found += [one["taskId"] for one in page["tasks"]]
    assert found == [*begun[2:], late]


async def _cursor(client: TaskClient, settings: Settings) -> str:
    settings.MCPHOST_PAGE_SIZE = 1
    for _ in range(2):
        await client.begin("hangs")
    cursor: str = (await client.ask("tasks/list")).result["nextCursor"]
    return cursor


async def test_a_cursor_may_be_used_again_and_in_another_session(
    tasks: Cast, client: TaskClient, settings: Settings
) -> None:
    cursor = await _cursor(client, settings)
    second = await client_of(tasks.owner)
    first_page = await client.ask("tasks/list", cursor=cursor)
    for each in (client, second):
        page = await each.ask("tasks/list", cursor=cursor)
        assert page.result["tasks"] == first_page.result["tasks"]


@pytest.mark.parametrize("cursor", ["", "x", "A" * 200, None, 5, True, [], {}])
async def test_a_cursor_that_is_none_is_refused(client: TaskClient, cursor: Any) -> None:
    refused(await client.ask("tasks/list", cursor=cursor), -32602)


async def test_a_cursor_of_another_caller_shows_none_of_its_tasks(
    tasks: Cast, client: TaskClient, settings: Settings
) -> None:
    cursor = await _cursor(client, settings)
    reply = await (await client_of(tasks.member)).ask("tasks/list", cursor=cursor)
    if "error" in reply.last:
        refused(reply, -32602)
    else:
        assert reply.result == {"tasks": []}


async def test_a_cursor_of_another_tenant_or_list_is_refused(
    tasks: Cast, client: TaskClient, settings: Settings
) -> None:
    cursor = await _cursor(client, settings)
    tools = (await client.ask("tools/list")).result["nextCursor"]
    stranger = await client_of(tasks.stranger, "globex")
    refused(await stranger.ask("tasks/list", cursor=cursor), -32602)
    refused(await client.ask("tasks/list", cursor=tools), -32602)
    refused(await client.ask("tools/list", cursor=cursor), -32602)
    refused(await client.ask("tasks/list", cursor=f"{cursor[:-2]}AA"), -32602)


async def test_a_credential_that_may_only_list_sees_and_begins_no_tasks(
    tasks: Cast, client: TaskClient
) -> None:
    wanted = TokenRequest("lists", (LIST_TOOLS,))
    token = await in_database(issue, tasks.acme.id, tasks.owner.user, wanted, actor=ACTOR)
    reader = await client_of(Person(tasks.owner.user, mcp_token=token.plaintext))
    task = await client.begin("always", text="a")
    body = reader.calling("always", {}, text="b")
    assert (await reader.session.exchange(body).done()).status == 403
    for method in (*OF_TASKS, "tasks/list"):
        body = reader.message(method, {"taskId": task.id})
        assert (await reader.session.exchange(body).done()).status == 403
    await task.ended()
    assert did() == ["a"]
