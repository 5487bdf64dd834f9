"""`tools/list` and `tools/call` (spec: server/tools)."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from mcphost.protocol.errors import invalid_params, shown
from mcphost.protocol.headers import check_param_headers
from mcphost.runtime.program import TaskSupport
from mcphost.serving import limits, lookups, policy
from mcphost.serving.context import Incoming
from mcphost.serving.execution import calls
from mcphost.serving.execution.stored_tasks import check_task_support
from mcphost.serving.lookups import CallTarget, offering
from mcphost.serving.methods import pagination
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import finish, server_info


async def list_tools(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """One page of the tools visible to the caller, ordered by name."""
    return await pagination.page(incoming, "tools", attrgetter("tools"), attrgetter("name"))


async def call_tool(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Run a round of a tool call and return its result."""
    policy.require_scope(incoming.principal, policy.CALL)
    name = incoming.exchange.params["name"]
    offered, scopes = await offering(incoming.tenant.id), incoming.principal.scopes
    tool = lookups.tool(offered, name, scopes)
    if tool is None:
        absent = lookups.absent(offered, CallTarget("tools/call", name), scopes)
        raise absent or invalid_params(f"Unknown tool: {shown(name)}")
    if tool.task_support is not TaskSupport.NEVER or incoming.session is not None:
        check_task_support(incoming, tool.name, tool.task_support)
    arguments = incoming.exchange.params.get("arguments") or {}
    limits.check_size(incoming, tool.input_validator, arguments)
    if tool.param_headers and incoming.exchange.is_mirrored:
        check_param_headers(incoming.headers, tool.param_headers, arguments)
    reply = await calls.run(incoming, tool, tool.name, arguments, stream)
    return finish(reply, server_info(incoming.tenant.title, incoming.tenant.icon))
