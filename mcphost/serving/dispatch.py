"""From a method's name to the handler that serves it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcphost.protocol.errors import method_not_found
from mcphost.serving import discovery, tools
from mcphost.serving.incoming import Incoming
from mcphost.serving.streams import Stream

Handler = Callable[[Incoming, Stream], Awaitable[Mapping[str, Any]]]

HANDLERS: Mapping[str, Handler] = {
    "server/discover": discovery.discover,
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
}


async def dispatch(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """The result of the request, ready for the wire.

    Raises ProtocolError, METHOD_NOT_FOUND among others (spec: basic/transports/streamable-http,
    Protocol Version Header).
    """
    handler = HANDLERS.get(incoming.exchange.method)
    if handler is None:
        raise method_not_found(incoming.exchange.method)
    return await handler(incoming, stream)
