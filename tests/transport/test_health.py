"""`/healthz` and `/readyz`, and the Host check of all operations paths."""

from contextlib import ExitStack

import pytest
from django.test import override_settings

from mcphost.feed.loop import loop as feed
from mcphost.observability import health
from mcphost.serving.database import in_database
from mcphost.transport.server.operations_port import PATHS
from tests.cast import Cast
from tests.mcp import Exchange, Reply

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "a-token-of-enough-letters"
WITH_TOKEN = {"authorization": f"Bearer {TOKEN}"}
OPEN = override_settings(MCPHOST_METRICS_TOKEN=TOKEN, ALLOWED_HOSTS=["mcp.example.com"])


async def _get(path: str, **headers: str) -> Reply:
    exchange = Exchange(path, headers, "GET")
    exchange.write(b"")
    return await exchange.done()


async def test_the_liveness_endpoint_answers_ok(served: Cast) -> None:
    reply = await _get("/healthz")
    assert (reply.status, reply.last) == (200, {"status": "ok"})


@OPEN
async def test_a_ready_process_has_no_problems(served: Cast) -> None:
    await _get("/readyz")
    await in_database(feed.poll)
    assert (await _get("/readyz")).last == {"status": "ready"}
    reply = await _get("/readyz", **WITH_TOKEN)
    assert (reply.status, reply.last["status"], reply.last["problems"]) == (200, "ready", {})


@pytest.mark.parametrize("configured", ["", TOKEN])
async def test_an_unready_process_shows_its_problems_only_to_monitoring(
    served: Cast, configured: str
) -> None:
    with ExitStack() as removals:
        removals.callback(health.register("probe", lambda: "it is raining"))
        removals.callback(health.warn("warner", lambda: "it is cold"))
        removals.callback(health.inform("weather", lambda: {"wind": "strong"}))
        with override_settings(MCPHOST_METRICS_TOKEN=configured):
            plain = [
                await _get("/readyz", **({"authorization": token} if token else {}))
                for token in ("", "Bearer ", "Bearer another", f"Basic {TOKEN}")
            ]
            detailed = await _get("/readyz", **WITH_TOKEN)
        health.warn("warner", lambda: None)
        health.inform("weather", dict)
    assert [(reply.status, reply.last) for reply in plain] == [(503, {"status": "unready"})] * 4
    if configured:
        assert detailed.status == 503
        assert detailed.last["problems"]["probe"] == "it is raining"
        assert detailed.last["warnings"]["warner"] == "it is cold"
        assert detailed.last["weather"] == {"wind": "strong"}
    else:
        assert detailed.last == plain[0].last


KNOWN = (
    "mcp.example.com",
    "mcp.example.com:8000",
    "localhost:8000",
    "127.0.0.1:8000",
    "10.0.0.7:8000",
    "[fd00::7]:8000",
)
UNKNOWN = (
    "attacker.example",
    "127.0.0.1.attacker.example",
    "localhost.attacker.example:8000",
    "10.0.0.7@attacker.example",
    "",
)


@OPEN
async def test_an_unknown_host_is_refused_on_every_operations_path(
    served: Cast,
) -> None:
    for path in PATHS:
        for host in KNOWN:
            assert (await _get(path, host=host, **WITH_TOKEN)).status in (200, 503), (path, host)
        for host in UNKNOWN:
            reply = await _get(path, host=host, **WITH_TOKEN)
            assert (reply.status, reply.last) == (403, {"error": "host_not_allowed"}), (path, host)
        # HTTP/1.0, as HAProxy sends it; a browser always sends one.
        assert (await _get(path, **WITH_TOKEN)).status in (200, 503)
