"""Signing in: who may, and how often a wrong password may be tried."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.core.exceptions import ValidationError
from unfold.forms import AuthenticationForm

from mcphost.tenants.access import Person, visible_tenants

FAILURES = 8
WITHIN_SECONDS = 300.0
MOST_KEPT = 10_000

WRONG = "The user name or the password is wrong. Mind capital letters."
REFUSED = "This account has no access here. Ask an owner of your tenant for a role."
TOO_MANY = "Too many failed attempts. Wait five minutes, then try again."

Key = tuple[str, str]


def may_enter(user: Person) -> bool:
    """Active staff, and whoever has a role above member anywhere."""
    return user.is_active and (user.is_staff or visible_tenants(user).exists())


class Attempts:
    """Failed sign-ins per name and address, in the memory of this process, boundedly many.

    `clock` gives seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[Key, list[float]] = OrderedDict()

    def exhausted(self, key: Key) -> bool:
        """Whether there were too many of late."""
        with self._lock:
            return len(self._recent(key)) >= FAILURES

    def failed(self, key: Key) -> None:
        with self._lock:
            self._failures[key] = [*self._recent(key), self._clock()]
            self._failures.move_to_end(key)
            while len(self._failures) > MOST_KEPT:
                self._failures.popitem(last=False)

    def succeeded(self, key: Key) -> None:
        with self._lock:
            self._failures.pop(key, None)

    def forget_all(self) -> None:
        with self._lock:
            self._failures.clear()

    def _recent(self, key: Key) -> list[float]:
        since = self._clock() - WITHIN_SECONDS
        return [at for at in self._failures.get(key, ()) if at > since]


attempts = Attempts()


class SignInForm(AuthenticationForm):
    """Name and password. Too many failures are refused before the password is looked at."""

    error_messages = {**AuthenticationForm.error_messages, "invalid_login": WRONG}

    def clean(self) -> dict[str, Any]:
        key = (str(self.cleaned_data.get("username", "")).lower(), self._address())
        if attempts.exhausted(key):
            raise ValidationError(TOO_MANY, code="too_many")
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            attempts.failed(key)
            raise
        attempts.succeeded(key)
        return cleaned

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        if not isinstance(user, User) or not may_enter(user):
            raise ValidationError(REFUSED, code="no_role")

    def _address(self) -> str:
        return str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
