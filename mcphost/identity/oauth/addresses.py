"""The addresses that metadata, challenges and the parameter `iss` name: always the same strings."""

from urllib.parse import urlsplit

from django.conf import settings


def issuer_of(scheme: str, host: str) -> str:
    """Return the issuer, the origin of this platform without a trailing slash (RFC 8414 section 2).

    It is that of MCPHOST_PUBLIC_URL, or without that setting the origin to which the request came.
    """
    public = urlsplit(settings.MCPHOST_PUBLIC_URL)
    return f"{public.scheme}://{public.netloc}" if public.netloc else f"{scheme}://{host}"
