"""The person behind a call and their store, whatever client asks and however it is delivered."""

from dataclasses import replace
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from mcphost.audit.records import Actor
from mcphost.catalogue.models import StoredValue
from mcphost.catalogue.store import StoreOwner, put
from mcphost.identity.service_accounts import create
from mcphost.identity.services import TokenRequest, issue, issue_for_service
from mcphost.runtime.ports import StoreRefusedError
from mcphost.serving.database import in_database
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import CALL_TOOLS, Role
from mcphost.tenants.services import remove_member, set_member, update_tenant
from tests.cast import ACTOR, Cast
from tests.mcp import call
from tests.serving.contracts.clients import DELIVERIES, Client
from tests.serving.contracts.offers import TOOL, Offer
from tests.serving.contracts.test_contract import got, named, refused

pytestmark = pytest.mark.django_db(transaction=True)

PAIRS = [("python", delivery) for delivery in DELIVERIES]
PLAIN = pytest.mark.parametrize("pair", [("python", "modern")], indirect=True, ids="-".join)


@sync_to_async
def membership_of(cast: Cast, user: User) -> UUID:
    return Membership.objects.get(user=user, tenant_id=cast.acme.id).pk


@pytest.mark.parametrize("pair", PAIRS, indirect=True, ids="-".join)
async def test_a_person_is_asked_once_and_remembered(offer: Offer, caller: Client) -> None:
    person = offer.cast.operator if offer.delivery == "playground" else offer.cast.owner
    await caller.begin("user")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    member = await membership_of(offer.cast, person.user)
    remembered = [str(member), person.user.username, "x"]
    assert got(await caller.result()) == remembered
    await caller.begin("remembered")
    assert got(await caller.result()) == remembered


@PLAIN
async def test_the_user_is_the_same_for_all_tokens_and_has_their_current_name(offer: Offer) -> None:
    cast, owner = offer.cast, offer.cast.owner.user
    member = await membership_of(cast, owner)
    await in_database(put, StoreOwner(cast.acme.id, member), "name", "x", 0)
    wanted = TokenRequest("another client", (CALL_TOOLS,))
    itself = Actor.person(owner.pk, "owner")
    other = await in_database(issue, cast.acme.id, owner, wanted, actor=itself)
    for token in (cast.owner.mcp_token, other.plaintext):
        reply = await call("acme", TOOL, {"do": "user"}, token)
        assert got(reply.result) == [str(member), "owner", "x"]
    owner.first_name = "Ada"
    await owner.asave(update_fields=["first_name"])
    reply = await call("acme", TOOL, {"do": "user"}, cast.owner.mcp_token)
    assert got(reply.result) == [str(member), "Ada", "x"]


@PLAIN
async def test_a_store_belongs_to_one_person_and_ends_with_their_membership(offer: Offer) -> None:
    cast, member = offer.cast, offer.cast.member.user
    ids = [await membership_of(cast, user) for user in (cast.owner.user, member)]
    owners, members = (StoreOwner(cast.acme.id, id) for id in ids)
    await in_database(put, owners, "name", "of the owner", 0)
    await in_database(put, members, "name", "of the member", 0)
    await in_database(put, StoreOwner(cast.acme.id), "name", "of all", 0)
    await in_database(remove_member, cast.acme.id, member, actor=ACTOR)
    values = StoredValue.objects.order_by("value").values_list("value", flat=True)
    assert [value async for value in values] == ['"of all"', '"of the owner"']
    with pytest.raises(StoreRefusedError, match="no longer a member"):
        await in_database(put, members, "name", "again", 0)
    await in_database(set_member, cast.acme.id, member, Role.MEMBER, actor=ACTOR)
    assert await membership_of(cast, member) != ids[1]


@PLAIN
async def test_callers_that_are_no_person_have_no_user_and_no_store(offer: Offer) -> None:
    acme = offer.cast.acme
    account = await in_database(create, acme.id, "nightly", actor=ACTOR)
    wanted = TokenRequest("nightly's token", (CALL_TOOLS,))
    service = await in_database(issue_for_service, acme.id, account, wanted, actor=ACTOR)
    for token in (service.plaintext, None):
        reply = await call("acme", TOOL, {"do": "nobody"}, token)
        assert "no person" in refused(reply.result)
        await in_database(update_tenant, acme.id, replace(acme.fields, public=True), actor=ACTOR)
