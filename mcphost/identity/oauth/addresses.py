"""The addresses by which OAuth names this platform and its tenants.

They are compared as texts, so each is made here and nowhere else (RFC 8414, RFC 8707, RFC 9207, RFC 9728).
"""

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS

SCOPES: Final = (LIST_TOOLS, CALL_TOOLS)
"""The scopes that are advertised. Some clients request everything that is, so there are no others."""

RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def issuer(host: str) -> str:
    """Return the origin of the platform, without a trailing slash: its issuer.

    It is that of MCPHOST_PUBLIC_URL, or else of `host`, the Host of the request, which the caller has
    checked against ALLOWED_HOSTS; the scheme is then that of MCPHOST_HTTPS.
    """
    scheme = "https" if settings.MCPHOST_HTTPS else "http"
    if settings.MCPHOST_PUBLIC_URL:
        scheme, host, *_ = urlsplit(settings.MCPHOST_PUBLIC_URL)
    return f"{scheme}://{host.lower().removesuffix(_DEFAULT_PORTS[scheme])}"


def resource(origin: str, slug: str) -> str:
    """Return the address of a tenant's MCP endpoint: the audience of its tokens (RFC 8707)."""
    return f"{origin}/t/{slug}/mcp"


def resource_metadata(origin: str, slug: str) -> str:
    """Return the address of the metadata of a tenant's MCP endpoint (RFC 9728 section 3.1)."""
    return f"{origin}{RESOURCE_METADATA}/t/{slug}/mcp"
