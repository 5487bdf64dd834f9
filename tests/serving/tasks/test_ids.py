"""Ids of tasks: bound to tenant and caller; all others get the bytes of an unknown id."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
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
from tests.serving.tasks.following import (
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


@pytest.mark.parametrize("id", ["", " ", "x", "A" * 22, "A" * 64, "ä", "../..", "0" * 36, "%00"])
@pytest.mark.requirement("tasks.unknown")
async def test_ids_that_never_were_are_refused_alike(owner: Follower, id: str) -> None:
    for method in METHODS:
        never = await owner.about(method, "B" * 22)
        assert _seen(await owner.about(method, id)) == _seen(never)


async def test_an_id_that_is_far_too_long_is_refused(owner: Follower) -> None:
    for method in METHODS:
        unknown(await owner.about(method, "A" * 2_000))


async def test_a_task_of_another_tenant_is_unknown(tasks: Cast, owner: Follower) -> None:
    stranger = Follower(tasks.stranger.mcp_token, "globex")
    theirs = await stranger.begin("paint")
    await theirs.asked("colour")
    await _looks_unknown(owner, theirs.id)
    assert (await theirs.get())["status"] == "input_required"
    ours = await owner.begin("paint")
    await ours.asked("colour")
    await _looks_unknown(stranger, ours.id)
    assert did() == []
    for task in (ours, theirs):
        await task.update(RED)
        assert await task.text() == "it is red"


async def test_a_task_of_another_caller_of_the_tenant_is_unknown(
    tasks: Cast, owner: Follower
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    for person in (tasks.member, tasks.operator):
        await _looks_unknown(Follower(person.mcp_token), task.id)
    assert (await task.get())["status"] == "input_required"


@pytest.mark.requirement("tasks.bound")
async def test_a_task_of_another_credential_of_the_same_person_is_unknown(
    tasks: Cast, owner: Follower
) -> None:
    wanted = TokenRequest("second", (LIST_TOOLS, CALL_TOOLS))
    second = await in_database(issue, tasks.acme.id, tasks.owner.user, wanted, actor=ACTOR)
    task = await owner.begin("always", text="a")
    await _looks_unknown(Follower(second.plaintext), task.id)


async def test_a_task_that_has_ended_is_unknown_to_others_too(tasks: Cast, owner: Follower) -> None:
    task = await owner.begin("always", text="a")
    await task.ended()
    await _looks_unknown(Follower(tasks.member.mcp_token), task.id)


async def _are_not_listened_to(follower: Follower, *ids: str) -> None:
    async with watching(follower, ids) as heard:
        assert heard.honoured.get("taskIds", []) == []


@pytest.mark.requirement("tasks.unknown")
async def test_expired_foreign_and_other_forms_ids_look_unknown_and_are_not_listened_to(
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


async def test_an_anonymous_callers_id_works_without_a_credential_at_its_tenant_only(
    tasks: Cast, owner: Follower
) -> None:
    anonymous = Follower(None, "commons")
    task = await anonymous.begin("paint")
    await task.asked("colour")
    await _looks_unknown(owner, task.id)
    assert (await Follower(None, "commons").about("tasks/get", task.id)).status == 200
    await task.update(RED)
    assert await task.text() == "it is red"
    ours = await owner.begin("always", text="a")
    await _looks_unknown(anonymous, ours.id)


@pytest.mark.requirement("tasks.unable")
async def test_a_client_without_the_extension_learns_nothing_of_any_id(owner: Follower) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    plain = owner.unable()
    for method in METHODS:
        refusals = {unable(await plain.about(method, id)) for id in (task.id, "A" * 22)}
        assert len(refusals) == 1
    assert (await task.get())["status"] == "input_required"
    assert did() == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("params", [{}, {"taskId": None}, {"taskId": 5}, {"taskId": ["a"]}])
async def test_a_request_without_an_id_is_refused(
    owner: Follower, method: str, params: dict[str, Any]
) -> None:
    more = {"inputResponses": RED} if method == "tasks/update" else {}
    reply = await owner.send(method, {**params, **more})
    assert reply.status == 400
    assert reply.error["code"] == -32602


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.requirement("tasks.header")
async def test_a_header_must_name_the_task(owner: Follower, method: str) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    more = {"inputResponses": RED} if method == "tasks/update" else {}
    body = owner.message(method, {"taskId": task.id, **more})
    for name in ("A" * 22, f"{task.id}x"):
        reply = await send("acme", body, owner.token, {"mcp-name": name})
        assert (reply.status, reply.error["code"]) == (400, -32020)
    assert (await task.get())["status"] == "input_required"
    assert (await send("acme", body, owner.token, {"mcp-name": ""})).status == 200


async def test_who_has_no_access_to_the_tenant_learns_nothing(tasks: Cast, owner: Follower) -> None:
    task = await owner.begin("always", text="a")
    for method in METHODS:
        for token in (None, tasks.stranger.mcp_token):
            outside = Follower(token)
            reply = await outside.about(method, task.id)
            assert reply.status == 401
            assert reply.raw == (await outside.about(method, "A" * len(task.id))).raw
