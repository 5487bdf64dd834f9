"""A tool that waits for its link, from the question to the page to the result."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cast import Cast
from tests.mcp import Exchange, Reply, begun, call, request
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
    """The request that comes back with consent."""
    params = {
        "name": "sign",
        "arguments": arguments,
        "requestState": result["requestState"],
        "inputResponses": {"page": {"action": "accept"}},
    }
    return request("tools/call", params, capabilities=CAPABLE)


async def opened(result: dict[str, Any]) -> Reply:
    """Somebody opens the page that was asked for, in a browser."""
    url = urlsplit(result["inputRequests"]["page"]["params"]["url"])
    exchange = Exchange(url.path, {"host": url.netloc}, "GET")
    exchange.write(b"")
    return await exchange.done()


async def test_a_call_waits_until_somebody_has_opened_its_link(served: Cast) -> None:
    result = await asked(served)
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        assert not exchange.task.done()
        page = await opened(result)
        assert page.status == 200
        assert b"Thank you" in page.raw
        assert (await exchange.done()).check().text == "signed"


async def test_a_link_may_be_opened_before_anybody_waits(served: Cast) -> None:
    result = await asked(served)
    assert (await opened(result)).status == 200
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        assert (await exchange.done()).check().text == "signed"


async def test_who_waits_in_vain_is_told_so(served: Cast) -> None:
    reply = await call("acme", "sign", {"seconds": 0}, served.owner.mcp_token, capabilities=CAPABLE)
    body = retry(reply.result, seconds=0)
    async with begun("acme", body, served.owner.mcp_token) as exchange:
        assert (await exchange.done()).check().text == "not signed"


async def test_the_link_of_one_call_ends_no_other(served: Cast) -> None:
    mine, other = await asked(served), await asked(served)
    await opened(other)
    async with begun("acme", retry(mine), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        assert not exchange.task.done()
        await opened(mine)
        assert (await exchange.done()).check().text == "signed"


async def test_who_hangs_up_waits_no_longer(served: Cast) -> None:
    result = await asked(served)
    async with begun("acme", retry(result), served.owner.mcp_token) as exchange:
        await asyncio.wait_for(probes().running.wait(), SECONDS)
        exchange.hang_up()
        await exchange.done()
    assert exchange.reply.status == 0
