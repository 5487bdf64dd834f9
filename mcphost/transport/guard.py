"""What is refused before anything is known of the caller. Only platform-wide values decide here.

The checks and their statuses are those of spec basic/transports/streamable-http (Security &
Endpoint, Sending Messages) and RFC 9110.
"""

from functools import lru_cache

from django.http.request import split_domain_port, validate_host

from mcphost.protocol.eras import Era, era_of
from mcphost.protocol.errors import (
    METHOD_NOT_ALLOWED,
    MISDIRECTED,
    NOT_ACCEPTABLE,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    ProtocolError,
)
from mcphost.protocol.headers import Headers
from mcphost.transport.http import HttpRequest
from mcphost.transport.options import options

JSON = "application/json"
STREAM = "text/event-stream"
_OF_SESSIONS = ("GET", "DELETE")
ALLOWED_METHODS = "GET, POST, DELETE, OPTIONS"


def check_host(request: HttpRequest) -> None:
    """Refuse a Host that is not ours, against DNS rebinding.

    Django's own check acts only where `get_host()` is called, which is never on this path.
    """
    known = request.headers.raw(b"host")
    if known is not None and _known_host(known, options().allowed_hosts):
        return
    host = request.headers.get("host") or ""
    if request.headers.count("host") > 1 or not _host_allowed(host, options().allowed_hosts):
        raise ProtocolError(MISDIRECTED, "This server does not answer for the Host of the request")


def check_request(request: HttpRequest) -> None:
    """Refuse what is neither an MCP message nor about a session: its stream, or its end."""
    if request.method == "POST":
        check_post(request)
    elif request.method not in _OF_SESSIONS or not _names_session(request.headers):
        message = f"{request.method} is not supported here: send MCP messages with POST"
        raise ProtocolError(METHOD_NOT_ALLOWED, message)
    elif request.method == "GET" and not _accepts(request.headers.get("accept") or "*/*", STREAM):
        raise ProtocolError(NOT_ACCEPTABLE, f"Accept must list {STREAM}")


def _names_session(headers: Headers) -> bool:
    """Whether a client of a session-based revision says so: the stateless one has POST alone."""
    version = headers.get("mcp-protocol-version")
    if version is None:
        return headers.count("mcp-session-id") > 0
    return era_of(version) is Era.LEGACY


def check_post(request: HttpRequest) -> None:
    """Refuse what cannot be an MCP message: Accept, Content-Type, declared size."""
    headers = request.headers
    if not _usual(headers.raw(b"accept"), headers.raw(b"content-type")):
        _check_media(headers.get("accept") or "*/*", headers.get("content-type") or "")
    length = headers.raw(b"content-length") or b"0"
    limit = options().body_limit
    if length.isdigit() and int(length[:20]) > limit:
        raise ProtocolError(TOO_LARGE, f"The body is larger than {limit} bytes")


def _check_media(accept: str, content_type: str) -> None:
    if not _accepts(accept, JSON, STREAM):
        message = f"Accept must list both {JSON} and {STREAM}"
        raise ProtocolError(NOT_ACCEPTABLE, message)
    if not _is_json(content_type):
        raise ProtocolError(UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be {JSON}")


@lru_cache(maxsize=256)
def _usual(accept: bytes | None, content_type: bytes | None) -> bool:
    """Whether these values, as clients send them again and again, are known to be right."""
    if accept is None or content_type is None:
        return False
    return _accepts(accept.decode("latin-1"), JSON, STREAM) and _is_json(
        content_type.decode("latin-1")
    )


@lru_cache(maxsize=256)
def _known_host(host: bytes, allowed: tuple[str, ...]) -> bool:
    return _host_allowed(host.decode("latin-1"), allowed)


@lru_cache(maxsize=256)
def _host_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, list(allowed))


@lru_cache(maxsize=256)
def _accepts(accept: str, *types: str) -> bool:
    ranges = {_media_type(part) for part in accept.split(",") if not _is_refused(part)}
    return all(ranges & {name, f"{name.split('/')[0]}/*", "*/*"} for name in types)


@lru_cache(maxsize=256)
def _is_json(content_type: str) -> bool:
    media, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return media.strip().lower() == JSON and charset in {"", "utf-8", "utf8"}


def _media_type(part: str) -> str:
    return part.split(";")[0].strip().lower()


def _is_refused(part: str) -> bool:
    weight = part.replace(" ", "").lower().partition(";q=")[2]
    return weight in {"0", "0.0", "0.00", "0.000"}
