"""Pages for addresses without a page (404), pages without access (403), and requests too large (400).

Signed-in users below `/admin/` see them in the console's frame, with ways on. Other visitors get
pages that say nothing about what exists.
"""

from typing import cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.defaults import bad_request as django_bad_request
from django.views.defaults import page_not_found, permission_denied

from mcphost.console.base import SignedInRequest, refuse, show
from mcphost.console.middleware import ADMIN_PREFIX
from mcphost.console.primitives import trials
from mcphost.console.signin import may_enter


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Return the page for 403."""
    signed_in_request = _signed_in(request)
    return (
        permission_denied(request, exception)
        if signed_in_request is None
        else refuse(signed_in_request)
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Return the page for 400, which says when a form or an address was too large."""
    if not isinstance(exception, (RequestDataTooBig, TooManyFieldsSent)):
        return django_bad_request(request, exception)
    if isinstance(exception, TooManyFieldsSent):
        request.GET = QueryDict()  # which the page reads, and which may be what is too large
    if trials.is_framed(request):
        return trials.too_large(request, _trial_problems(request, exception))
    signed_in_request = _signed_in(request)
    if signed_in_request is None:
        return django_bad_request(request, exception)
    purpose = (
        f"{_fields()} Choose fewer at a time."
        if isinstance(exception, TooManyFieldsSent)
        else f"The texts of a form may have {_megabytes(_max_form_bytes())}. Give a larger document as a file."
    )
    return show(
        signed_in_request,
        "refused.html",
        "Too large",
        status=400,
        purpose=purpose,
        enters=may_enter(signed_in_request.user),
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """Return the page for a form from another site, or from before the user signed in again."""
    if trials.is_framed(request):
        return trials.of_ended_session(request)
    context = {"form_url": _form_url(request)}
    return render(request, "403_csrf.html", context, status=403)


def _form_url(request: HttpRequest) -> str:
    """Return the address of the page that sent a form, if it is one of this server; else an empty text."""
    sender = request.headers.get("Referer", "")
    hosts = {request.get_host()}
    is_own = url_has_allowed_host_and_scheme(sender, hosts, require_https=request.is_secure())
    return sender if is_own else ""


def _trial_problems(request: HttpRequest, exception: Exception) -> list[str]:
    if isinstance(exception, TooManyFieldsSent):
        return [f"{_fields()} Give the arguments as JSON instead."]
    sent = int(request.META.get("CONTENT_LENGTH") or 0)
    size = f"It has {_megabytes(sent)}, and" if sent > _max_form_bytes() else "It"
    return [
        "What was sent is too large: the definition of the tool, and its arguments as the form has them.",
        f"{size} may have {_megabytes(_max_form_bytes())}.",
        "Shorten the code or the arguments. A client may send larger ones to a published tool.",
    ]


def _fields() -> str:
    return f"A form or an address may have {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields."


def _max_form_bytes() -> int:
    max_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert max_bytes is not None
    return max_bytes


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Return the page for 404."""
    signed_in_request = _signed_in(request)
    if signed_in_request is None:
        return page_not_found(request, exception)
    return show(
        signed_in_request,
        "refused.html",
        "Not found",
        status=404,
        purpose="There is no page at this address, or what it showed is gone.",
        enters=may_enter(signed_in_request.user),
    )


def _signed_in(request: HttpRequest) -> SignedInRequest | None:
    user = getattr(request, "user", None)
    inside = request.path.startswith(ADMIN_PREFIX)
    is_signed_in = inside and isinstance(user, User) and user.is_active
    return cast(SignedInRequest, request) if is_signed_in else None
