"""Pages for the platform's users, for staff; and the page to change your own password."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Prefetch, Q
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit.records import Actor
from mcphost.console import return_links
from mcphost.console.base import (
    CONFIRMED,
    Crumb,
    SignedInRequest,
    actor,
    confirm_form,
    form_input,
    of_platform,
    query_text,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.forms.edits import Edit
from mcphost.console.paging import page_by_name
from mcphost.console.password_forms import NAME_LENGTH, ChosenPasswordForm
from mcphost.console.return_links import row_url
from mcphost.console.signin import address_of, not_checked, with_status
from mcphost.console.tenants.members import other_owner_first
from mcphost.console.users import account_access, account_links, changes
from mcphost.console.users.account_links import users_crumb
from mcphost.console.users.changes import PersonFields
from mcphost.identity import live_access, passwords
from mcphost.identity.account_links import IssuedAccountLink, issue
from mcphost.identity.attempts import NotCheckedError
from mcphost.tenants.models import ROLES_BY_TITLE, Membership
from mcphost.tenants.roles import Permission
from mcphost.tenants.services import owned_alone

PER_PAGE = 50


class PersonForm(forms.ConsoleForm):
    """The fields of a user that staff may set. `itself`: the user is the one who is signed in."""

    first_name = forms.text("First name", maxlength=NAME_LENGTH)
    last_name = forms.text("Last name", maxlength=NAME_LENGTH)
    email = forms.email("E-mail")
    is_active = forms.switch(
        "Active", "Off: the user cannot sign in, and the user's tokens and apps do not work."
    )
    is_staff = forms.switch("Platform staff", "Runs the platform: every tenant, user and function.")

    def __init__(self, *args: Any, itself: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._itself = itself

    def clean(self) -> dict[str, Any]:
        submitted: dict[str, Any] = super().clean() or {}
        for name in ("is_active", "is_staff"):
            if self._itself and not submitted.get(name):
                self.add_error(
                    name, "You cannot remove this from your own account. Ask another staff member."
                )
        return submitted

    def person_fields(self) -> PersonFields:
        submitted = self.cleaned_data
        names = PersonFields.__dataclass_fields__
        return PersonFields(**{name: submitted[name] for name in names})


class NewPersonForm(PersonForm):
    """A new user, who chooses a password by a link."""

    username = forms.text(
        "User name",
        "The name to sign in with. It cannot be changed later.",
        required=True,
        autofocus=True,
    )
    field_order = ("username",)

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        UnicodeUsernameValidator()(name)
        if len(name) > NAME_LENGTH:
            raise ValidationError(f"Use at most {NAME_LENGTH} characters.")
        if User.objects.filter(username__iexact=name).exists():
            raise ValidationError(changes.NAME_TAKEN)
        return name


class OwnPasswordForm(ChosenPasswordForm):
    """A new password for the signed-in user, who has to give the present one."""

    present = forms.password("Current password", autocomplete="current-password")
    field_order = ("present", "password", "again")
    refusal: NotCheckedError | None = None

    def __init__(self, request: SignedInRequest) -> None:
        super().__init__(request.user, *form_input(request))
        self._address = address_of(request)

    def clean_present(self) -> str:
        user, present = self._user, self.cleaned_data["present"]
        try:
            # Not the user's own method: that may store another hash of this password, which would
            # replace a password that was set meanwhile.
            right = passwords.check(
                user.get_username(), self._address, lambda: check_password(present, user.password)
            )
        except NotCheckedError as refusal:
            self.refusal = refusal
            raise not_checked(refusal) from None
        if not right:
            raise ValidationError("This is not your current password.")
        return ""


@of_platform(Permission.MANAGE_MEMBERS)
@require_safe
def listing(request: SignedInRequest) -> HttpResponseBase:
    """List all users, by name."""
    search_text = query_text(request.GET, "q", 100)
    roles = Membership.objects.select_related("tenant").order_by(*ROLES_BY_TITLE)
    users = User.objects.prefetch_related(Prefetch("memberships", roles))
    if search_text:
        users = users.filter(Q(username__icontains=search_text) | Q(email__icontains=search_text))
    page = page_by_name(users, "username", request.GET, {"q": search_text}, PER_PAGE)
    return show(
        request,
        "users/users.html",
        "Users",
        people=page.rows,
        older=page.following,
        newer=page.previous,
        search_text=search_text,
        kept=return_links.from_here(request),
    )


@of_platform(Permission.MANAGE_MEMBERS)
def add(request: SignedInRequest) -> HttpResponseBase:
    """Create a user, and show the link by which the person chooses a password."""
    form = NewPersonForm(*form_input(request), initial={"is_active": True})
    if request.method == "POST" and form.is_valid():
        name, fields = form.cleaned_data["username"], form.person_fields()
        if fields.is_staff and CONFIRMED not in request.POST:
            return confirm_form(
                request,
                f"Create “{name}” as platform staff",
                users_crumb(),
                points=_staff_points(name),
                back=reverse("admin:user_add"),
            )
        made = form.attempt(lambda: _create(name, fields, actor(request)))
        if made is not None:
            return account_links.show_issued(request, *made)
    return show(
        request,
        "users/user_new.html",
        "New user",
        users_crumb(),
        form=form,
        verb="Create user and get link",
        back=users_crumb().url,
    )


@transaction.atomic
def _create(name: str, fields: PersonFields, creator: Actor) -> tuple[User, IssuedAccountLink]:
    user = changes.create(name, fields, creator)
    return user, issue(user, actor=creator)


@of_platform(Permission.MANAGE_MEMBERS)
def edit(request: SignedInRequest, user_id: int) -> HttpResponseBase:
    """Show and edit one user."""
    user = get_object_or_404(User, pk=user_id)
    before = asdict(PersonFields.of(user))
    form = PersonForm(*form_input(request), initial=before, itself=user.pk == request.user.pk)
    editing = Edit(request, form, before)
    if request.method == "POST" and form.is_valid():
        fields = form.person_fields()
        asks = editing.is_current and CONFIRMED not in request.POST
        if asks and (page := _confirm_access(request, user, fields)):
            return page
        saved = editing.save(
            user.get_username(),
            asdict(fields),
            lambda: asdict(PersonFields.of(changes.locked_by(actor(request), user_id))),
            lambda: changes.update(user, fields, actor(request)),
        )
        if saved is not None:
            messages.success(request, "Saved.")
            return redirect(row_url(request, "admin:user", user.pk))
    memberships = Membership.objects.filter(user=user).select_related("tenant")
    roles = memberships.order_by(*ROLES_BY_TITLE)
    return show(
        request,
        "users/user.html",
        user.get_username(),
        users_crumb(user),
        form=form,
        based_on=editing.based_on,
        conflict=editing.conflict,
        person=user,
        at_row=f"user-{user.pk}",
        roles=roles,
        titles={role.tenant.slug: role.tenant.title for role in roles},
        access=account_access.of_user(user.pk),
    )


def _confirm_access(
    request: SignedInRequest, user: User, fields: PersonFields
) -> HttpResponseBase | None:
    """Ask before a user is shut out, or becomes or is no longer platform staff; None for other changes."""
    name, back = user.get_username(), reverse("admin:user", args=[user.pk])
    points: dict[str, Sequence[str]] = {}
    if user.is_active and not fields.is_active:
        if alone := owned_alone(user):
            return confirm_form(
                request,
                f"The user “{name}” cannot be deactivated yet",
                users_crumb(user),
                points=(),
                stay="Back",
                back=back,
                **other_owner_first(f"{name} is", alone),
            )
        points[f"Deactivate the user “{name}”"] = _deactivation_points(user)
    if fields.is_staff and not user.is_staff:
        points[f"Make “{name}” platform staff"] = _staff_points(name)
    if user.is_staff and not fields.is_staff:
        points[f"Remove “{name}” from platform staff"] = (
            f"`{name}` will at once see only tenants where they have a role, and no pages of the platform.",
            "Their staff tokens for the API will stop working. Everything works again if they become staff again.",
        )
    if not points:
        return None
    title = next(iter(points)) if len(points) == 1 else f"Change the access of “{name}”"
    sentences = [*chain.from_iterable(points.values())]
    return confirm_form(request, title, users_crumb(user), points=sentences, back=back)


def _deactivation_points(user: User) -> Sequence[str]:
    access = live_access.of_user(user.pk, timezone.now())
    return (
        f"`{user.get_username()}` will be signed out within seconds, and will not be able to sign in.",
        *([f"{access} will stop working."] if access else ()),
        "Roles, tokens and apps are kept: all will work again once the user is active.",
    )


def _staff_points(name: str) -> Sequence[str]:
    return (
        f"`{name}` will be able to change every tenant, user, function and key, and to take this right from you.",
        "Any staff member can take it back. What was changed until then stays changed.",
    )


def own_password(request: SignedInRequest) -> HttpResponseBase:
    """Change the signed-in user's own password."""
    form = OwnPasswordForm(request)
    if request.method == "POST" and form.is_valid() and _set_own_password(request, form):
        messages.success(request, "Your password was changed.")
        return redirect("admin:you")
    here = reverse("admin:you")
    page = show(
        request,
        "forms/form.html",
        "Change your password",
        Crumb("Your access", here),
        form=form,
        verb="Change password",
        back=here,
    )
    return with_status(page, form.refusal)


def _set_own_password(request: SignedInRequest, form: OwnPasswordForm) -> bool:
    """Set the password, and return whether it was set. The user stays signed in here."""
    password, user, changer = form.cleaned_data["password"], request.user, actor(request)
    checked = user.password
    changed = form.attempt(lambda: changes.set_password(user, password, changer, checked=checked))
    if changed is not None:
        update_session_auth_hash(request, changed)
    return changed is not None
