"""`tools/list` and `tools/call` (spec: server/tools)."""

from collections.abc import Mapping
from typing import Any

from mcphost.audit.records import new_id
from mcphost.catalogue.selectors import ToolSnapshot
from mcphost.protocol import results
from mcphost.protocol.errors import invalid_params, shown
from mcphost.protocol.headers import check_param_headers
from mcphost.runtime.call import Call, Client, Delivery
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.ports import Limits, Ports
from mcphost.serving import cursors, limits, policy, rounds
from mcphost.serving.announcing import TenantAnnouncer
from mcphost.serving.deliveries import modern
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.notifier import notifier_for
from mcphost.serving.options import options
from mcphost.serving.programs import threads
from mcphost.serving.snapshots import toolbox
from mcphost.serving.streams import Stream
from mcphost.serving.turn import Turn

TTL_MS = 0


async def list_tools(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """One page of the tools that the caller may know of, ordered by name."""
    principal = incoming.principal
    policy.require_scope(principal, policy.LIST)
    cursor = incoming.exchange.params.get("cursor")
    after = "" if cursor is None else await cursors.read(principal, "tools/list", cursor)
    tools = (await toolbox(incoming.tenant.id)).tools
    shown = [tool for tool in tools if tool.name > after and policy.visible(principal, tool)]
    size = options().page_size
    page: dict[str, Any] = {"tools": [tool.listing for tool in shown[:size]]}
    if len(shown) > size:
        page["nextCursor"] = await cursors.issue(principal, "tools/list", shown[size - 1].name)
    scope = policy.cache_scope(incoming.tenant, same_for_all=not any(t.scopes for t in tools))
    return results.complete(results.cacheable(page, TTL_MS, scope), server_info(incoming.tenant))


async def call_tool(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """Run the first round of a call and answer with its outcome."""
    policy.require_scope(incoming.principal, policy.CALL)
    tool = await _find(incoming)
    arguments = incoming.exchange.params.get("arguments") or {}
    check_param_headers(incoming.headers, tool.param_headers, arguments)
    turn = Turn(incoming, tool, _call(incoming, tool, arguments), EMPTY)
    ports = _ports(incoming, tool, stream)
    if limits.are_set(incoming):
        await limits.take_turn(incoming)
        with limits.occupy(incoming):
            outcome = await rounds.run(turn, ports)
    else:
        outcome = await rounds.run(turn, ports)
    return results.complete(modern.deliver(outcome), server_info(incoming.tenant))


def _ports(incoming: Incoming, tool: ToolSnapshot, stream: Stream) -> Ports:
    seconds = tool.time_limit or options().tool_seconds
    return Ports(
        threads=threads(),
        notifier=notifier_for(incoming.exchange, stream),
        limits=Limits(seconds, options().result_limit),
        announcer=TenantAnnouncer(incoming.tenant.id),
    )


async def _find(incoming: Incoming) -> ToolSnapshot:
    name = incoming.exchange.params["name"]
    tool = (await toolbox(incoming.tenant.id)).get(name)
    if tool is None or not policy.visible(incoming.principal, tool):
        raise invalid_params(f"Unknown tool: {shown(name)}")
    return tool


def _call(incoming: Incoming, tool: ToolSnapshot, arguments: Mapping[str, Any]) -> Call:
    meta = incoming.exchange.meta
    client = Client(
        name=str(meta.client_info.get("name", "")),
        version=str(meta.client_info.get("version", "")),
        capabilities=meta.capabilities,
    )
    return Call(
        id=new_id(),
        tenant=incoming.tenant.id,
        principal=incoming.principal,
        method=incoming.exchange.method,
        target=tool.name,
        arguments=arguments,
        client=client,
        revision=incoming.exchange.revision,
        era=incoming.exchange.era,
        delivery=Delivery.MODERN,
        trace_id=incoming.trace_id,
    )
