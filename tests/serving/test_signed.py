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


async def test_a_page_may_be_confirmed_before_the_call_waits(served: Cast) -> None:
    result = await asked(served)
    assert await confirmed(served, result) == 200
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        assert (await exchange.done()).check().text == "signed"


async def test_who_waits_in_vain_is_told_so(served: Cast) -> None:
    reply = await call("acme", "sign", {"seconds": 0}, served.owner.mcp_token, capabilities=CAPABLE)
    body = retry(reply.result, seconds=0)
    async with begun("acme", body, served.owner.mcp_token) as exchange:
        assert (await exchange.done()).check().text == "not signed"


async def test_the_link_of_one_call_ends_no_other(served: Cast) -> None:
    mine, other = await asked(served), await asked(served)
    await confirmed(served, other)
    async with begun("acme", retry(mine), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        assert not exchange.task.done()
        await confirmed(served, mine)
        assert (await exchange.done()).check().text == "signed"


async def test_who_hangs_up_waits_no_longer(served: Cast) -> None:
    result = await asked(served)
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        exchange.hang_up()
        await exchange.done()
    assert exchange.reply.status == 0
