"""The links of calls: `/t/<tenant>/done/<link>`, a page on which a user confirms something, and
`/t/<tenant>/callback/<link>`, to which a machine posts.

Only the user whose credential made the call can use the page (spec: client/elicitation,
"Identifying the User"). For a signed-out user every link, valid or not, redirects to sign-in before
any look-up; another user gets the same response as for an unknown link. GET changes nothing.
"""

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_POST

from mcphost.serving.execution import links

# With a stricter policy browsers would post the form with `Origin: null`, which Django refuses.
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}

_STATUS = {"unknown": 404, "ended": 410}


@csrf_exempt  # a signed-out user gets the same redirect for every request
@require_http_methods(["GET", "HEAD", "POST"])
def done(request: HttpRequest, slug: str, link: str) -> HttpResponseBase:
    """Show the signed-in user what to confirm; a POST confirms it."""
    if not request.user.is_active:
        return redirect_to_login(request.path)
    response: HttpResponseBase = _answer_person(request, slug, link)
    return response


@csrf_protect
def _answer_person(request: HttpRequest, slug: str, link: str) -> HttpResponse:
    user, now = request.user, timezone.now()
    assert user.pk is not None
    if request.method == "POST":
        try:
            confirmed = links.confirm(slug, link, user.pk, user.get_username(), now)
        except links.LateConfirmationError:
            return _page(request, "ended")
        return _page(request, "done" if confirmed else "unknown")
    confirmation = links.confirmation(slug, link, user.pk, now)
    if confirmation is None:
        return _page(request, "unknown")
    if confirmation.ended and not confirmation.confirmed:
        return _page(request, "ended")
    # Only the client can decline; the page after "Do not confirm" explains this.
    return _page(request, "refused" if "refuse" in request.GET else "asked", confirmation)


def _page(
    request: HttpRequest, shown: str, confirmation: links.Confirmation | None = None
) -> HttpResponse:
    status = _STATUS.get(shown, 200)
    context = {"shown": shown, "confirmation": confirmation}
    response = render(request, "transport/link.html", context, status=status)
    for name, value in _HEADERS.items():
        response.headers[name] = value
    # Django would log the URL of a refused request, and the URL contains the link.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


@csrf_exempt
@require_POST
def callback(request: HttpRequest, slug: str, link: str) -> HttpResponse:
    """Accept a machine's POST: 204 with an empty body, 404 for an invalid link."""
    source = str(request.META.get("REMOTE_ADDR", ""))
    good = links.call_back(slug, link, source, timezone.now())
    response = HttpResponse(status=204 if good else 404, headers={"Cache-Control": "no-store"})
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response
