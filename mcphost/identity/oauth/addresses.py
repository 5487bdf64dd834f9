"""The URLs that metadata, challenges and the parameter `iss` contain: always the same strings.

Clients compare them as texts (RFC 8414, RFC 8707, RFC 9207, RFC 9728).
"""

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS

SCOPES: Final = (LIST_TOOLS, CALL_TOOLS)
"""The scopes that are advertised, and that a client gets which names none. Some clients request all that
are advertised, so there are no others."""
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def issuer_of(host: str) -> str:
    """Return the issuer, the origin of this platform without a trailing slash (RFC 8414 section 2).

    It is that of MCPHOST_PUBLIC_URL, or without that setting that of `host`, the Host of the request,
    which the caller has checked. The scheme is then that of MCPHOST_HTTPS: not every proxy passes on
    the scheme of the request, and the issuer must not depend on the way of a request.
    """
    scheme = "https" if settings.MCPHOST_HTTPS else "http"
    if settings.MCPHOST_PUBLIC_URL:
        scheme, host, *_ = urlsplit(settings.MCPHOST_PUBLIC_URL)
    return normal_origin(f"{scheme}://{host}")


def public_url(request: HttpRequest, path: str) -> str:
    """Return the URL of a path of this server, for people and programs elsewhere.

    The sender of a request chooses its Host, among the names and ports that are allowed: with
    MCPHOST_PUBLIC_URL it is not looked at.
    """
    if settings.MCPHOST_PUBLIC_URL:
        return f"{issuer_of(request.get_host())}{path}"
    return request.build_absolute_uri(path)


def normal_origin(origin: str) -> str:
    """Return an origin in lower case, without the port that its scheme has by default."""
    origin = origin.lower()
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition(":")[0], ""))


def resource_of(issuer: str, slug: str) -> str:
    """Return the address of a tenant's MCP endpoint: the audience of its tokens (RFC 8707)."""
    return f"{issuer}/t/{slug}/mcp"


def metadata_of(issuer: str, slug: str) -> str:
    """Return the address of the metadata of a tenant's MCP endpoint (RFC 9728 section 3.1)."""
    return f"{issuer}{RESOURCE_METADATA}/t/{slug}/mcp"
