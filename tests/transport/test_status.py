"""`/status.json`: protected as the metrics are, and about all processes."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from mcphost import __version__
from mcphost.catalogue import remote_functions
from mcphost.feed.models import Node
from mcphost.feed.nodes import ALIVE, Heartbeat
from mcphost.observability.availability import Source, availability
from mcphost.routing import process
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.mcp import Exchange, Reply

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "a-token-for-monitoring"
OPEN = override_settings(MCPHOST_METRICS_TOKEN=TOKEN)


async def get(authorization: str = f"Bearer {TOKEN}", method: str = "GET") -> Reply:
    headers = {"host": "localhost", "authorization": authorization}
    exchange = Exchange("/status.json", {k: v for k, v in headers.items() if v}, method)
    exchange.write(b"")
    return await exchange.done()


def lines(reply: Reply) -> dict[str, Any]:
    return {line["name"]: line["reason"] for line in reply.last["lines"] if line["reason"]}


@OPEN
async def test_the_status_requires_the_token_and_get(served: Cast) -> None:
    tenants = f"Bearer {served.owner.mcp_token}"
    for authorization in ("", "Bearer wrong", f"Basic {TOKEN}", TOKEN, tenants):
        reply = await get(authorization)
        assert (reply.status, reply.last) == (401, {"error": "unauthorized"}), authorization
    refused = await get(method="POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


@OPEN
@override_settings(MCPHOST_ALONE=False, MCPHOST_TASK_ENGINE="embedded")
async def test_a_dead_process_is_a_problem_of_the_whole_status(served: Cast) -> None:
    one, two = Heartbeat(), Heartbeat()
    for each in (one, two):
        each.report = lambda: {"role": "server", "version": __version__}
        each.functions = remote_functions.declared
        await in_database(each.beat)
    try:
        reply = await get()
        assert (reply.status, lines(reply)) == (200, {})
        assert reply.headers["cache-control"] == "no-store"
        late = timezone.now() - ALIVE - timedelta(seconds=1)
        await in_database(lambda: Node.objects.filter(id=two.id).update(seen_at=late))
        reply = await get()
    finally:
        await process.stop()  # its own heartbeat ends, too
    assert (reply.status, list(lines(reply))) == (503, ["processes"])
    assert [each["state"] for each in reply.last["processes"]].count("gone") == 1


@OPEN
async def test_without_the_database_the_status_covers_this_process(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "probe", None)  # it would find the database at once
    availability.lost(Source.CONNECTION, "a test")
    try:
        reply = await get()
    finally:
        availability.reached(Source.CONNECTION)
    assert reply.status == 503
    assert "The database is unreachable." in lines(reply)["database"]
    assert len(reply.last["processes"]) == 1
