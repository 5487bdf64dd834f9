"""The tasks that a session can see: `tasks/list`, and ids of other callers."""

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
from tests.serving.tasks.task_client import Follower, did

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


async def _second_credential(cast: Cast, *scopes: str) -> TaskClient:
    """A client with another token of the owner."""
    wanted = TokenRequest("second", scopes)
    token = await in_database(issue, cast.acme.id, cast.owner.user, wanted, actor=ACTOR)
    return await client_of(Person(cast.owner.user, mcp_token=token.plaintext))


# --- ids ---


async def test_malformed_and_unknown_task_ids_are_refused_with_the_same_error(
    client: TaskClient,
) -> None:
    task = await client.begin("always", text="a")
    await task.ended()
    for id in ("", " ", "x", "A" * 22, "A" * 64, "ä", "../..", "0" * 36, "%00"):
        for method in OF_TASKS:
            assert await _about(client, method, id) == await _about(client, method, "b" * 32)
    parts = (task.id[:8], task.id[8:12], task.id[12:16], task.id[16:20], task.id[20:])
    dashed = "-".join(parts)
    for other in (task.id.upper(), dashed, f" {task.id}", f"{{{dashed}}}", f"urn:uuid:{dashed}"):
        if other != task.id:
            await _looks_unknown(client, other)


@pytest.mark.requirement("session-tasks.bound", "session-tasks.unbound")
async def test_a_task_is_unknown_to_every_caller_but_its_own(
    tasks: Cast, client: TaskClient
) -> None:
    """To another tenant, other callers of its own, another credential of the same person, and to
    anonymous sessions, each of which is a caller."""
    ours = await _asking(client)
    people = (tasks.member, tasks.operator, tasks.auditor)
    others = [
        *[await client_of(person) for person in people],
        await _second_credential(tasks, LIST_TOOLS, CALL_TOOLS),
        await client_of(tasks.stranger, "globex"),
        await client_of(None, "commons"),
        await client_of(None, "commons"),
    ]
    for other in others:
        await _looks_unknown(other, ours.id)
        assert await other.listed() == set()
    stranger, first, second = others[-3:]
    theirs = [await _asking(other) for other in (stranger, first, second)]
    for task in theirs:
        await _looks_unknown(client, task.id)
        assert await task.client.listed() == {task.id}
    await _looks_unknown(first, theirs[2].id)
    await _looks_unknown(second, theirs[1].id)
    assert did() == []
    for task in (ours, *theirs):
        await _still_asks(task)


async def test_a_finished_or_expired_task_is_unknown_to_other_callers(
    tasks: Cast, client: TaskClient
) -> None:
    member = await client_of(tasks.member)
    task = await client.begin("always", text="a")
    await task.ended()
    cancelled = await client.begin("hangs")
    await cancelled.cancel()
    for each in (task, cancelled):
        await _looks_unknown(member, each.id)
    expired = client.task_of(await client.call("hangs", {"ttl": 1}))
    while expired.id in await client.listed():  # it has one millisecond
        pass
    await _looks_unknown(client, expired.id)


async def test_tasks_of_sessions_and_of_the_stateless_revision_are_invisible_to_each_other(
    tasks: Cast,
) -> None:
    for person, tenant in ((tasks.owner, "acme"), (None, "commons")):
        session = await client_of(person, tenant)
        modern = Follower(person.mcp_token if person else None, tenant)
        theirs = await modern.begin("paint")
        await theirs.asked("colour")
        await _looks_unknown(session, theirs.id)
        assert await session.listed() == set()
        ours = await _asking(session)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            reply = await modern.about(method, ours.id)
            never = await modern.about(method, "A" * len(ours.id))
            assert (reply.status, reply.raw) == (never.status, never.raw)
            assert reply.error["code"] == -32602
        await _still_asks(ours)
        await theirs.update({"colour": RED})
        assert await theirs.text() == "it is red"


# --- the list ---


@pytest.mark.requirement("session-tasks.pages")
async def test_the_task_list_is_paginated_and_new_tasks_do_not_shift_pages(
    tasks: Cast, client: TaskClient, settings: Settings
) -> None:
    begun = [(await client.begin("hangs")).id for _ in range(5)]
    for size, pages in ((1, 5), (2, 3), (4, 2), (5, 1), (100, 1)):
        settings.MCPHOST_PAGE_SIZE = size
        found = await client.pages()
        assert len(found) == pages
        assert max(map(len, found)) <= size
        assert [id for page in found for id in page] == begun
    settings.MCPHOST_PAGE_SIZE = 2
    page = (await client.ask("tasks/list")).result
    await (await client_of(tasks.member)).begin("hangs")
    late = (await client.begin("hangs")).id
    rest: list[str] = []
    while "nextCursor" in page:
        page = (await client.ask("tasks/list", cursor=page["nextCursor"])).result
        rest += [one["taskId"] for one in page["tasks"]]
    assert rest == [*begun[2:], late]


async def test_a_cursor_is_valid_for_its_list_and_caller_in_any_session(
    tasks: Cast, client: TaskClient, settings: Settings
) -> None:
    settings.MCPHOST_PAGE_SIZE = 1
    for _ in range(2):
        await client.begin("hangs")
    cursor: str = (await client.ask("tasks/list")).result["nextCursor"]
    tools = (await client.ask("tools/list")).result["nextCursor"]
    second, stranger = await client_of(tasks.owner), await client_of(tasks.stranger, "globex")
    first_page = await client.ask("tasks/list", cursor=cursor)
    for each in (client, second):
        page = await each.ask("tasks/list", cursor=cursor)
        assert page.result["tasks"] == first_page.result["tasks"]
    refused(await stranger.ask("tasks/list", cursor=cursor), -32602)
    refused(await client.ask("tools/list", cursor=cursor), -32602)
    for wrong in (tools, f"{cursor[:-2]}AA", "", "x", "A" * 200, 5, True, [], {}):
        refused(await client.ask("tasks/list", cursor=wrong), -32602)
    reply = await (await client_of(tasks.member)).ask("tasks/list", cursor=cursor)
    if "error" in reply.last:
        refused(reply, -32602)
    else:
        assert reply.result == {"tasks": []}


async def test_a_credential_with_list_scope_only_cannot_see_or_create_tasks(
    tasks: Cast, client: TaskClient
) -> None:
    reader = await _second_credential(tasks, LIST_TOOLS)
    task = await client.begin("always", text="a")
    bodies = [reader.calling("always", {}, text="b")]
    bodies += [reader.message(each, {"taskId": task.id}) for each in (*OF_TASKS, "tasks/list")]
    for body in bodies:
        assert (await reader.session.exchange(body).done()).status == 403
    await task.ended()
    assert did() == ["a"]
