"""Descriptions of resources and resource templates for clients (spec: server/resources)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcphost.protocol.errors import INVALID_PARAMS, ProtocolError, invalid_params

_NOT_FOUND: Final = "Resource not found"


@dataclass(frozen=True, slots=True)
class ResourceListing:
    """The entry of a resource in `resources/list`. Empty and None fields are left out.

    `uri` has passed `uris.check_uri`; `size` is in bytes before any encoding.
    """

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size: int | None = None
    annotations: Mapping[str, Any] | None = None
    icons: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class TemplateListing:
    """The entry of a template in `resources/templates/list`. Empty and None fields are left out."""

    uri_template: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""
    annotations: Mapping[str, Any] | None = None
    icons: Sequence[Mapping[str, Any]] = ()


def describe_resource(listing: ResourceListing) -> dict[str, Any]:
    """Return the resource in wire format."""
    resource = {"uri": listing.uri, **_describe(listing)}
    if listing.size is not None:
        resource["size"] = listing.size
    return resource


def describe_template(listing: TemplateListing) -> dict[str, Any]:
    """Return the template in wire format."""
    return {"uriTemplate": listing.uri_template, **_describe(listing)}


def resource_not_found(uri: str) -> ProtocolError:
    """Build the -32602 error with the requested URI (spec: server/resources, "Error Handling")."""
    return invalid_params(_NOT_FOUND, {"uri": uri})


def is_not_found(error: ProtocolError) -> bool:
    """Whether the error is the one of `resource_not_found`."""
    return error.code == INVALID_PARAMS and error.message == _NOT_FOUND


def _describe(listing: ResourceListing | TemplateListing) -> dict[str, Any]:
    described: dict[str, Any] = {"name": listing.name}
    if listing.title:
        described["title"] = listing.title
    if listing.description:
        described["description"] = listing.description
    if listing.mime_type:
        described["mimeType"] = listing.mime_type
    if listing.annotations:
        described["annotations"] = listing.annotations
    if listing.icons:
        described["icons"] = list(listing.icons)
    return described
