"""`resources/list`, `resources/templates/list` and `resources/read` (spec: server/resources)."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from mcphost.protocol import results
from mcphost.protocol.errors import invalid_params
from mcphost.protocol.resources import resource_not_found
from mcphost.protocol.uris import percent_encoded
from mcphost.serving import lookups, policy
from mcphost.serving.context import Incoming
from mcphost.serving.execution import calls
from mcphost.serving.lookups import CallTarget, offering
from mcphost.serving.methods import pagination
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import finish, server_info


async def list_resources(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """One page of the resources visible to the caller, ordered by URI."""
    return await pagination.page(incoming, "resources", attrgetter("resources"), attrgetter("uri"))


async def list_templates(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """One page of the resource templates visible to the caller, ordered by their text."""
    return await pagination.page(
        incoming, "resourceTemplates", attrgetter("templates"), attrgetter("uri_template.text")
    )


async def read_resource(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Read the resource at a URI, or the template that the URI matches.

    The result is never cached for other callers: the program may depend on the caller.
    """
    policy.require_scope(incoming.principal, policy.CALL)
    written = incoming.exchange.params["uri"]
    uri = percent_encoded(written)
    offered, scopes = await offering(incoming.tenant.id), incoming.principal.scopes
    try:
        match = lookups.resource(offered, uri, scopes)
    except ValueError as error:
        raise invalid_params(f"params.uri: {error}", {"uri": written}) from None
    if match is None:
        absent = lookups.absent(offered, CallTarget("resources/read", uri), scopes)
        raise absent or resource_not_found(written)
    primitive, arguments = match
    reply = await calls.run(incoming, primitive, uri, arguments, stream)
    return finish(reply, server_info(incoming.tenant.title, incoming.tenant.icon), _cacheable)


def _cacheable(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return results.cacheable(result, pagination.TTL_MS, "private")
