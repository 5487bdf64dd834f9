"""Signing in: the one page for it, and the messages for a password that was not checked.

Every active account signs in there, whatever it wants to see: a page of the console, its own access,
what a client asks for, an invitation, or the confirmation of a call. Each of those pages decides for
itself what the account may see.
"""

import math
from typing import Any, Final

from django.contrib.auth import authenticate
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from mcphost.identity import passwords
from mcphost.identity.attempts import NotCheckedError, Unchecked
from mcphost.tenants.access import Person, visible_tenants

WRONG = "The user name or the password is wrong. Both are case-sensitive."
_NOT_CHECKED: Final = {
    Unchecked.LOCKED: (
        "Too many failed attempts. Wait {wait}, then try again. "
        "Until then no password is checked, not even the right one."
    ),
    Unchecked.PAUSED: (
        "There were many failed attempts for this user name. Wait {wait}, then try again. "
        "Your password was not checked."
    ),
    Unchecked.BUSY: (
        "Too many people are signing in at this moment. Wait {wait}, then try again. "
        "Your password was not checked."
    ),
}
REASONS: Final = (
    (
        "/authorize?",
        "An application wants to act for you at an MCP server. Sign in to see what it asks for.",
    ),
    (
        "/admin/invitations/",
        (
            "You were invited to a tenant. Sign in with the account that the invitation names. "
            "If you do not have one yet, ask the person who invited you."
        ),
    ),
    ("/t/", "A call waits for your confirmation. Sign in to see what it is about."),
)
"""What the sign-in page says, by the beginning of the address that it leads to."""
_STATUSES: Final = {Unchecked.LOCKED: 429, Unchecked.PAUSED: 429, Unchecked.BUSY: 503}


def may_enter(user: Person) -> bool:
    """Return whether the user is active, and is staff or has a role above member in a tenant."""
    return user.is_active and (user.is_staff or visible_tenants(user).exists())


def address_of(request: HttpRequest) -> str:
    """Return the client's address; behind a proxy of MCPHOST_PROXIES, the one that it reports."""
    return str(request.META.get("REMOTE_ADDR", ""))


def not_checked(refusal: NotCheckedError) -> ValidationError:
    """Return the refusal as a form error."""
    seconds = refusal.seconds
    number, unit = (seconds, "second") if seconds < 100 else (math.ceil(seconds / 60), "minute")
    wait = f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return ValidationError(_NOT_CHECKED[refusal.reason].format(wait=wait), code=refusal.reason)


def with_status(response: HttpResponseBase, refusal: NotCheckedError | None) -> HttpResponseBase:
    """Set 429 or 503 and Retry-After on the page of a form whose password was not checked."""
    if refusal is not None:
        response.status_code = _STATUSES[refusal.reason]
        response.headers["Retry-After"] = str(refusal.seconds)
    return response


def with_status_of_form(response: HttpResponseBase) -> HttpResponseBase:
    """Do the same for a view of Django's, whose form is in the response's `context_data`."""
    form = (getattr(response, "context_data", None) or {}).get("form")
    return response if form is None else with_status(response, form.refusal)


class SignInForm(AuthenticationForm):
    """User name and password. `refusal` is set if the password was not checked."""

    error_messages = {**AuthenticationForm.error_messages, "invalid_login": WRONG}
    refusal: NotCheckedError | None = None
    request: HttpRequest  # always given
    user_cache: AbstractBaseUser | None  # type: ignore[assignment]  # of any model

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["username"].label = "User name"

    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        submitted: dict[str, Any] = self.cleaned_data
        name, password = submitted.get("username"), submitted.get("password")
        if name and password:
            try:
                self.user_cache = passwords.check(
                    name,
                    address_of(self.request),
                    lambda: authenticate(self.request, username=name, password=password),
                )
            except NotCheckedError as refusal:
                self.refusal = refusal
                raise not_checked(refusal) from None
            if self.user_cache is None:
                raise self.get_invalid_login_error()
        return submitted


class SignInView(LoginView):
    """The sign-in page. Who is signed in may sign in there with another account."""

    authentication_form = SignInForm
    template_name = "console/login.html"

    def get_success_url(self) -> str:
        """Return `next`; without it, and for members without the console, where the user may go."""
        console = reverse("admin:index")
        aim: str = self.get_redirect_url() or console
        return reverse("admin:you") if aim == console and not self._enters() else aim

    def get_context_data(self, **rest: Any) -> dict[str, Any]:
        """Add what the person signs in for, as far as the address of the next page tells."""
        aim = self.get_redirect_url()
        reasons = (reason for start, reason in REASONS if aim.startswith(start))
        enters = self._enters()
        onward = self.get_success_url() if enters else reverse("admin:you")
        return super().get_context_data(
            **rest, reason=next(reasons, ""), enters=enters, onward=onward
        )

    def _enters(self) -> bool:
        user = self.request.user
        assert isinstance(user, User | AnonymousUser)
        return may_enter(user)
