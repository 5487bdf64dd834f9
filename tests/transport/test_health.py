"""`/healthz` and `/readyz`."""

import pytest

from mcphost.feed.loop import loop as feed
from mcphost.observability import health
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.mcp import Exchange, Reply

pytestmark = pytest.mark.django_db(transaction=True)


async def _get(path: str) -> Reply:
    exchange = Exchange(path, {"host": "anything"}, "GET")
    exchange.write(b"")
    return await exchange.done()


async def test_a_living_process_says_so(served: Cast) -> None:
    reply = await _get("/healthz")
    assert (reply.status, reply.last) == (200, {"status": "ok"})


async def test_a_ready_process_has_no_problems(served: Cast) -> None:
    await _get("/readyz")
    await in_database(feed.poll)
    reply = await _get("/readyz")
    assert (reply.status, reply.last["status"], reply.last["problems"]) == (200, "ready", {})


async def test_an_unready_process_says_what_is_wrong(served: Cast) -> None:
    health.register("probe", lambda: "it is raining")
    try:
        reply = await _get("/readyz")
    finally:
        health.unregister("probe")
    assert reply.status == 503
    assert reply.last["problems"]["probe"] == "it is raining"
