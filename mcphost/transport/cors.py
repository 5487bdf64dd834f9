"""CORS: which web pages may use the endpoint, and which headers they may read (Fetch standard).

No response allows credentials: cookies do not authenticate here. Responses before authentication
(preflight, 401) are the same for every slug and allow every Origin, so they disclose nothing.
"""

from mcphost.protocol.errors import FORBIDDEN, ProtocolError
from mcphost.protocol.headers import Headers
from mcphost.transport.response import RawHeaders

EXPOSED = b"Mcp-Session-Id, WWW-Authenticate, Retry-After"
ANYONE: RawHeaders = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", EXPOSED),
)

_STANDARD = "accept, authorization, content-type, last-event-id, mcp-protocol-version"


def preflight(headers: Headers) -> RawHeaders:
    """The headers of the response to a preflight request with these headers.

    `Mcp-Param-*` headers cannot be allowed by a pattern, so the requested ones are allowed by name.
    """
    requested = headers.get("access-control-request-headers") or ""
    requested_names = [name.strip().lower() for name in requested[:4096].split(",")]
    allowed = [name for name in requested_names if name.startswith("mcp-") and name.isascii()]
    names = ", ".join([_STANDARD, "mcp-method, mcp-name, mcp-session-id", *sorted(set(allowed))])
    return (
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"POST, GET, DELETE, OPTIONS"),
        (b"access-control-allow-headers", names.encode()),
        (b"access-control-max-age", b"7200"),
        (b"vary", b"Access-Control-Request-Headers"),
    )


def allow(origin: str | None, allowed: tuple[str, ...]) -> RawHeaders:
    """The CORS headers of the response to an authenticated request from a page of `origin`.

    None without an Origin: the client is not a browser. Raises ProtocolError (FORBIDDEN) if the
    tenant does not allow `origin` (spec: basic/transports/streamable-http, Security & Endpoint).
    """
    if origin is None:
        return ()
    if not is_allowed(origin, allowed):
        raise ProtocolError(FORBIDDEN, "This Origin is not allowed")
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", EXPOSED),
        (b"vary", b"Origin"),
    )


def is_allowed(origin: str, allowed: tuple[str, ...]) -> bool:
    """Whether `origin` is listed: exactly, or with `:*` for any port."""
    if origin in allowed:
        return True
    scheme, _, rest = origin.partition("://")
    name, colon, port = rest.rpartition(":")
    if not (colon and port.isdecimal()):
        name = rest
    return f"{scheme}://{name}:*" in allowed
