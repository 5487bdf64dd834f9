"""A lost right ends a task exactly if it ends a plain call in the same situation."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services as tools
from mcphost.feed.services import announce
from mcphost.identity import service_accounts
from mcphost.identity.models import Token
from mcphost.identity.oauth.connections import end, own_connection_page
from mcphost.identity.services import IssuedToken, TokenRequest, issue, issue_for_service, revoke
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution import stored_tasks
from mcphost.tasks import selectors, services
from mcphost.tasks.models import TaskQuestion
from mcphost.tasks.selectors import TaskRow
from mcphost.tasks.states import TaskState
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Role
from mcphost.tenants.services import (
    close_tenant,
    grant_scopes,
    remove_member,
    set_member,
    update_tenant,
)
from tests.cast import ACTOR, Cast
from tests.mcp import Reply
from tests.oauth import connect, make_client
from tests.serving.tasks.task_client import (
    PATIENCE,
    RED,
    Follower,
    Task,
    did,
    done,
    happened,
    release,
)

pytestmark = pytest.mark.django_db(transaction=True)

PAINT = "mcp:paint"
SCOPES = (LIST_TOOLS, CALL_TOOLS, PAINT)


@dataclass(frozen=True)
class Caller:
    """A caller, with what it takes to take its rights away."""

    tenant: UUID
    follower: Follower
    token: str = ""
    user: User | None = None
    account: UUID | None = None

    @property
    def of(self) -> tuple[UUID, User]:
        """The membership."""
        assert self.user is not None
        return self.tenant, self.user


def _require(tenant: UUID) -> None:
    """From now on the tools of this test require the scope."""
    rows = {row.name: row for row in catalogue.primitives([tenant])}  # type: ignore[arg-type]
    for name in ("paint", "paint_slowly"):
        row = tools.update(rows[name].id, replace(rows[name].fields, scopes=(PAINT,)), ACTOR)
        tools.publish(row.id, ACTOR)


def _caller(cast: Cast, token: IssuedToken, user: User | None) -> Caller:
    return Caller(cast.acme.id, Follower(token.plaintext), token.id, user)


def _member(cast: Cast) -> Caller:
    """A member to whom the scope was granted, and who took it."""
    _require(cast.acme.id)
    user = cast.member.user
    grant_scopes(cast.acme.id, user, [PAINT], actor=ACTOR)
    itself = Actor.person(user.pk, "member")
    wanted = TokenRequest("granted", SCOPES)
    return _caller(cast, issue(cast.acme.id, user, wanted, actor=itself), user)


def _operator(cast: Cast) -> Caller:
    """An operator, who may take each tool's scope without a grant."""
    _require(cast.acme.id)
    user = cast.operator.user
    itself = Actor.person(user.pk, "operator")
    wanted = TokenRequest("taken", SCOPES)
    return _caller(cast, issue(cast.acme.id, user, wanted, actor=itself), user)


def _plain_member(cast: Cast) -> Caller:
    """A member, of tools that require no scope of their own."""
    wanted = TokenRequest("plain", (LIST_TOOLS, CALL_TOOLS))
    itself = Actor.person(cast.member.user.pk, "member")
    user = cast.member.user
    return _caller(cast, issue(cast.acme.id, user, wanted, actor=itself), user)


def _unasked_member(cast: Cast) -> Caller:
    """A member whose token was issued by a command with the scope, which no owner granted."""
    _require(cast.acme.id)
    user = cast.member.user
    return _caller(
        cast, issue(cast.acme.id, user, TokenRequest("issued", SCOPES), actor=ACTOR), user
    )


def _connected(cast: Cast) -> Caller:
    """A member to whom the scope was granted, and whose client asked for it."""
    _require(cast.acme.id)
    user = cast.member.user
    grant_scopes(cast.acme.id, user, [PAINT], actor=ACTOR)
    issued = connect(make_client(), cast.member, *SCOPES)
    return Caller(cast.acme.id, Follower(issued.access), user=user)


def _service(cast: Cast) -> Caller:
    _require(cast.acme.id)
    account = service_accounts.create(cast.acme.id, "robot", actor=ACTOR)
    wanted = TokenRequest("robot", SCOPES)
    token = issue_for_service(cast.acme.id, account, wanted, actor=ACTOR)
    return replace(_caller(cast, token, None), account=account)


def _anonymous(cast: Cast) -> Caller:
    return Caller(cast.commons.id, Follower(None, "commons"))


def _ungranted(caller: Caller) -> None:
    grant_scopes(*caller.of, [], actor=ACTOR)


def _lowered(caller: Caller) -> None:
    set_member(*caller.of, Role.MEMBER, actor=ACTOR)


def _raised(caller: Caller) -> None:
    set_member(*caller.of, Role.OPERATOR, actor=ACTOR)


def _removed(caller: Caller) -> None:
    remove_member(*caller.of, actor=ACTOR)


def _switched_off(caller: Caller) -> None:
    assert caller.user is not None
    caller.user.is_active = False
    caller.user.save()


def _revoked(caller: Caller) -> None:
    revoke(caller.tenant, caller.token, actor=ACTOR)


def _disconnected(caller: Caller) -> None:
    assert caller.user is not None
    (connection,) = own_connection_page(caller.user.pk).connections
    end(caller.tenant, connection.id, actor=ACTOR)


def _expired(caller: Caller) -> None:
    """Let the token expire. Only its row says when, so each cache has to read it."""
    gone = timezone.now() - timedelta(seconds=1)
    with transaction.atomic():
        Token.objects.filter(pk=caller.token).update(expires_at=gone)
        announce("token", tenant=caller.tenant, object_id=caller.token)


