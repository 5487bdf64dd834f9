"""`server/discover`: what this server is and can do (spec: server/discover)."""

from collections.abc import Mapping
from typing import Any

from mcphost.protocol import results
from mcphost.protocol.eras import SUPPORTED
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.policy import cache_scope
from mcphost.serving.streams import Stream

CAPABILITIES: Mapping[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
TTL_MS = 0


async def discover(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """Answer with versions, capabilities and the tenant's instructions. Any caller may ask."""
    result: dict[str, Any] = {"supportedVersions": list(SUPPORTED), "capabilities": CAPABILITIES}
    if incoming.tenant.instructions:
        result["instructions"] = incoming.tenant.instructions
    cacheable = results.cacheable(result, TTL_MS, cache_scope(incoming.tenant, same_for_all=True))
    return results.complete(cacheable, server_info(incoming.tenant))
