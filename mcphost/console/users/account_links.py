"""Links to accounts: staff issue one, and the person chooses a password on its page."""

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mcphost.console import mail
from mcphost.console.base import Crumb, SignedInRequest, actor, form_input, of_platform, show
from mcphost.console.doors import door, signed_in, unknown_link
from mcphost.console.forms import forms
from mcphost.console.password_forms import ChosenPasswordForm
from mcphost.console.return_links import list_with, row_url
from mcphost.identity import account_links
from mcphost.identity.account_links import IssuedAccountLink
from mcphost.tenants.roles import Permission


class LinkForm(forms.ConsoleForm):
    """What happens to the present password."""

    lock_out = forms.switch(
        "Block the current password now",
        "The person is signed out everywhere, at once, and can only return by the link.",
    )


@of_platform(Permission.MANAGE_MEMBERS)
def issue(request: SignedInRequest, user_id: int) -> HttpResponseBase:
    """Issue a link by which a user who lost the password chooses another one."""
    user = get_object_or_404(User, pk=user_id)
    if user.pk == request.user.pk:
        return redirect("admin:password_change")
    form = LinkForm(*form_input(request))
    if request.method == "POST" and form.is_valid():
        lock_out = form.cleaned_data["lock_out"]
        try:
            issued = account_links.issue(user, actor=actor(request), lock_out=lock_out)
        except User.DoesNotExist:
            raise Http404 from None
        return show_issued(request, user, issued)
    step = Crumb(user.get_username(), row_url(request, "admin:user", user.pk))
    return show(
        request,
        "users/link_form.html",
        f"Password link for {user.get_username()}",
        users_crumb(user),
        step,
        form=form,
        person=user,
        back=step.url,
        verb="Issue the link",
        at_row=f"user-{user.pk}",
    )


def show_issued(
    request: SignedInRequest, user: User, issued: IssuedAccountLink
) -> HttpResponseBase:
    """Show a link once, and send it if the account has an e-mail address."""
    url = mail.account_link_url(request, issued)
    return show(
        request,
        "users/link_issued.html",
        f"Password link for {user.get_username()}",
        users_crumb(user),
        Crumb(user.get_username(), reverse("admin:user", args=[user.pk])),
        issued=issued,
        url=url,
        done=users_crumb(user).url,
        email=user.email if mail.is_available() else "",
        sent=bool(user.email)
        and mail.is_available()
        and mail.send_account_link(user.email, issued, url),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def choose(request: HttpRequest, link: str) -> HttpResponseBase:
    """Let the person who has a link choose the account's password, and sign them in."""
    user = account_links.account_of(link, timezone.now())
    if user is None:
        return unknown_link("users/link_unknown.html")
    form = ChosenPasswordForm(user, *form_input(request))
    if request.method == "POST" and form.is_valid():
        changed = account_links.use(link, form.cleaned_data["password"], timezone.now())
        if changed is None:
            return unknown_link("users/link_unknown.html")
        return signed_in(request, changed, "Your password is set.")
    return door(request, "users/choose_password.html", "Choose your password", form, person=user)


def users_crumb(user: User | None = None) -> Crumb:
    """Return the way back to the list; to its page with this user."""
    url = reverse("admin:users")
    return Crumb("Users", url if user is None else list_with(url, user.get_username()))
