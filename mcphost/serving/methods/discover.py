"""`server/discover`: what this server is and can do (spec: server/discover)."""

from collections.abc import Mapping
from typing import Any

from mcphost.protocol import results
from mcphost.protocol.eras import SUPPORTED
from mcphost.serving.context import Incoming
from mcphost.serving.policy import cache_scope
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import server_info

CAPABILITIES: Mapping[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
TTL_MS = 0


async def discover(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Return versions, capabilities and the tenant's instructions. Needs no scope."""
    result: dict[str, Any] = {"supportedVersions": list(SUPPORTED), "capabilities": CAPABILITIES}
    if incoming.tenant.instructions:
        result["instructions"] = incoming.tenant.instructions
    cacheable = results.cacheable(result, TTL_MS, cache_scope(incoming.tenant, same_for_all=True))
    return results.complete(cacheable, server_info(incoming.tenant.title, incoming.tenant.icon))
