"""Security headers: browsers load nothing from other origins for our pages."""

import secrets

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

ADMIN_PREFIX = "/admin/"

_COMMON = (
    "default-src 'none'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
)
STRICT = _COMMON + "script-src 'self'; style-src 'self'"
# Unfold's pages use Alpine, which evaluates expressions, and inline style attributes.
LOOSER = _COMMON + (
    "script-src 'self' 'unsafe-eval' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"
)
# On pages that ask for a nonce, style elements need it. Attributes do not: Alpine sets them.
NONCED = LOOSER + "; style-src-elem 'self' 'nonce-{}'; style-src-attr 'unsafe-inline'"
NO_FEATURES = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class StyleNonce:
    """The nonce of a response's style elements, made at its first use in a template."""

    def __init__(self) -> None:
        self.value = ""

    def __str__(self) -> str:
        self.value = self.value or secrets.token_urlsafe(16)
        return self.value


class SecurityHeadersMiddleware(MiddlewareMixin):
    """Set a strict policy everywhere and a looser one only under `/admin/`.

    Templates there find `request.style_nonce`.
    """

    def process_request(self, request: HttpRequest) -> None:
        request.style_nonce = StyleNonce()  # type: ignore[attr-defined]

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", _policy(request))
        response.headers.setdefault("Permissions-Policy", NO_FEATURES)
        return response


def _policy(request: HttpRequest) -> str:
    if not request.path.startswith(ADMIN_PREFIX):
        return STRICT
    nonce: str = request.style_nonce.value  # type: ignore[attr-defined]
    return NONCED.format(nonce) if nonce else LOOSER
