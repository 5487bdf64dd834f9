"""Turn a ProtocolError into an HTTP response: status and headers."""

import orjson

from mcphost.identity.oauth import addresses
from mcphost.protocol.errors import (
    FORBIDDEN,
    METHOD_NOT_ALLOWED,
    UNAUTHORIZED,
    ProtocolError,
)
from mcphost.protocol.headers import Headers
from mcphost.tenants.fields import SLUG
from mcphost.transport.guard import ALLOWED_METHODS
from mcphost.transport.response import RawHeaders

NOT_FOUND = orjson.dumps(
    {
        "error": "not_found",
        "error_description": (
            "There is neither an MCP server nor OAuth at this address. A tenant's MCP server is at "
            "/t/<tenant>/mcp. Clients sign in with a browser (/.well-known/oauth-authorization-server), or "
            "send a token in the header Authorization: see the page Connect of the tenant in the console, "
            "/admin/."
        ),
    }
)
"""The body for every path that does not exist. It is in the form of an OAuth error (RFC 6749 section 5.2):
clients look for OAuth at several paths, and show it."""


def status_of(error: ProtocolError) -> int:
    """The HTTP status of the error."""
    return error.status


def headers_of(error: ProtocolError, request: Headers, slug: str) -> RawHeaders:
    """The headers that the status requires: WWW-Authenticate, Allow, Retry-After.

    `request` are the headers of the request, whose Host has been checked; `slug` is the name in its path.
    """
    headers: list[tuple[bytes, bytes]] = []
    data = error.data or {}
    if error.code == UNAUTHORIZED:
        # RFC 6750 section 3: no error if the request had no credential.
        reason = "invalid_token" if data.get("presented") else ""
        headers.append(_challenge(reason, " ".join(addresses.SCOPES), request, slug))
    elif error.code == FORBIDDEN and "scope" in data:
        headers.append(_challenge("insufficient_scope", data["scope"], request, slug))
    elif error.code == METHOD_NOT_ALLOWED:
        headers.append((b"allow", ALLOWED_METHODS.encode()))
    retry_after = data.get("retryAfter")
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    return headers


def _challenge(reason: str, scope: str, request: Headers, slug: str) -> tuple[bytes, bytes]:
    """The Bearer challenge (spec: basic/authorization, "Error Handling"; RFC 9728 section 5.1).

    It is made without a look-up, so it is the same for every name that a tenant could have.
    """
    parameters = ['realm="mcphost"']
    if reason:
        parameters.append(f'error="{reason}"')
    parameters.append(f'scope="{scope}"')
    if SLUG.fullmatch(slug):
        issuer = addresses.issuer_of(request.get("host") or "")
        parameters.append(f'resource_metadata="{addresses.metadata_of(issuer, slug)}"')
    return b"www-authenticate", f"Bearer {', '.join(parameters)}".encode()
