"""A tool that waits for its page: input request, confirmation, result."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy.cancellation import cancellations
from tests.cast import Cast
from tests.mcp import begun, call, request
from tests.served import probes
from tests.serving.legacy.callers import Caller, accept, true

pytestmark = pytest.mark.django_db(transaction=True)

CAPABLE = {"elicitation": {"url": {}}}
SECONDS = 20


async def asked(cast: Cast) -> dict[str, Any]:
    """The result of a first round."""
    reply = await call("acme", "sign", {}, cast.owner.mcp_token, capabilities=CAPABLE)
    assert reply.result["resultType"] == "input_required"
    return reply.result


def retry(result: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    """The retry of the request, with consent."""
    params = {
        "name": "sign",
        "arguments": arguments,
        "requestState": result["requestState"],
        "inputResponses": {"page": {"action": "accept"}},
    }
    return request("tools/call", params, capabilities=CAPABLE)


async def confirmed(cast: Cast, url: str) -> int:
    """Confirm the page as the caller's user, signed in; return the HTTP status."""

    def press() -> int:
        browser = Client()
        browser.force_login(cast.owner.user)
        path = urlsplit(url).path
        shown = browser.get(path).status_code
        done = browser.post(path).status_code
        assert shown == done
        return done

    return await in_database(press)


async def test_a_call_waits_until_its_page_is_confirmed(served: Cast) -> None:
    result = await asked(served)
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        assert not exchange.task.done()
        url = result["inputRequests"]["page"]["params"]["url"]
        assert await confirmed(served, url) == 200
        assert (await exchange.done()).check().text == "signed"


@pytest.mark.parametrize("waits_for", ["the answer", "the page"])
async def test_the_page_of_a_call_that_the_client_of_a_session_cancelled_confirms_nothing(
    served: Cast, settings: Any, waits_for: str
) -> None:
    settings.MCPHOST_PUBLIC_URL = "http://localhost"
    caller = await Caller.at(served)
    shown = await caller.streamed("sign")
    (question,) = await shown.asked()
    if waits_for == "the page":
        await caller.answer(question, accept())
        await asyncio.wait_for(probes().running.wait(), SECONDS)
    await cancellations.cancel(caller.session, 1)
    await true(lambda: not calls.under_way)
    assert await confirmed(served, question["params"]["url"]) == 410
