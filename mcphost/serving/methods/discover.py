"""`server/discover`: what this server is and can do (spec: server/discover)."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mcphost.protocol import results
from mcphost.protocol.revisions import SUPPORTED
from mcphost.protocol.tasks import EXTENSION
from mcphost.serving.context import Incoming
from mcphost.serving.policy import cache_scope
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import server_info

CAPABILITIES: Mapping[str, Any] = {
    "completions": {},
    "extensions": {EXTENSION: {}},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
TTL_MS = 0


async def discover(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Return versions, capabilities and the tenant's instructions. Needs no scope."""
    tenant = incoming.tenant
    scope = cache_scope(tenant, same_for_all=True)
    return _discovered(tenant.title, tenant.icon, tenant.instructions, scope)


@lru_cache(maxsize=512)
def _discovered(
    title: str, icon: str, instructions: str, scope: results.CacheScope
) -> Mapping[str, Any]:
    result: dict[str, Any] = {"supportedVersions": list(SUPPORTED), "capabilities": CAPABILITIES}
    if instructions:
        result["instructions"] = instructions
    cacheable = results.cacheable(result, TTL_MS, scope)
    return results.prepared(results.complete(cacheable, server_info(title, icon)))
