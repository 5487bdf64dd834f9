"""What is refused before anything is known of the caller. Only platform-wide values decide here.

The checks and their statuses are those of spec basic/transports/streamable-http (Security &
Endpoint, Sending Messages) and RFC 9110.
"""

from functools import lru_cache

from django.http.request import split_domain_port, validate_host

from mcphost.protocol.errors import (
    METHOD_NOT_ALLOWED,
    MISDIRECTED,
    NOT_ACCEPTABLE,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    ProtocolError,
)
from mcphost.transport.http import HttpRequest
from mcphost.transport.options import options

ALLOWED_METHODS = "POST, DELETE, OPTIONS"


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
    """Refuse what is neither an MCP message nor the end of a session."""
    if request.method == "POST":
        check_post(request)
    elif request.method != "DELETE":
        message = f"{request.method} is not supported here: send MCP messages with POST"
        raise ProtocolError(METHOD_NOT_ALLOWED, message)


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
    if not _accepts_both(accept):
        message = "Accept must list both application/json and text/event-stream"
        raise ProtocolError(NOT_ACCEPTABLE, message)
    if not _is_json(content_type):
        raise ProtocolError(UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")


@lru_cache(maxsize=256)
def _usual(accept: bytes | None, content_type: bytes | None) -> bool:
    """Whether these values, as clients send them again and again, are known to be right."""
    if accept is None or content_type is None:
        return False
    return _accepts_both(accept.decode("latin-1")) and _is_json(content_type.decode("latin-1"))


@lru_cache(maxsize=256)
def _known_host(host: bytes, allowed: tuple[str, ...]) -> bool:
    return _host_allowed(host.decode("latin-1"), allowed)


@lru_cache(maxsize=256)
def _host_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, list(allowed))


@lru_cache(maxsize=256)
def _accepts_both(accept: str) -> bool:
    ranges = {_media_type(part) for part in accept.split(",") if not _is_refused(part)}
    return all(
        ranges & {name, f"{name.split('/')[0]}/*", "*/*"}
        for name in ("application/json", "text/event-stream")
    )


@lru_cache(maxsize=256)
def _is_json(content_type: str) -> bool:
    media, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return media.strip().lower() == "application/json" and charset in {"", "utf-8", "utf8"}


def _media_type(part: str) -> str:
    return part.split(";")[0].strip().lower()


def _is_refused(part: str) -> bool:
    weight = part.replace(" ", "").lower().partition(";q=")[2]
    return weight in {"0", "0.0", "0.00", "0.000"}
