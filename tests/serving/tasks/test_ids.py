"""Ids of tasks belong to a tenant and caller; all other callers get the reply for an unknown id."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.identity.services import TokenRequest, issue
from mcphost.serving.database import in_database
from mcphost.tasks import services
from mcphost.tasks.models import Task as TaskModel
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS
from tests.cast import ACTOR, Cast
from tests.mcp import Reply, send
from tests.serving.legacy.tasks.client import client_of
from tests.serving.tasks.task_client import (
    METHODS,
    RED,
    Follower,
    did,
    unable,
    unknown,
    watching,
)

pytestmark = pytest.mark.django_db(transaction=True)

OWN = ("date", "traceparent", "mcp-request-id")


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


def _seen(reply: Reply) -> tuple[bytes, Mapping[str, str]]:
    """All that a caller sees of a refusal."""
    headers = {name: value for name, value in reply.headers.items() if name not in OWN}
    return unknown(reply), headers


async def _looks_unknown(follower: Follower, id: str) -> None:
    """It gets what an id gets that never was, by each method."""
    for method in METHODS:
        reply = await follower.about(method, id)
        never = await follower.about(method, "A" * len(id))
        assert _seen(reply) == _seen(never), method
        assert id.encode() not in reply.raw


@pytest.mark.requirement("tasks.unknown")
async def test_malformed_and_unknown_ids_are_refused_with_the_same_error(owner: Follower) -> None:
    for method in METHODS:
        never = _seen(await owner.about(method, "B" * 22))
        for id in ("", " ", "x", "A" * 22, "A" * 64, "ä", "../..", "0" * 36, "%00"):
            assert _seen(await owner.about(method, id)) == never, id
        unknown(await owner.about(method, "A" * 2_000))


@pytest.mark.requirement("tasks.bound")
async def test_a_task_is_unknown_to_every_caller_but_its_own(tasks: Cast, owner: Follower) -> None:
    wanted = TokenRequest("second", (LIST_TOOLS, CALL_TOOLS))
    second = await in_database(issue, tasks.acme.id, tasks.owner.user, wanted, actor=ACTOR)
    stranger, anonymous = Follower(tasks.stranger.mcp_token, "globex"), Follower(None, "commons")
    ended = await owner.begin("always", text="a")
    await ended.ended()
    ours, theirs, public = [await each.begin("paint") for each in (owner, stranger, anonymous)]
    for task in (ours, theirs, public):
        await task.asked("colour")
    others = [Follower(person.mcp_token) for person in (tasks.member, tasks.operator)]
    for other in (*others, Follower(second.plaintext), stranger, anonymous):
        for task in (ours, ended):
            await _looks_unknown(other, task.id)
    for task in (theirs, public):
        await _looks_unknown(owner, task.id)
    for token in (None, tasks.stranger.mcp_token):
        outside = Follower(token)
        for method in METHODS:
            reply = await outside.about(method, ours.id)
            assert reply.status == 401
            assert reply.raw == (await outside.about(method, "A" * len(ours.id))).raw
    assert (await Follower(None, "commons").about("tasks/get", public.id)).status == 200
    assert did() == ["a"]
    for task in (ours, theirs, public):
        await task.update(RED)
        assert await task.text() == "it is red"


async def _are_not_listened_to(follower: Follower, *ids: str) -> None:
    async with watching(follower, ids) as heard:
        assert heard.honoured.get("taskIds", []) == []


@pytest.mark.requirement("tasks.unknown")
async def test_expired_foreign_and_session_task_ids_look_unknown_and_cannot_be_subscribed_to(
    tasks: Cast, owner: Follower
) -> None:
    stranger, member = (
        Follower(tasks.stranger.mcp_token, "globex"),
        Follower(tasks.member.mcp_token),
    )
    session = await client_of(tasks.owner)
    foreign = [(await one.begin("paint")).id for one in (stranger, member)]
    other_form = (await session.begin("paint")).id
    expired = (await owner.begin("paint")).id
    await in_database(_outlive, UUID(hex=expired))
    ids = (*foreign, other_form, expired)
    for id in ids:
        await _looks_unknown(owner, id)
    await _are_not_listened_to(owner, *ids)
    await in_database(services.prune)
    await _looks_unknown(owner, expired)
    assert {
        (await one.about("tasks/get", id)).status
        for one, id in zip((stranger, member), foreign, strict=True)
    } == {200}


def _outlive(task: UUID) -> None:
    TaskModel.objects.filter(id=task).update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.requirement("tasks.unable")
async def test_a_client_without_the_extension_gets_the_same_error_for_every_id(
    owner: Follower,
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    plain = owner.unable()
    for method in METHODS:
        refusals = {unable(await plain.about(method, id)) for id in (task.id, "A" * 22)}
        assert len(refusals) == 1
    assert (await task.get())["status"] == "input_required"
    assert did() == []


@pytest.mark.requirement("tasks.header")
async def test_a_missing_id_or_one_that_differs_from_its_header_is_refused(
    owner: Follower,
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    for method in METHODS:
        more = {"inputResponses": RED} if method == "tasks/update" else {}
        for params in ({}, {"taskId": None}, {"taskId": 5}, {"taskId": ["a"]}):
            reply = await owner.send(method, {**params, **more})
            assert (reply.status, reply.error["code"]) == (400, -32602), (method, params)
        body = owner.message(method, {"taskId": task.id, **more})
        for name in ("A" * 22, f"{task.id}x"):
            reply = await send("acme", body, owner.token, {"mcp-name": name})
            assert (reply.status, reply.error["code"]) == (400, -32020), (method, name)
        assert (await task.get())["status"] == "input_required"
    for method in METHODS:
        more = {"inputResponses": {}} if method == "tasks/update" else {}
        body = owner.message(method, {"taskId": task.id, **more})
        assert (await send("acme", body, owner.token, {"mcp-name": ""})).status == 200
