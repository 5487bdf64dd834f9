"""`resources/list`, `resources/templates/list` and `resources/read` (spec: server/resources)."""

from collections.abc import Mapping
from typing import Any

from mcphost.catalogue.selectors import Offering, ResourceSnapshot, TemplateSnapshot
from mcphost.protocol import results
from mcphost.protocol.errors import invalid_params
from mcphost.protocol.resources import resource_not_found
from mcphost.serving import finding, pages, policy, running
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.replies import finish
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import Stream


def _uri(resource: ResourceSnapshot) -> str:
    return resource.uri


def _text(template: TemplateSnapshot) -> str:
    return template.uri_template.text


async def list_resources(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """One page of the resources that the caller may know of, ordered by URI."""
    start = await pages.after(incoming)
    offered = (await offering(incoming.tenant.id)).resources
    return await pages.page(incoming, start, "resources", offered, _uri)


async def list_templates(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """One page of the templates that the caller may know of, ordered as they are written."""
    start = await pages.after(incoming)
    offered = (await offering(incoming.tenant.id)).templates
    return await pages.page(incoming, start, "resourceTemplates", offered, _text)


async def read_resource(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """What is to be read at a URI now, of a resource or of a template that it fits.

    What one caller read is nobody else's: the program may look at who asks.
    """
    policy.require_scope(incoming.principal, policy.CALL)
    uri = incoming.exchange.params["uri"]
    found = _find(await offering(incoming.tenant.id), uri, incoming.principal.scopes)
    reply = await running.run(incoming, found[0], uri, found[1], stream)
    return finish(reply, server_info(incoming.tenant), _cacheable)


def _cacheable(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return results.cacheable(result, pages.TTL_MS, "private")


def _find(offered: Offering, uri: str, scopes: finding.Scopes) -> finding.Found:
    try:
        found = finding.resource(offered, uri, scopes)
    except ValueError as error:
        raise invalid_params(f"params.uri: {error}", {"uri": uri}) from None
    if found is None:
        raise resource_not_found(uri)
    return found
