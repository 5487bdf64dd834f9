"""Requests that are cancelled, and requests with unexpected errors."""

import asyncio

import orjson
import pytest

from mcphost.serving.methods import dispatch
from mcphost.serving.subscriptions.registry import listeners
from tests.cast import Cast
from tests.mcp import Exchange, ask, headers_for, request
from tests.served import probes

pytestmark = pytest.mark.django_db(transaction=True)


def posted(cast: Cast, body: dict[str, object]) -> Exchange:
    exchange = Exchange("/t/acme/mcp", headers_for(body, cast.owner.mcp_token))
    exchange.write(orjson.dumps(body))
    return exchange


async def cancelled(exchange: Exchange) -> None:
    """Assert that a request that the server's shutdown cancels ends, and stays cancelled."""
    exchange.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await exchange.done()


async def test_cancelling_the_request_at_shutdown_ends_its_call(served: Cast) -> None:
    exchange = posted(served, request("tools/call", {"name": "hang"}))
    async with asyncio.timeout(10):
        await probes().running.wait()
    await cancelled(exchange)
    assert probes().cancelled.is_set()


async def test_cancelling_the_request_at_shutdown_ends_its_subscription(served: Cast) -> None:
    wanted = {"notifications": {"toolsListChanged": True}}
    exchange = posted(served, request("subscriptions/listen", wanted))
    await exchange.until(b"acknowledged")
    assert len(listeners) == 1
    await cancelled(exchange)
    assert len(listeners) == 0


async def test_an_unexpected_exception_is_an_internal_error_without_details(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object) -> dict[str, object]:
        raise LookupError("of the insides")

    monkeypatch.setattr(dispatch, "HANDLERS", {"tools/list": breaks})
    monkeypatch.setattr(dispatch, "LONG_LIVED", {"subscriptions/listen": breaks})
    wanted = {"notifications": {"toolsListChanged": True}}
    for method, params in (("tools/list", {}), ("subscriptions/listen", wanted)):
        reply = await ask("acme", method, params, served.owner.mcp_token)
        assert (reply.status, reply.error) == (200, {"code": -32603, "message": "Internal error"})
