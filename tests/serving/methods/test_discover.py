"""`server/discover` (spec: server/discover)."""

import pytest

from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.mcp import ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.requirement("logging.capability")
@pytest.mark.requirement("completion.capability")
@pytest.mark.requirement("prompts.capability")
@pytest.mark.requirement("resources.capability")
@pytest.mark.requirement("tools.capability")
@pytest.mark.requirement("discover.same-versions")
@pytest.mark.requirement("discover.server-info")
@pytest.mark.requirement("discover.implemented")
async def test_discover_returns_versions_capabilities_and_server_info(served: Cast) -> None:
    reply = await ask("acme", "server/discover", token=served.owner.mcp_token)
    assert reply.status == 200
    assert reply.result["supportedVersions"] == [
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
    ]
    assert reply.result["capabilities"] == {
        "completions": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }
    assert reply.result["resultType"] == "complete"
    info = reply.result["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert info["name"] == "mcphost"
    assert info["title"] == "Acme"


@pytest.mark.requirement("discover.instructions")
async def test_discover_returns_the_tenants_instructions(served: Cast) -> None:
    fields = TenantFields(title="Acme", instructions="Ask politely.")
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    reply = await ask("acme", "server/discover", token=served.owner.mcp_token)
    assert reply.result["instructions"] == "Ask politely."


@pytest.mark.requirement("caching.scope")
@pytest.mark.requirement("caching.hints")
async def test_discover_results_of_a_private_tenant_are_cached_per_caller(served: Cast) -> None:
    private = await ask("acme", "server/discover", token=served.owner.mcp_token)
    public = await ask("commons", "server/discover")
    assert (private.result["cacheScope"], private.result["ttlMs"]) == ("private", 0)
    assert (public.result["cacheScope"], public.result["ttlMs"]) == ("public", 0)


@pytest.mark.requirement("http.unknown-method")
async def test_an_unsupported_method_gets_404_with_its_id(served: Cast) -> None:
    for method in ("initialize", "ping", "logging/setLevel", "tasks/list", "nonsense"):
        reply = await ask("acme", method, token=served.owner.mcp_token)
        assert (reply.status, reply.error["code"]) == (404, -32601)
        assert reply.last["id"] == 1
