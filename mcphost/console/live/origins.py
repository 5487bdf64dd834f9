"""Whether a handshake comes from a page of this server: browsers send cookies with any."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

Headers = Mapping[str, Sequence[str]]
_SCHEMES = {"ws": "http", "wss": "https"}


def headers_of(scope: Mapping[str, Any]) -> Headers:
    """Return the values of each header of an ASGI scope."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


def is_own_origin(scheme: str, headers: Headers) -> bool:
    """Return whether `Origin` is this server's or in MCPHOST_TRUSTED_ORIGINS, as for forms."""
    origins, hosts = headers.get("origin", ()), headers.get("host", ())
    if len(origins) != 1 or len(hosts) != 1:
        return False
    origin, host = origins[0], hosts[0]
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        return False
    if origin == f"{_SCHEMES.get(scheme, 'https')}://{host}":
        return True
    return any(_is_trusted(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS)


def _is_trusted(origin: str, trusted: str) -> bool:
    if "*" not in trusted:
        return origin == trusted
    try:
        trusted_url, origin_url = urlsplit(trusted), urlsplit(origin)
    except ValueError:
        return False
    return trusted_url.scheme == origin_url.scheme and is_same_domain(
        origin_url.netloc, trusted_url.netloc.lstrip("*")
    )
