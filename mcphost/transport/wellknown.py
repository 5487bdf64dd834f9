"""`/.well-known/`: nothing to be found until there is an authorization server (RFC 9728, 8414)."""

from collections.abc import Mapping
from typing import Any

from mcphost.transport import cors
from mcphost.transport.bodies import Receive
from mcphost.transport.responder import Send, send_json


async def not_found(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """A plain JSON 404, alike for every path."""
    await send_json(send, 404, b'{"error":"not_found"}', cors.ANYONE)
