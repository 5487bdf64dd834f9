"""Security headers: browsers load nothing from other origins for our pages."""

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
NO_FEATURES = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class SecurityHeadersMiddleware(MiddlewareMixin):
    """Set a strict policy everywhere and a looser one only under `/admin/`."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        admin = request.path.startswith(ADMIN_PREFIX)
        response.headers.setdefault("Content-Security-Policy", LOOSER if admin else STRICT)
        response.headers.setdefault("Permissions-Policy", NO_FEATURES)
        return response
