"""Pages while the database is unavailable: 503 at once, so that no thread waits for it."""

import sys
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import server_error

from mcphost.observability.availability import Source, availability
from mcphost.serving.database import DATABASE_ERRORS, report

RETRY_SECONDS: Final = 2


class DatabaseAwayMiddleware(MiddlewareMixin):
    """Answer 503 instead of the page while the database is known to be unavailable."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return _unreachable() if availability.lacks(Source.CONNECTION) else None


def failed(request: HttpRequest) -> HttpResponse:
    """Return the error page of a view: 503 if the database was unavailable, otherwise 500."""
    error = sys.exc_info()[1]
    if not isinstance(error, DATABASE_ERRORS):
        return server_error(request)
    report(error)
    return _unreachable()


def _unreachable() -> HttpResponse:
    # Rendered without the request, because the signed-in user cannot be read now.
    response = HttpResponse(render_to_string("503.html"), status=503)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response