def _disabled(caller: Caller) -> None:
    assert caller.account is not None
    service_accounts.disable(caller.tenant, caller.account, actor=ACTOR)


def _closed(caller: Caller) -> None:
    close_tenant(caller.tenant, actor=ACTOR)


def _not_public(caller: Caller) -> None:
    update_tenant(caller.tenant, TenantFields(title="Commons", public=False), actor=ACTOR)


def _required(caller: Caller) -> None:
    _require(caller.tenant)


Build = Callable[[Cast], Caller]
TakeAway = Callable[[Caller], None]

LOST: list[tuple[Build, TakeAway]] = [
    (_member, _ungranted),
    (_operator, _lowered),
    (_member, _removed),
    (_member, _switched_off),
    (_member, _revoked),
    (_member, _expired),
    (_member, _closed),
    (_unasked_member, _revoked),
    (_connected, _ungranted),
    (_connected, _removed),
    (_connected, _switched_off),
    (_connected, _disconnected),
    (_service, _disabled),
    (_service, _revoked),
    (_service, _closed),
    (_anonymous, _not_public),
    (_anonymous, _closed),
]
"""Who, and how the access or the scope is lost."""
KEPT: list[tuple[Build, TakeAway]] = [
    (_unasked_member, _ungranted),
    (_member, _raised),
    (_plain_member, _ungranted),
    (_plain_member, _raised),
]
"""The scope does not depend on what is taken away."""


async def _asked_plainly(caller: Caller) -> str:
    reply = await caller.follower.unable().call("paint")
    assert reply.result["resultType"] == "input_required"
    state: str = reply.result["requestState"]
    return state


def _answer_elsewhere(task: UUID) -> None:
    """Let the time of the questions be over: the next round begins, whoever may still answer."""
    asked = TaskQuestion.objects.filter(task=task)
    asked.update(expires_at=timezone.now() - timedelta(seconds=1))
    services.expire_questions()
    services.ready()


async def _ended(task: UUID) -> TaskRow:
    async with asyncio.timeout(PATIENCE):
        while True:
            row = await in_database(selectors.find, task)
            assert row is not None
            if row.state is not TaskState.WORKING:
                return row
            await asyncio.sleep(0.01)  # between looks, as clients do


async def _has_failed(task: UUID) -> None:
    """The task has an error, which its status message says, and no questions."""
    row = await _ended(task)
    assert row.state is TaskState.FAILED
    assert not await in_database(TaskQuestion.objects.filter(task=task).exists)
    if row.outcome:  # a closed tenant has no keys any more
        seen = await stored_tasks.read_view(row, {})
        assert seen.error is not None
        assert seen.message == seen.error["message"]


async def _answered_plainly(caller: Caller, state: str) -> Reply:
    plain = {"name": "paint", "arguments": {}, "requestState": state, "inputResponses": RED}
    return await caller.follower.unable().send("tools/call", plain)


async def _begun(caller: Caller) -> tuple[str, Task, Task]:
    """The state of a plain call, a task that waits for an answer, and one whose round runs."""
    state = await _asked_plainly(caller)
    waiting = await caller.follower.begin("paint")
    await waiting.asked("colour")
    running = await caller.follower.begin("paint_slowly")
    await running.asked("colour")
    await running.update(RED)
    await happened("running")
    return state, waiting, running


async def _fails(caller: Caller, waiting: Task) -> None:
    """The task has failed after an answer, or once the time of its question is over."""
    reply = await caller.follower.about("tasks/update", waiting.id)
    if reply.status != 200:
        await in_database(_answer_elsewhere, UUID(hex=waiting.id))
        process.runner.on_gap()
    await _has_failed(UUID(hex=waiting.id))


@pytest.mark.parametrize(("build", "take_away"), LOST)
@pytest.mark.requirement("tasks.authorized")
async def test_a_lost_right_ends_a_task_as_it_ends_a_plain_call(
    tasks: Cast, build: Build, take_away: TakeAway
) -> None:
    caller = await in_database(build, tasks)
    state, waiting, running = await _begun(caller)
    await in_database(take_away, caller)
    reply = await _answered_plainly(caller, state)
    assert reply.status in (400, 401, 403), reply.raw
    await happened("cancelled")
    await _has_failed(UUID(hex=running.id))
    await _fails(caller, waiting)
    assert did() == ["red began"]


async def test_a_new_scope_of_the_tool_refuses_calls_and_lets_a_running_round_end(
    tasks: Cast,
) -> None:
    caller = await in_database(_plain_member, tasks)
    state, waiting, running = await _begun(caller)
    await in_database(_required, caller)
    assert (await _answered_plainly(caller, state)).status in (400, 403)
    await _fails(caller, waiting)
    assert did() == ["red began"]
    release()
    assert await running.text() == "it is red"


@pytest.mark.parametrize(("build", "take_away"), KEPT)
async def test_a_permission_change_that_keeps_the_scope_lets_a_task_continue_like_a_plain_call(
    tasks: Cast, build: Build, take_away: TakeAway
) -> None:
    caller = await in_database(build, tasks)
    state, waiting, running = await _begun(caller)
    await in_database(take_away, caller)
    assert done(await _answered_plainly(caller, state)) == "it is red"
    await waiting.update(RED)
    assert await waiting.text() == "it is red"
    release()
    assert await running.text() == "it is red"
