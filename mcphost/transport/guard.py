"""Checks of the head of a request that need only platform-wide settings: Host, media types (Accept), size, and method.

The checks and their statuses are those of spec basic/transports/streamable-http (Security &
Endpoint, Sending Messages) and RFC 9110.
"""

from ipaddress import ip_address

from django.http.request import split_domain_port, validate_host

from mcphost.protocol.errors import (
    METHOD_NOT_ALLOWED,
    MISDIRECTED,
    NOT_ACCEPTABLE,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    ProtocolError,
)
from mcphost.protocol.headers import Headers
from mcphost.protocol.revisions import Era, era_of
from mcphost.transport.options import options
from mcphost.transport.request import HttpRequest

JSON = "application/json"
STREAM = "text/event-stream"
_SESSION_METHODS = ("GET", "DELETE")
ALLOWED_METHODS = "GET, POST, DELETE, OPTIONS"
MAX_ACCEPT = 4096


def check_host(request: HttpRequest) -> None:
    """Refuse a Host that is not in ALLOWED_HOSTS, against DNS rebinding.

    Django's own check runs only in `get_host()`, which is never called on this path. Raises
    ProtocolError (MISDIRECTED).
    """
    if not is_host_allowed(request.headers):
        raise ProtocolError(MISDIRECTED, "The Host of the request is not allowed")


def is_host_allowed(headers: Headers) -> bool:
    """Whether the request has exactly one Host, and it is in ALLOWED_HOSTS."""
    domain, _port = split_domain_port(headers.get("host") or "")
    allowed = bool(domain) and validate_host(domain, list(options().allowed_hosts))
    return allowed and headers.count("host") == 1


def is_probe_allowed(headers: Headers) -> bool:
    """Whether a request for health, metrics or status has an allowed Host, an address, or none at all.

    Balancers and Prometheus address a process by its IP address, or send HTTP/1.0 without a Host. A web
    page that reaches it by DNS rebinding sends the page's own name.
    """
    if headers.count("host") == 0:
        return True
    domain, _port = split_domain_port(headers.get("host") or "")
    is_own = domain == "localhost" or _is_address(domain)
    return is_host_allowed(headers) or (is_own and headers.count("host") == 1)


def _is_address(domain: str) -> bool:
    try:
        ip_address(domain.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def check_method(request: HttpRequest) -> None:
    """Check a request other than POST: only GET and DELETE of a session are allowed.

    Raises ProtocolError (METHOD_NOT_ALLOWED, NOT_ACCEPTABLE). A GET without a session is 405: no stream is
    offered to it (2025-11-25: basic/transports, Listening for Messages from the Server).
    """
    if request.method not in _SESSION_METHODS:
        message = f"{request.method} is not supported here: send MCP messages with POST"
        raise ProtocolError(METHOD_NOT_ALLOWED, message)
    if not _names_session(request):
        message = (
            f"{request.method} needs a session: send initialize with POST first, and then its "
            "Mcp-Session-Id. Revision 2026-07-28 has POST only"
        )
        raise ProtocolError(METHOD_NOT_ALLOWED, message)
    if request.method == "GET" and not _accepts(request.headers.get("accept") or "*/*", STREAM):
        raise ProtocolError(NOT_ACCEPTABLE, f"Accept must list {STREAM}")


def _names_session(request: HttpRequest) -> bool:
    """Whether the client speaks a session-based revision: the stateless one has only POST."""
    headers = request.headers
    version = headers.get("mcp-protocol-version")
    has_id = headers.count("mcp-session-id") > 0
    if version is None or (request.method == "GET" and not has_id):
        return has_id
    return era_of(version) is Era.LEGACY


def check_post(request: HttpRequest) -> bool:
    """Refuse a POST by Content-Type, Content-Encoding or Content-Length; return whether Accept admits a
    response with a body, which only JSON-RPC requests receive. Other methods pass. Raises ProtocolError."""
    if request.method != "POST":
        return True
    headers = request.headers
    accepts = _accepts(headers.get("accept") or "*/*", JSON, STREAM)
    if not _is_json(headers.get("content-type") or ""):
        raise ProtocolError(UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be {JSON}")
    if (headers.get("content-encoding") or "identity").lower() != "identity":
        message = "Content-Encoding is not supported: send the body uncompressed"
        raise ProtocolError(UNSUPPORTED_MEDIA_TYPE, message)
    check_length(request)
    return accepts


def not_acceptable() -> ProtocolError:
    """The error for a request whose Accept does not admit both forms of a response."""
    return ProtocolError(NOT_ACCEPTABLE, f"Accept must list both {JSON} and {STREAM}")


def check_length(request: HttpRequest) -> None:
    """Reject by Content-Length before reading. Raises ProtocolError (TOO_LARGE)."""
    length = request.headers.get("content-length") or "0"
    limit = options().body_limit
    if length.isdecimal() and int(length[:20]) > limit:
        raise ProtocolError(TOO_LARGE, f"The body is larger than {limit} bytes")


def _accepts(accept: str, *types: str) -> bool:
    """Whether `Accept` admits all of `types`. Raises ProtocolError if it is too long to parse."""
    if len(accept) > MAX_ACCEPT:
        raise ProtocolError(NOT_ACCEPTABLE, f"Accept is longer than {MAX_ACCEPT} bytes")
    ranges = {
        part.split(";")[0].strip().lower() for part in accept.split(",") if not _is_refused(part)
    }
    return all(ranges & {name, f"{name.split('/')[0]}/*", "*/*"} for name in types)


def _is_json(content_type: str) -> bool:
    media, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return media.strip().lower() == JSON and charset in {"", "utf-8", "utf8"}


def _is_refused(part: str) -> bool:
    weight = part.replace(" ", "").lower().partition(";q=")[2]
    return weight in {"0", "0.0", "0.00", "0.000"}
