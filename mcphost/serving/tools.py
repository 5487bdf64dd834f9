"""`tools/list` and `tools/call` (spec: server/tools)."""

from collections.abc import Mapping
from typing import Any

from mcphost.catalogue.selectors import ToolSnapshot
from mcphost.protocol.errors import invalid_params, shown
from mcphost.protocol.headers import check_param_headers
from mcphost.serving import finding, pages, policy, running
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.replies import finish
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import Stream


def _name(tool: ToolSnapshot) -> str:
    return tool.name


async def list_tools(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """One page of the tools that the caller may know of, ordered by name."""
    start = await pages.after(incoming)
    offered = (await offering(incoming.tenant.id)).tools
    return await pages.page(incoming, start, "tools", offered, _name)


async def call_tool(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """Run a round of a call and answer with its outcome."""
    policy.require_scope(incoming.principal, policy.CALL)
    tool = await _find(incoming)
    arguments = incoming.exchange.params.get("arguments") or {}
    if incoming.exchange.is_mirrored:
        check_param_headers(incoming.headers, tool.param_headers, arguments)
    reply = await running.run(incoming, tool, tool.name, arguments, stream)
    return finish(reply, server_info(incoming.tenant))


async def _find(incoming: Incoming) -> ToolSnapshot:
    name = incoming.exchange.params["name"]
    tool = finding.tool(await offering(incoming.tenant.id), name, incoming.principal.scopes)
    if tool is None:
        raise invalid_params(f"Unknown tool: {shown(name)}")
    return tool
