"""The page of an invitation for the invited user: what is offered, by whom; accept or decline.

Every link that offers the signed-in user nothing gets the same response.
"""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mcphost.console.base import SignedInRequest, show
from mcphost.tenants import invitations

ACCEPT = "_accept"
DECLINE = "_decline"


@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: SignedInRequest, link: str) -> HttpResponseBase:
    """Show the invitation of a link, or accept or decline it. GET changes nothing."""
    now = timezone.now()
    if request.method == "POST":
        if DECLINE in request.POST:
            done = invitations.decline(link, request.user, now)
            message = "You declined the invitation."
        else:
            done = ACCEPT in request.POST and invitations.accept(link, request.user, now)
            message = "You accepted the invitation."
        if not done:
            return _unknown()
        messages.success(request, message)
        return redirect("admin:you")
    offer = invitations.offer(link, request.user, now)
    if offer is None:
        return _unknown()
    return show(request, "tenants/invitation.html", "Invitation", offer=offer)


def _unknown() -> HttpResponseBase:
    response = HttpResponse(render_to_string("console/tenants/invitation_unknown.html"), status=404)
    # Keeps Django from logging the URL, which contains the link.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response
