"""The page of an invitation for the invited user: what is offered, by whom; accept or decline.

Every link that offers the signed-in user nothing gets the same response.
"""

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mcphost.console.base import SignedInRequest, form_input, of_account, show
from mcphost.console.doors import door, signed_in, unknown_link
from mcphost.console.password_forms import SetUpForm
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.tenants.members import ROLES
from mcphost.tenants import invitations
from mcphost.tenants.invitations import InvitationOffer, NewAccount

SIGN_IN = "sign_in"
"""The parameter of a person who has an account after all."""
ACCEPT = "_accept"
DECLINE = "_decline"
UNKNOWN = "tenants/invitation_unknown.html"


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, link: str) -> HttpResponseBase:
    """Show an invitation. Without a sign-in, one that sets up an account leads to that; all others, real
    or invented, lead to the sign-in."""
    offer = None
    if not request.user.is_authenticated and SIGN_IN not in request.GET:
        offer = invitations.set_up_offer(link, timezone.now())
    if offer is None:
        return of_account(invitation)(request, link=link)
    return _set_up(request, link, offer)


def _set_up(request: HttpRequest, link: str, offer: InvitationOffer) -> HttpResponseBase:
    form = SetUpForm(User(username=offer.username), *form_input(request))
    if request.method == "POST" and form.is_valid():
        submitted = form.cleaned_data
        account = NewAccount(submitted["password"], submitted["first_name"], submitted["last_name"])
        made = form.attempt(lambda: invitations.set_up(link, account, timezone.now()))
        if made is not None:
            message = format_sentence(
                "Your account is set up, and you are a member of {}.", offer.title
            )
            return signed_in(request, made, message)
        if not form.errors:
            return unknown_link(UNKNOWN)
    return door(
        request,
        "tenants/set_up.html",
        "Set up your account",
        form,
        offer=offer,
        sign_in=f"{request.path}?{SIGN_IN}=1",
    )


def invitation(request: SignedInRequest, link: str) -> HttpResponseBase:
    """Show the invitation of a link to a signed-in user, or accept or decline it. GET changes nothing."""
    now = timezone.now()
    if request.method == "POST":
        if DECLINE in request.POST:
            done = invitations.decline(link, request.user, now)
            message = "You declined the invitation."
        else:
            done = ACCEPT in request.POST and invitations.accept(link, request.user, now)
            message = "You accepted the invitation."
        if not done:
            return unknown_link(UNKNOWN, request.user.get_username())
        messages.success(request, message)
        return redirect("admin:you")
    offer = invitations.offer(link, request.user, now)
    if offer is None:
        return unknown_link(UNKNOWN, request.user.get_username())
    return show(
        request,
        "tenants/invitation.html",
        f"Join {offer.title} as {offer.role.value}?",
        offer=offer,
        role=f"{dict(ROLES)[offer.role.value]}.",
    )
