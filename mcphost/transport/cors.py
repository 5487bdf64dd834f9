"""Which browsers' pages may talk to us, and what they may see (Fetch standard, CORS protocol).

No answer ever allows credentials: cookies are no credential here. What is said before the caller
is known (preflight, 401) is alike for every slug and allows every Origin, so it tells nothing.
"""

from mcphost.protocol.errors import FORBIDDEN, ProtocolError
from mcphost.transport.responder import RawHeaders

EXPOSED = b"Mcp-Session-Id, WWW-Authenticate, Retry-After"
ANYONE: RawHeaders = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", EXPOSED),
)

_STANDARD = "accept, authorization, content-type, last-event-id, mcp-protocol-version"


def preflight(requested: str) -> RawHeaders:
    """The answer to a preflight. `requested` is its Access-Control-Request-Headers.

    `Mcp-Param-*` headers cannot be listed by a pattern, so those asked for are allowed by name.
    """
    asked = [name.strip().lower() for name in requested[:4096].split(",")]
    allowed = [name for name in asked if name.startswith("mcp-") and name.isascii()]
    names = ", ".join([_STANDARD, "mcp-method, mcp-name, mcp-session-id", *sorted(set(allowed))])
    return (
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"POST, GET, DELETE, OPTIONS"),
        (b"access-control-allow-headers", names.encode()),
        (b"access-control-max-age", b"7200"),
        (b"vary", b"Access-Control-Request-Headers"),
    )


def allow(origin: str | None, allowed: tuple[str, ...]) -> RawHeaders:
    """The headers for an authenticated request from a page of `origin`, if its tenant allows it.

    No Origin is no browser. Raises ProtocolError
    (FORBIDDEN) otherwise (spec: basic/transports/streamable-http, Security & Endpoint).
    """
    if origin is None:
        return ()
    if not is_allowed(origin, allowed):
        raise ProtocolError(FORBIDDEN, "Pages of this Origin may not use this server")
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
