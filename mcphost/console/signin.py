"""Signing in: who may sign in, and the messages for a password that was not checked."""

import math
from typing import Any, Final

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import authenticate
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.debug import sensitive_variables

from mcphost.identity import passwords
from mcphost.identity.attempts import NotCheckedError, Unchecked
from mcphost.tenants.access import Person, visible_tenants

WRONG = "The user name or the password is wrong. Both are case-sensitive."
REFUSED = "This account has no access here. Ask an owner of your tenant for a role."
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


class SignInForm(AdminAuthenticationForm):
    """User name and password. `refusal` is set if the password was not checked."""

    error_messages = {**AdminAuthenticationForm.error_messages, "invalid_login": WRONG}
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
                    name, address_of(self.request), lambda: self._user(name, password)
                )
            except NotCheckedError as refusal:
                self.refusal = refusal
                raise not_checked(refusal) from None
            if self.user_cache is None:
                raise self.get_invalid_login_error()
        return submitted

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        if not isinstance(user, User) or not may_enter(user):
            raise ValidationError(REFUSED, code="no_role")

    def _user(self, name: str, password: str) -> AbstractBaseUser | None:
        """Return the user if the password is right.

        Raises ValidationError if that user may not sign in.
        """
        user = authenticate(self.request, username=name, password=password)
        if user is not None:
            self.confirm_login_allowed(user)
        return user


class AccountSignInForm(SignInForm):
    """The sign-in form for pages that need an account but no role, such as an invitation."""

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        if not user.is_active:
            raise ValidationError(WRONG, code="invalid_login")
