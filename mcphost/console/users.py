"""The platform's users, for staff; and everybody's own password."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import password_validation, update_session_auth_hash
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from mcphost.console import forms, people
from mcphost.console.base import Crumb, Visit, actor, of_platform, sent, show, word
from mcphost.console.people import PersonFields
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Permission

PER_PAGE = 50
_NAME_LENGTH = 150


class PersonForm(forms.ConsoleForm):
    """What staff may set of a user. `me` is who is signed in."""

    first_name = forms.text("First name", maxlength=_NAME_LENGTH)
    last_name = forms.text("Last name", maxlength=_NAME_LENGTH)
    email = forms.email("E-mail")
    is_active = forms.switch("Active", "Off: cannot sign in, and their tokens do not work.")
    is_staff = forms.switch("Platform staff", "Runs the platform: every tenant, user and function.")

    def __init__(self, *args: Any, itself: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._itself = itself

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for name in ("is_active", "is_staff"):
            if self._itself and not given.get(name):
                self.add_error(name, "You cannot take this from yourself; ask somebody else.")
        return given

    def wanted(self) -> PersonFields:
        given = self.cleaned_data
        names = PersonFields.__dataclass_fields__
        return PersonFields(**{name: given[name] for name in names})


class NewPersonForm(PersonForm):
    """A new user, with a password to hand over."""

    username = forms.text("User name", "What they sign in with. It stays.", required=True)
    password = forms.password("Password", "They can change it once they have signed in.")
    field_order = ("username", "password")

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        UnicodeUsernameValidator()(name)
        if len(name) > _NAME_LENGTH:
            raise ValidationError(f"Use at most {_NAME_LENGTH} characters.")
        if User.objects.filter(username__iexact=name).exists():
            raise ValidationError(people.TAKEN)
        return name

    def clean_password(self) -> str:
        return _strong(self.cleaned_data["password"])


class PasswordForm(forms.ConsoleForm):
    """A password for somebody else."""

    password = forms.password("New password")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean_password(self) -> str:
        return _strong(self.cleaned_data["password"], self._user)


class OwnPasswordForm(PasswordForm):
    """Another password for oneself, by who knows the present one."""

    present = forms.password("Present password", autocomplete="current-password")
    again = forms.password("New password again")
    field_order = ("present", "password", "again")

    def clean_present(self) -> str:
        if not self._user.check_password(self.cleaned_data["present"]):
            raise ValidationError("This is not your present password.")
        return ""

    def clean_again(self) -> str:
        if self.cleaned_data["again"] != self.cleaned_data.get("password"):
            raise ValidationError("The two are not alike.")
        return ""


def _strong(password: str, user: User | None = None) -> str:
    password_validation.validate_password(password, user)
    return password


@of_platform(Permission.MANAGE_MEMBERS)
@require_safe
def listing(request: Visit) -> HttpResponseBase:
    """Every user, by name."""
    wanted, after = word(request.GET, "q", 100), word(request.GET, "after", _NAME_LENGTH)
    found = User.objects.order_by("username").filter(username__gt=after)
    if wanted:
        found = found.filter(Q(username__icontains=wanted) | Q(email__icontains=wanted))
    rows = list(found.prefetch_related("memberships__tenant")[: PER_PAGE + 1])
    return show(
        request,
        "users.html",
        "Users",
        people=rows[:PER_PAGE],
        after=rows[PER_PAGE - 1].username if len(rows) > PER_PAGE else "",
        wanted=wanted,
    )


@of_platform(Permission.MANAGE_MEMBERS)
def add(request: Visit) -> HttpResponseBase:
    """A new user."""
    form = NewPersonForm(*sent(request), initial={"is_active": True})
    if request.method == "POST" and form.is_valid():
        name, password = form.cleaned_data["username"], form.cleaned_data["password"]
        wanted, who = form.wanted(), actor(request)
        if form.attempt(lambda: people.create(name, password, wanted, who)) is not None:
            messages.success(request, f"{name} can sign in, once an owner gives them a role.")
            return redirect("admin:users")
    return show(request, "form.html", "New user", _users(), form=form, verb="Create user")


@of_platform(Permission.MANAGE_MEMBERS)
def edit(request: Visit, user_id: int) -> HttpResponseBase:
    """One user."""
    user = get_object_or_404(User, pk=user_id)
    before = PersonFields.of(user)
    initial = {name: getattr(before, name) for name in PersonFields.__dataclass_fields__}
    form = PersonForm(*sent(request), initial=initial, itself=user.pk == request.user.pk)
    if request.method == "POST" and form.is_valid():
        people.update(user, form.wanted(), actor(request))
        messages.success(request, "Saved.")
        return redirect("admin:user", user.pk)
    return show(
        request,
        "user.html",
        user.get_username(),
        _users(),
        form=form,
        person=user,
        roles=Membership.objects.filter(user=user).select_related("tenant"),
    )


@of_platform(Permission.MANAGE_MEMBERS)
def set_password(request: Visit, user_id: int) -> HttpResponseBase:
    """A password for somebody who lost theirs."""
    user = get_object_or_404(User, pk=user_id)
    form = PasswordForm(user, *sent(request))
    if request.method == "POST" and form.is_valid():
        _set(request, user, form.cleaned_data["password"])
        messages.success(request, f"{user.get_username()} has a new password.")
        return redirect("admin:user", user.pk)
    step = Crumb(user.get_username(), reverse("admin:user", args=[user.pk]))
    return show(
        request, "form.html", "Set password", _users(), step, form=form, verb="Set password"
    )


def own_password(request: Visit) -> HttpResponseBase:
    """One's own password."""
    form = OwnPasswordForm(request.user, *sent(request))
    if request.method == "POST" and form.is_valid():
        _set(request, request.user, form.cleaned_data["password"])
        messages.success(request, "Your password is changed.")
        return redirect("admin:index")
    return show(request, "form.html", "Change your password", form=form, verb="Change password")


def _set(request: Visit, user: User, password: str) -> None:
    people.set_password(user, password, actor(request))
    if user.pk == request.user.pk:
        update_session_auth_hash(request, user)  # who changes their own stays signed in


def _users() -> Crumb:
    return Crumb("Users", reverse("admin:users"))
