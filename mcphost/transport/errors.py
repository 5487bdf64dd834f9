"""Turn a ProtocolError into an HTTP response: status and headers."""

import orjson

from mcphost.protocol.errors import (
    FORBIDDEN,
    METHOD_NOT_ALLOWED,
    UNAUTHORIZED,
    ProtocolError,
)
from mcphost.transport.guard import ALLOWED_METHODS
from mcphost.transport.response import RawHeaders

CHALLENGE_SCOPE = "mcp:list mcp:call"
NOT_FOUND = orjson.dumps(
    {
        "error": "not_found",
        "error_description": (
            "There is neither an MCP server nor OAuth at this address. A tenant's MCP server is at "
            "/t/<tenant>/mcp, and takes a token in the header Authorization: see the page Connect of the "
            "tenant in the console, /admin/."
        ),
    }
)
"""The body for every path that does not exist. It is in the form of an OAuth error (RFC 6749 section 5.2):
clients look for OAuth at several paths, and show it."""


def status_of(error: ProtocolError) -> int:
    """The HTTP status of the error."""
    return error.status


def headers_of(error: ProtocolError) -> RawHeaders:
    """The headers that the status requires: WWW-Authenticate, Allow, Retry-After."""
    headers: list[tuple[bytes, bytes]] = []
    if error.code == UNAUTHORIZED:
        headers.append((b"www-authenticate", _challenge(error).encode()))
    elif error.code == FORBIDDEN and "scope" in (error.data or {}):
        headers.append((b"www-authenticate", _step_up(error).encode()))
    elif error.code == METHOD_NOT_ALLOWED:
        headers.append((b"allow", ALLOWED_METHODS.encode()))
    retry_after = (error.data or {}).get("retryAfter")
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    return headers


def _challenge(error: ProtocolError) -> str:
    """The Bearer challenge; `error` only if a credential was presented (RFC 6750 section 3)."""
    presented = ', error="invalid_token"' if (error.data or {}).get("presented") else ""
    return f'Bearer realm="mcphost"{presented}, scope="{CHALLENGE_SCOPE}"'


def _step_up(error: ProtocolError) -> str:
    scope = (error.data or {})["scope"]
    return f'Bearer realm="mcphost", error="insufficient_scope", scope="{scope}"'
