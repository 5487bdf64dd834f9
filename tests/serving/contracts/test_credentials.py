"""A call goes on when the credential of its client is replaced by the next one of its principal."""

from dataclasses import replace

import pytest

from mcphost.serving.database import in_database
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
