"""A call goes on when the credential of its client is replaced by the next one of its principal."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.feed.services import announce
from mcphost.identity.models import Token
from mcphost.identity.services import IssuedToken, renew
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.oauth import connect, expire_access_tokens, make_client, pair_of, refresh
from tests.serving.contracts.clients import DELIVERIES, client
from tests.serving.contracts.offers import Offer
from tests.serving.contracts.test_contract import got, named

pytestmark = pytest.mark.django_db(transaction=True)

WITH_CREDENTIALS = [("python", delivery) for delivery in DELIVERIES if delivery != "playground"]


@pytest.mark.parametrize("pair", WITH_CREDENTIALS, indirect=True, ids="-".join)
async def test_a_question_under_one_access_token_is_answered_under_the_next(offer: Offer) -> None:
    app = await in_database(make_client)
    issued = await in_database(connect, app, offer.cast.owner)
    connected = replace(offer.cast, owner=replace(offer.cast.owner, mcp_token=issued.access))
    async with client(connected, offer.delivery) as caller:
        await caller.begin("twice")
        for key, name in (("a", "x"), ("b", "y")):
            await caller.asked(key)
            await in_database(expire_access_tokens, offer.cast.owner)
            issued = pair_of(await in_database(refresh, app, issued.refresh))
            await caller.present(issued.access)
            await caller.answer(**{key: named(name)})
        assert got(await caller.result()) == ["x", "y"]


def _renewed(cast: Cast, token_id: str) -> IssuedToken:
    """Renew a token of the owner, and let it expire."""
    itself = Actor.person(cast.owner.user.pk, "owner")
    renewed = renew(cast.acme.id, token_id, actor=itself, expires_at=None)
    with transaction.atomic():
        Token.objects.filter(pk=token_id).update(expires_at=timezone.now() - timedelta(seconds=1))
        announce("token", tenant=cast.acme.id, object_id=token_id)
    return renewed


@pytest.mark.parametrize("pair", WITH_CREDENTIALS, indirect=True, ids="-".join)
async def test_a_question_under_one_token_is_answered_under_its_renewal(offer: Offer) -> None:
    token_id = offer.cast.owner.mcp_token.split("_")[1]
    async with client(offer.cast, offer.delivery) as caller:
        await caller.begin("twice")
        for key, name in (("a", "x"), ("b", "y")):
            await caller.asked(key)
            renewed = await in_database(_renewed, offer.cast, token_id)
            token_id = renewed.id
            await caller.present(renewed.plaintext)
            await caller.answer(**{key: named(name)})
        assert got(await caller.result()) == ["x", "y"]
