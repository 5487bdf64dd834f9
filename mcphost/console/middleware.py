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
# On pages that frame the trial of a tool, which has a policy of its own.
FRAMING = "; frame-src 'self'"
NO_FEATURES = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class StyleNonce:
    """The nonce of a response's style elements, made at its first use in a template."""

    def __init__(self) -> None:
        self.value = ""

    def __str__(self) -> str:
        self.value = self.value or secrets.token_urlsafe(16)
        return self.value


class SecurityHeadersMiddleware(MiddlewareMixin):
    """Set one strict policy for all pages: no inline script, no style attribute, no evaluation.

    A template that reads `request.style_nonce` allows the style elements that have it: the script
    editor makes some.
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
    nonce: str = request.style_nonce.value  # type: ignore[attr-defined]
    policy = f"{STRICT} 'nonce-{nonce}'" if nonce else STRICT
    return policy + FRAMING if getattr(request, "framing", False) else policy
