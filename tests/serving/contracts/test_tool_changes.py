"""A waiting call continues after a change of its tool if and only if the console says so."""

from collections.abc import Callable, Mapping

import pytest
from django.test import Client as Browser

from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_STARTED
from mcphost.catalogue.models import PrimitiveVersion
from mcphost.serving.database import in_database
from tests.audit.recorded_calls import catch_up
from tests.serving.contracts.clients import DELIVERIES, Client
from tests.serving.contracts.offers import Offer
from tests.serving.contracts.test_contract import got, named

pytestmark = pytest.mark.django_db(transaction=True)

NO_LONGER = "Answers to its 1 open question will no longer be accepted"
STILL = "Its 1 open question will still accept answers"
TRIAL_OVER = "Trials that still wait for an answer will end."
AFTER: Mapping[str, str] = {"disable": NO_LONGER, "archive": NO_LONGER, "roll back": STILL}
PLAIN = [("python", delivery) for delivery in DELIVERIES]


def _rounds() -> int:
    return Entry.objects.filter(action=ROUND_STARTED).count()


def _changed(offer: Offer, action: str) -> Callable[[], str]:
    """Return what an operator does: read the page of a change, and confirm it."""

    def change() -> str:
        catch_up()
        browser = Browser()
        browser.force_login(offer.cast.operator.user)
        address = f"/admin/t/acme/tools/{offer.id}/{action}/"
        if action == "roll back":
            version = PrimitiveVersion.objects.get(primitive=offer.id, number=1)
            address = f"/admin/t/acme/tools/{offer.id}/versions/{version.id}/serve/"
        page = browser.get(address)
        done = browser.post(address, {**(page.context.get("bound") or {}), "note": ""})
        assert done.status_code == 302
        return " ".join(page.context["points"])

    return change


@pytest.mark.parametrize("action", AFTER)
@pytest.mark.parametrize("pair", PLAIN, ids="-".join, indirect=True)
async def test_a_response_after_a_change_of_the_tool_is_accepted_exactly_as_the_console_says(
    offer: Offer, caller: Client, action: str
) -> None:
    await offer.publish(title="Two")
    await caller.begin("once")
    await caller.asked("a")
    before = await in_database(_rounds)
    text = await in_database(_changed(offer, action))
    expected = TRIAL_OVER if offer.delivery == "playground" else AFTER[action]
    assert expected in text
    await caller.answer(a=named("x"))
    result = await caller.result()
    if expected == STILL:
        assert got(result) == ["x"]
    else:
        assert "structuredContent" not in result
        assert "error" in result or result["isError"]
    assert await in_database(_rounds) == before + (expected == STILL)
