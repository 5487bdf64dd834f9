"""`/metrics`: requires the token, and contains no data of tenants, tools or clients."""

from typing import Any

import pytest
from django.test import override_settings
from prometheus_client.parser import text_string_to_metric_families

from mcphost.observability import counters, exposition, health
from tests.cast import Cast
from tests.mcp import PREFIX, Exchange, Reply, call, listening, request, send

pytestmark = pytest.mark.django_db(transaction=True)


TOKEN = "a-token-for-prometheus"
OPEN = override_settings(MCPHOST_METRICS_TOKEN=TOKEN)


async def get(authorization: str = f"Bearer {TOKEN}", method: str = "GET", **more: str) -> Reply:
    headers = {"host": "localhost", "authorization": authorization, **more}
    exchange = Exchange("/metrics", {k: v for k, v in headers.items() if v}, method)
    exchange.write(b"")
    return await exchange.done()


async def scraped() -> list[Any]:
    reply = await get()
    assert reply.status == 200
    families = text_string_to_metric_families(reply.raw.decode())
    return [sample for family in families for sample in family.samples]


async def count(name: str, **labels: str) -> float:
    return sum(
        sample.value
        for sample in await scraped()
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def test_without_a_configured_token_metrics_are_not_found(served: Cast) -> None:
    for authorization in ("", "Bearer ", "Bearer x", f"Bearer {TOKEN}"):
        reply = await get(authorization)
        assert (reply.status, reply.last) == (404, {"error": "not_found"})


@OPEN
async def test_metrics_require_the_token_and_get(served: Cast) -> None:
    for authorization in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        "Bearer é",
        f"Bearer {served.owner.mcp_token}",
    ):
        reply = await get(authorization)
        assert (reply.status, reply.last) == (401, {"error": "unauthorized"}), authorization
        assert reply.headers["www-authenticate"].startswith("Bearer ")
    assert (await get(method="HEAD")).status == 200
    refused = await get(method="POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


@OPEN
async def test_a_call_is_counted_in_the_metrics(served: Cast) -> None:
    name, labels = (
        "mcphost_request_duration_seconds_count",
        {"method": "tools/call", "status": "2xx"},
    )
    before, rounds = await count(name, **labels), await count("mcphost_rounds_total")
    running = await count("mcphost_rounds_running")
    requests = await count("mcphost_requests_running")
    assert (await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)).text == "a"
    assert await count(name, **labels) == before + 1
    assert await count("mcphost_rounds_total") == rounds + 1
    assert await count("mcphost_rounds_running") == running
    assert await count("mcphost_requests_running") == requests


ENDS: tuple[tuple[str, Any, str, str], ...] = (
    ("nowhere", request("tools/list"), "none", "4xx"),
    ("commons", b"{", "none", "4xx"),
    ("commons", request("tools/list"), "tools/list", "2xx"),
    ("commons", request("canary/method"), "other", "4xx"),
    ("commons", {"jsonrpc": "2.0", "method": "notifications/cancelled"}, "notification", "2xx"),
)


@OPEN
async def test_every_request_is_counted_once_with_its_status(served: Cast) -> None:
    name = "mcphost_request_duration_seconds_count"
    for tenant, body, method, status in ENDS:
        before, every = await count(name, method=method, status=status), await count(name)
        await send(tenant, body)
        assert await count(name, method=method, status=status) == before + 1, body
        assert await count(name) == every + 1


def closed_sets() -> dict[str, set[str]]:
    """The allowed values of each label, by its name."""
    sets: dict[str, set[str]] = {}
    for family in counters.metrics.families.values():
        for label, values in family.labels.items():
            sets.setdefault(label, set()).update(values)
    bounds = {str(float(b)) for f in counters.metrics.families.values() for b in f.bounds}
    return sets | {
        "le": {*bounds, "+Inf"},
        "generation": {"0", "1", "2"},
        "probe": set(health.registry.names()),
    }


@OPEN
async def test_labels_never_name_a_tenant_a_tool_or_a_client(served: Cast) -> None:
    """After many requests, with canaries in every place that a client can write to."""
    token, canary = served.owner.mcp_token, "canary7f3a"
    client = {f"{PREFIX}clientInfo": {"name": canary, "version": canary}}
    for tool in ("echo", "fail", canary):
        await call("acme", tool, {"text": canary}, token, progressToken=canary)
    await send(canary, request("tools/list"))
    await send("acme", request(f"{canary}/list"), token)
    await send("acme", request("tools/list", {"cursor": canary}), token)
    await send("acme", request(f"notifications/{canary}"), token, {"user-agent": canary})
    await send("acme", {**request("server/discover"), "id": canary}, token)
    await send("acme", {"jsonrpc": canary, "method": canary}, token)
    for method, params in {
        "prompts/get": {"name": canary},
        "resources/read": {"uri": f"{canary}://{canary}"},
        "completion/complete": {
            "ref": {"type": "ref/prompt", "name": canary},
            "argument": {"name": canary, "value": canary},
        },
    }.items():
        await send("acme", request(method, params, **client), token)
    async with listening(
        "acme", token, toolsListChanged=True, resourceSubscriptions=[f"{canary}:a"]
    ):
        assert await count("mcphost_listeners_open") == 1
        samples, allowed = await scraped(), closed_sets()
    assert await count("mcphost_listeners_open") == 0
    assert len({sample.name for sample in samples}) > 30
    for sample in samples:
        for label, value in sample.labels.items():
            assert value in allowed[label], (sample.name, label)
    text = exposition.render("")[0].decode()
    for secret in (canary, "acme", "commons", "echo", "tests", token):
        assert secret not in text
