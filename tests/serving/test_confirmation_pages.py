"""A tool that waits for its page: input request, confirmation, result."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.mcp import begun, call, request
from tests.served import probes

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


async def confirmed(cast: Cast, result: dict[str, Any]) -> int:
    """Confirm the page as the caller's user, signed in; return the HTTP status."""

    def press() -> int:
        browser = Client()
        browser.force_login(cast.owner.user)
        path = urlsplit(result["inputRequests"]["page"]["params"]["url"]).path
        assert browser.get(path).status_code == 200
        return browser.post(path).status_code

    return await in_database(press)


async def test_a_call_waits_until_its_page_is_confirmed(served: Cast) -> None:
    result = await asked(served)
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        assert not exchange.task.done()
        assert await confirmed(served, result) == 200
        assert (await exchange.done()).check().text == "signed"
