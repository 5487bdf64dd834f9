"""From a method's name to the handler that serves it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcphost.protocol.errors import method_not_found
from mcphost.serving import completion, discovery, prompts, resources, subscriptions, tools
from mcphost.serving.incoming import Incoming
from mcphost.serving.streams import StandingStream, Stream

Handler = Callable[[Incoming, Stream], Awaitable[Mapping[str, Any]]]
StandingHandler = Callable[[Incoming, StandingStream], Awaitable[Mapping[str, Any]]]

HANDLERS: Mapping[str, Handler] = {
    "server/discover": discovery.discover,
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "completion/complete": completion.complete,
}

STANDING: Mapping[str, StandingHandler] = {"subscriptions/listen": subscriptions.listen}
"""The methods whose stream stays open until the client hangs up."""


async def dispatch(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """The result of the request, ready for the wire.

    Raises ProtocolError, METHOD_NOT_FOUND among others (spec: basic/transports/streamable-http,
    Protocol Version Header).
    """
    handler = HANDLERS.get(incoming.exchange.method)
    if handler is None:
        raise method_not_found(incoming.exchange.method)
    return await handler(incoming, stream)


async def attend(incoming: Incoming, stream: StandingStream) -> Mapping[str, Any]:
    """The same for the methods of STANDING: the result is what ends the stream."""
    return await STANDING[incoming.exchange.method](incoming, stream)
