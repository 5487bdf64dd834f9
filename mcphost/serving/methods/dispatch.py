"""The table of methods and their handlers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcphost.protocol.errors import method_not_found
from mcphost.serving.context import Incoming
from mcphost.serving.methods import completion, discover, prompts, resources, tasks, tools
from mcphost.serving.ports import EventStream, LongLivedStream
from mcphost.serving.subscriptions.listen import listen

Handler = Callable[[Incoming, EventStream], Awaitable[Mapping[str, Any]]]
LongLivedHandler = Callable[[Incoming, LongLivedStream], Awaitable[Mapping[str, Any]]]

HANDLERS: Mapping[str, Handler] = {
    "server/discover": discover.discover,
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "completion/complete": completion.complete,
    "tasks/get": tasks.get_task,
    "tasks/update": tasks.update_task,
    "tasks/cancel": tasks.cancel_task,
}

LONG_LIVED: Mapping[str, LongLivedHandler] = {"subscriptions/listen": listen}
"""The methods whose stream stays open until the client disconnects."""


def dispatch(incoming: Incoming, stream: EventStream) -> Awaitable[Mapping[str, Any]]:
    """Run the request's method and return its complete result.

    When awaited, raises ProtocolError; for an unknown method METHOD_NOT_FOUND
    (spec: basic/transports/streamable-http, Protocol Version Header).
    """
    handler = HANDLERS.get(incoming.exchange.method)
    return (handler or _unknown)(incoming, stream)


async def _unknown(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    raise method_not_found(incoming.exchange.method)


async def dispatch_long_lived(incoming: Incoming, stream: LongLivedStream) -> Mapping[str, Any]:
    """Run a method of LONG_LIVED. Its result ends the stream."""
    return await LONG_LIVED[incoming.exchange.method](incoming, stream)
