"""`/t/<tenant>/done/<link>`: where a person, or another service, says that something is done.

GET as well as POST: whoever was sent elsewhere comes back with a GET. The link is all that counts;
whoever has it may open it, and again does no harm.
"""

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from mcphost.serving import links

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}


@csrf_exempt
@require_http_methods(["GET", "POST"])
def done(request: HttpRequest, slug: str, link: str) -> HttpResponse:
    """Tell whoever waits, and thank. A link that is no good, of whatever tenant, gets one answer."""
    good = links.finish(slug, link, timezone.now())
    page = render_to_string("transport/done.html", {"good": good})
    return HttpResponse(page, status=200 if good else 404, headers=_HEADERS)
