"""Revoked access ends the caller's running work."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.writer.writer import writer
from mcphost.catalogue.services import revoke_grant
from mcphost.feed.loop import loop
from mcphost.feed.services import announce
from mcphost.identity.models import Token
from mcphost.identity.oauth.connections import end
from mcphost.identity.selectors import authenticate, current_principals
from mcphost.identity.services import TokenRequest, issue, renew, revoke
from mcphost.protocol.errors import ProtocolError
from mcphost.routing import process
from mcphost.runtime.call import Principal
from mcphost.serving.database import in_database
from mcphost.serving.revocation import presences
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.roles import Audience, Role
from mcphost.tenants.services import close_tenant, remove_member, set_member, update_tenant
from tests.cast import ACTOR, Cast
from tests.conftest import Elsewhere
from tests.credentials import CREDENTIALS, Credential, MakeCredential
from tests.mcp import Exchange, ask, begun, headers_for, listening, request
from tests.oauth import connect, connection_of, expire_access_tokens, make_client, pair_of, refresh
from tests.served import entries, probes

pytestmark = pytest.mark.django_db(transaction=True)

GOOD_NO_MORE = "This credential is no longer valid"


class Guest:
    """A registered presence, and whether it was ended."""

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.refusal: ProtocolError | None = None
        self.lost = asyncio.Event()

    def revoke(self, refusal: ProtocolError) -> None:
        self.refusal = refusal
        self.lost.set()


def token_id(plaintext: str) -> str:
    return plaintext.split("_")[1]


def revoked(cast: Cast) -> None:
    revoke(cast.acme.id, token_id(cast.member.mcp_token), actor=ACTOR)


def removed(cast: Cast) -> None:
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)


def closed(cast: Cast) -> None:
    close_tenant(cast.acme.id, actor=ACTOR)


def switched_off(cast: Cast) -> None:
    cast.member.user.is_active = False
    cast.member.user.save()


TakeAway = Callable[[Cast, Credential], object]
WAYS: Mapping[str, TakeAway] = {
    "revoked": lambda cast, credential: credential.revoke(),
    "removed": lambda cast, credential: removed(cast),
    "closed": lambda cast, credential: closed(cast),
    "switched off": lambda cast, credential: switched_off(cast),
}
each_way = pytest.mark.parametrize("take_away", WAYS.values(), ids=WAYS)
each_credential = pytest.mark.parametrize("credential", CREDENTIALS)


@each_way
@each_credential
async def test_a_subscription_ends_when_its_caller_loses_access(
    served: Cast, elsewhere: Elsewhere, take_away: TakeAway, credential: MakeCredential
) -> None:
    """The change is made in another process and received here by one poll."""
    presented = await in_database(credential, served, served.member)

    def there() -> None:
        with elsewhere():
            take_away(served, presented)

    async with listening("acme", presented.bearer, toolsListChanged=True) as heard:
        await in_database(there)
        await in_database(loop.poll)
        await heard.ended()


@each_way
@each_credential
async def test_a_running_call_ends_when_access_is_lost_and_is_recorded_with_the_reason(
    served: Cast, take_away: TakeAway, credential: MakeCredential
) -> None:
    presented = await in_database(credential, served, served.member)
    body = request("tools/call", {"name": "hang"})
    async with begun("acme", body, presented.bearer) as exchange:
        async with asyncio.timeout(10):
            await probes().running.wait()
        await in_database(take_away, served, presented)
        reply = (await exchange.done()).check()
    assert probes().cancelled.is_set()
    assert (reply.status, reply.error["code"]) == (401, -31401)
    assert reply.error["message"] == GOOD_NO_MORE
    assert "invalid_token" in reply.headers["www-authenticate"]
    await asyncio.to_thread(writer.stop, 10)
    last = (await entries("hang"))[-1]
    assert (last.outcome, last.reason) == ("cancelled", GOOD_NO_MORE)


async def test_the_loss_of_access_does_not_affect_other_callers(served: Cast) -> None:
    async with (
        listening("acme", served.owner.mcp_token, toolsListChanged=True) as owner,
        listening("acme", served.member.mcp_token, toolsListChanged=True) as member,
        listening("globex", served.stranger.mcp_token, toolsListChanged=True) as stranger,
    ):
        await in_database(removed, served)
        await member.ended()
        fields = TenantFields(title="Other")
        await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
        await in_database(closed, served)
        await owner.ended()
        assert not stranger.exchange.task.done()


async def test_a_role_change_that_keeps_the_scopes_ends_nothing(served: Cast) -> None:
    async with listening("acme", served.member.mcp_token, toolsListChanged=True) as member:
        args = (served.acme.id, served.member.user)
        await in_database(set_member, *args, Role.OPERATOR, actor=ACTOR)
        await in_database(set_member, *args, Role.AUDITOR, actor=ACTOR)
        await in_database(revoked, served)
        await member.ended()


async def test_a_lost_scope_ends_the_running_call(served: Cast) -> None:
    def narrow() -> None:
        Token.objects.filter(pk=token_id(served.member.mcp_token)).update(scopes=["mcp:list"])
        for drop in tuple(loop._gap_callbacks):
            drop()

    body = request("tools/call", {"name": "hang"})
    async with (
        begun("acme", body, served.member.mcp_token) as exchange,
        listening("acme", served.owner.mcp_token, toolsListChanged=True) as owner,
    ):
        async with asyncio.timeout(10):
            await probes().running.wait()
        await in_database(narrow)
        reply = (await exchange.done()).check()
        assert (reply.status, reply.error["code"]) == (403, -31403)
        assert not owner.exchange.task.done()


async def test_a_tenant_that_is_no_longer_public_ends_anonymous_subscriptions(served: Cast) -> None:
    async with listening("commons", None, toolsListChanged=True) as heard:
        fields = TenantFields(title="Commons", public=True, instructions="Be kind.")
        await in_database(update_tenant, served.commons.id, fields, actor=ACTOR)
        fields = TenantFields(title="Commons", public=False)
        await in_database(update_tenant, served.commons.id, fields, actor=ACTOR)
        await heard.ended()


async def test_an_expired_access_token_ends_nothing_of_its_connection(served: Cast) -> None:
    client = await in_database(make_client)
    first = await in_database(connect, client, served.member)
    async with listening("acme", first.access, toolsListChanged=True) as heard:
        await in_database(expire_access_tokens, served.member)
        assert (await ask("acme", "tools/list", token=first.access)).status == 401
        second = pair_of(await in_database(refresh, client, first.refresh))
        await in_database(revoke_grant, served.acme.id, "probe.refuse", ACTOR)
        assert await heard.told() == "tools/list_changed"
        assert (await ask("acme", "tools/list", token=second.access)).status == 200
        connection = await in_database(connection_of, served.member)
        await in_database(end, served.acme.id, connection, actor=ACTOR)
        await heard.ended()


def _expired_principal(cast: Cast) -> Principal:
    """The principal of a token that was admitted, and has expired since."""
    found = authenticate(cast.member.mcp_token, Audience.MCP, "acme")
    assert found is not None
    now = timezone.now()
    Token.objects.filter(pk=found.principal.token_id).update(expires_at=now)
    return replace(found.principal, expires_at=now)


async def test_what_an_expired_token_opened_goes_on_while_a_renewal_works(served: Cast) -> None:
    process.start()
    principal = await in_database(_expired_principal, served)
    assert principal.token_id is not None
    args = (served.acme.id, principal.token_id)
    itself = Actor.person(served.member.user.pk, "member")
    renewed = await in_database(renew, *args, actor=itself, expires_at=None)
    other, guest = Guest(principal), Guest(principal)
    presences.register(guest)
    await in_database(loop.poll)
    current = await in_database(current_principals, [principal.token_id])
    assert current[principal.token_id].token_id == renewed.id
    assert current[principal.token_id].id == principal.id
    assert not guest.lost.is_set()
    await in_database(revoke, served.acme.id, renewed.id, actor=ACTOR)
    presences.register(other)  # whichever comes first: the news of it ends both
    async with asyncio.timeout(10):
        await guest.lost.wait()
        await other.lost.wait()
    assert guest.refusal is not None
    assert guest.refusal.message == "This credential has expired"
    for ended in (guest, other):
        presences.unregister(ended)


async def test_an_expired_credential_ends_a_subscription(served: Cast) -> None:
    process.start()
    later = timezone.now() + timedelta(hours=1)
    wanted = TokenRequest("short", ("mcp:list",), expires_at=later)
    short = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    found = await in_database(authenticate, short.plaintext, Audience.MCP, "acme")
    assert found is not None
    assert found.principal.expires_at == later
    wanted = TokenRequest(
        "shorter", ("mcp:list",), expires_at=timezone.now() + timedelta(seconds=1)
    )
    soon = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    expiring = await in_database(authenticate, soon.plaintext, Audience.MCP, "acme")
    assert expiring is not None
    early, late = Guest(expiring.principal), Guest(found.principal)
    for guest in (early, late):
        presences.register(guest)
    async with asyncio.timeout(10):
        await early.lost.wait()
    assert early.refusal is not None
    assert early.refusal.message == "This credential has expired"
    assert not late.lost.is_set()
    for guest in (early, late):
        presences.unregister(guest)


async def test_a_token_revoked_while_the_body_arrives_is_refused(served: Cast) -> None:
    body = orjson.dumps(request("tools/list"))
    exchange = Exchange("/t/acme/mcp", headers_for(request("tools/list"), served.member.mcp_token))
    exchange.write(body[:10], more=True)
    await exchange.taken()
    await in_database(revoked, served)
    exchange.write(body[10:])
    assert (await exchange.done()).status == 401


async def _guest(cast: Cast) -> Guest:
    process.start()
    found = await in_database(authenticate, cast.member.mcp_token, Audience.MCP, "acme")
    assert found is not None
    return Guest(found.principal)


async def test_a_token_revoked_after_admission_ends_the_request(served: Cast) -> None:
    guest = await _guest(served)
    await in_database(revoked, served)
    presences.register(guest)
    async with asyncio.timeout(10):
        await guest.lost.wait()
    assert guest.refusal is not None
    assert guest.refusal.message == GOOD_NO_MORE
    presences.unregister(guest)
    presences.unregister(guest)


@pytest.mark.parametrize("what", ["member", "tenant"])
async def test_a_change_without_an_object_id_applies_to_every_caller(
    served: Cast, elsewhere: Elsewhere, what: str
) -> None:
    guest = await _guest(served)
    presences.register(guest)

    def silently() -> None:
        Token.objects.filter(pk=guest.principal.id).update(revoked_at=timezone.now())
        with transaction.atomic():
            announce(what, object_id="")

    await in_database(silently)
    async with asyncio.timeout(10):
        await guest.lost.wait()
    presences.unregister(guest)
