"""Pages for the members of a tenant and its invitations."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from mcphost.console import mail
from mcphost.console.base import (
    CONFIRMED,
    SignedInRequest,
    actor,
    blocked_by,
    confirm_form,
    form_input,
    link_to,
    of_tenant,
    page_of,
    show,
    show_refusal,
)
from mcphost.console.forms import forms
from mcphost.console.forms.edits import Edit
from mcphost.console.return_links import named_list_url
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.tenants.tokens import asked_scopes
from mcphost.identity import account_links, live_access
from mcphost.identity.oauth.addresses import public_url
from mcphost.tenants import invitations, services
from mcphost.tenants.access import allowed, lock_open_tenant
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.invitations import InvitationState, IssuedInvitation
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import ROLE_PERMISSIONS, Permission, Role

ROLES = (
    (Role.OWNER.value, "Owner: everything except payloads"),
    (Role.OPERATOR.value, "Operator: tools, calls and tasks"),
    (Role.AUDITOR.value, "Auditor: reads calls, their payloads and the audit log"),
    (Role.MEMBER.value, "Member: only calls tools"),
)
INVITE = "invite"
"""The parameter that shows the form below the list."""
LASTS = (("1", "in a day"), (str(invitations.DAYS), "in a week"), ("30", "in 30 days"))


class InviteForm(forms.ConsoleForm):
    """The user name of the account to invite, and a role."""

    username = forms.text("User name", "Exactly as the person signs in.", required=True)
    role = forms.select("Role", choices=ROLES, required=True, initial=Role.OPERATOR.value)
    days = forms.select("Expires", choices=LASTS, required=True, initial=str(invitations.DAYS))
    sets_up = forms.switch(
        "The person has no account yet",
        "The link then also creates the account with this user name, with a password that the person "
        "chooses. Any holder of the link can do so: send it to the person only.",
    )
    email = forms.email("E-mail")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].help_text = "The link is also sent there. Empty: it is only shown."
        if not mail.is_available():
            del self.fields["email"]


class AppointForm(forms.ConsoleForm):
    """The user name of a tenant's first owner."""

    username = forms.text("User name", "Exactly as the person signs in.", required=True)


class RoleForm(forms.ConsoleForm):
    """Another role for a member."""

    role = forms.select("Role", choices=ROLES, required=True)


class ScopesForm(forms.ConsoleForm):
    """The scopes that a member's tokens and connected apps may have besides every member's."""

    scopes = forms.checkboxes(
        "Scopes", "Removing one also removes it from their tokens and connected apps at once."
    )


@of_tenant(Permission.MANAGE_MEMBERS)
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List members and invitations, with a form to invite, or to appoint the first owner."""
    staff = allowed(request.user, None, Permission.MANAGE_MEMBERS)
    appointing = staff and not services.active_owners(tenant.pk).exists()
    form = (AppointForm if appointing else InviteForm)(*form_input(request))
    if request.method == "POST" and form.is_valid():
        done = _appoint(request, tenant, form) if appointing else _invite(request, tenant, form)
        if done is not None:
            return done
    memberships = Membership.objects.filter(tenant=tenant).select_related("user")
    return show(
        request,
        "tenants/members.html",
        "Members",
        form=form,
        members=memberships.order_by("user__username"),
        invitations=invitations.listing(tenant.pk, timezone.now()),
        appointing=appointing,
        shows_form=request.method == "POST" or INVITE in request.GET or not memberships,
        tools_have_scopes=bool(asked_scopes(tenant)),
        roles=ROLES,
        sends_email=mail.is_available(),
    )


def _appoint(
    request: SignedInRequest, tenant: Tenant, form: forms.ConsoleForm
) -> HttpResponseBase | None:
    name = form.cleaned_data["username"]
    appointed = form.attempt(lambda: services.appoint_owner(tenant.pk, name, actor=actor(request)))
    if appointed is None:
        return None
    messages.success(request, f"{name} is now an owner, and sees who appointed them.")
    return redirect("admin:members", tenant.slug)


def _invite(
    request: SignedInRequest, tenant: Tenant, form: forms.ConsoleForm
) -> HttpResponseBase | None:
    submitted = form.cleaned_data
    role, days = Role(submitted["role"]), int(submitted["days"])
    issued = form.attempt(
        lambda: invitations.invite(
            tenant.pk,
            submitted["username"],
            role,
            actor=actor(request),
            days=days,
            sets_up=submitted["sets_up"],
        )
    )
    if issued is None:
        return None
    url = public_url(request, reverse("admin:invitation", args=[issued.link]))
    email = submitted.get("email", "")
    return show(
        request,
        "tenants/invitation_issued.html",
        f"Invitation for {issued.username}",
        page_of(tenant, "members", "Members"),
        invitation=issued,
        url=url,
        email=email,
        purpose=f"Send this link to {issued.username}; it works once.",
        sent=bool(email) and _send_invitation(tenant, request.user, email, issued, url),
    )


def _send_invitation(
    tenant: Tenant, inviter: User, address: str, issued: IssuedInvitation, url: str
) -> bool:
    text = mail.INVITATION.format(
        inviter=inviter.get_username(),
        user=issued.username,
        tenant=tenant.title,
        role=issued.role.value,
        url=url,
        expires=issued.expires_at,
    )
    return mail.send(address, f"Invitation to {tenant.title}", text)


@of_tenant(Permission.MANAGE_MEMBERS)
@require_POST
def send_link(request: SignedInRequest, tenant: Tenant, user_id: int) -> HttpResponseBase:
    """Send a member a link to choose another password. The owner does not see it."""
    user = _member(tenant, user_id)
    if not mail.is_available():
        raise Http404
    try:
        issued = account_links.issue_for_member(tenant.pk, user, actor=actor(request))
    except InvalidError as refusal:
        show_refusal(request, refusal)
        return _back(request, tenant, f"member-{user_id}")
    if mail.send_account_link(user.email, issued, mail.account_link_url(request, issued)):
        messages.success(request, f"{user.get_username()} was sent a link to choose a password.")
    else:
        messages.error(request, "The e-mail server did not take the message. Try again later.")
    return _back(request, tenant, f"member-{user_id}")


@of_tenant(Permission.MANAGE_MEMBERS)
def withdraw(request: SignedInRequest, tenant: Tenant, invitation_id: UUID) -> HttpResponseBase:
    """Withdraw an invitation, so that its link stops working, after confirmation."""
    invitation = invitations.invitation(tenant.pk, invitation_id, timezone.now())
    if invitation is None:
        raise Http404
    title = f"Withdraw the invitation of “{invitation.username}”"
    is_open = invitation.state in (InvitationState.OPEN, InvitationState.VOID)
    if is_open and request.method != "POST":
        crumb = page_of(tenant, "members", "Members")
        return show(
            request,
            "confirm.html",
            title,
            crumb,
            points=(
                "Its link will stop working at once, and cannot be made to work again.",
                f"{invitation.username} needs a new invitation to become a member.",
            ),
            verb=title,
            back=crumb.url,
        )
    if is_open and invitations.withdraw(tenant.pk, invitation_id, actor=actor(request)):
        messages.success(request, "The invitation was withdrawn.")
    else:
        messages.error(request, "There is no such open invitation.")
    return _back(request, tenant, str(invitation_id))


@of_tenant(Permission.MANAGE_MEMBERS)
@require_POST
def change(request: SignedInRequest, tenant: Tenant, user_id: int) -> HttpResponseBase:
    """Give a member another role."""
    user = _member(tenant, user_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "There is no such role.")
        return _back(request, tenant, f"member-{user_id}")
    role = Role(form.cleaned_data["role"])
    is_owner = Membership.objects.filter(tenant=tenant, user=user, role=Role.OWNER).exists()
    if role is Role.OWNER and not is_owner and CONFIRMED not in request.POST:
        crumb, name = page_of(tenant, "members", "Members"), user.get_username()
        return confirm_form(
            request,
            f"Make “{name}” an owner",
            crumb,
            points=(
                format_sentence(
                    "`{}` will be able to change and close {}, and to take the role of owner from others.",
                    name,
                    tenant.title,
                ),
                "Any other owner can change the role again. What was changed until then stays changed.",
            ),
            back=crumb.url,
        )
    try:
        services.set_member(tenant.pk, user, role, actor=actor(request))
        messages.success(request, f"The role of {user.get_username()} is now {role.value}.")
    except InvalidError as refusal:
        show_refusal(request, refusal)
    return _back(request, tenant, f"member-{user_id}")


@of_tenant(Permission.MANAGE_MEMBERS)
def scopes(request: SignedInRequest, tenant: Tenant, user_id: int) -> HttpResponseBase:
    """Set the scopes of single tools that a member's own tokens may have."""
    membership = get_object_or_404(
        Membership.objects.select_related("user"), tenant=tenant, user=user_id
    )
    user = membership.user
    choices = sorted({*asked_scopes(tenant), *membership.scopes})
    form = ScopesForm(*form_input(request), initial={"scopes": membership.scopes})
    form.fields["scopes"].choices = [(scope, scope) for scope in choices]  # type: ignore[attr-defined]
    editing = Edit(request, form, {"scopes": membership.scopes})
    chooses = Permission.EDIT_TOOLS in ROLE_PERMISSIONS[Role(membership.role)]
    if request.method == "POST" and not chooses and form.is_valid():
        granted = sorted(form.cleaned_data["scopes"])
        saved = editing.save(
            user.get_username(),
            {"scopes": granted},
            lambda: {"scopes": _locked_scopes(request, tenant, user)},
            lambda: services.grant_scopes(tenant.pk, user, granted, actor=actor(request)),
        )
        if saved is not None:
            messages.success(request, "Saved.")
            return _back(request, tenant, f"member-{user_id}")
    return show(
        request,
        "tenants/member_scopes.html",
        f"Scopes of {user.get_username()}",
        page_of(tenant, "members", "Members"),
        form=form,
        based_on=editing.based_on,
        conflict=editing.conflict,
        person=user,
        choices=choices,
        chooses=chooses,
        granted=membership.scopes,
        role=membership.role,
        purpose="Which protected tools this member's tokens may use.",
    )


@of_tenant(Permission.MANAGE_MEMBERS)
def remove(request: SignedInRequest, tenant: Tenant, user_id: int) -> HttpResponseBase:
    """Remove a member, after confirmation."""
    user = _member(tenant, user_id)
    if request.method == "POST":
        try:
            services.remove_member(tenant.pk, user, actor=actor(request))
            messages.success(request, f"{user.get_username()} no longer has a role here.")
        except InvalidError as refusal:
            show_refusal(request, refusal)
        return redirect("admin:members", tenant.slug)
    name, is_last = user.get_username(), services.is_last_owner(tenant, user)
    role = Membership.objects.get(tenant=tenant, user=user).role
    access = live_access.of_member(tenant.pk, user.pk, timezone.now())
    ending = f"{access} will stop working permanently, even if {name} returns."
    return show(
        request,
        "confirm.html",
        f"The member “{name}” cannot be removed yet" if is_last else f"Remove the member “{name}”",
        page_of(tenant, "members", "Members"),
        **other_owner_first(f"{name} is", [tenant] if is_last else ()),
        points=()
        if is_last
        else (
            format_sentence("{} will lose the role of {} in {}.", name, role, tenant.title),
            *([ending] if access else ()),
            f"Calls and the audit log will keep the name. {name} needs a new invitation to return.",
            format_sentence(
                "Service accounts will keep {}, including those that this member issued.",
                link_to("their tokens", reverse("admin:tokens", args=[tenant.slug])),
            ),
        ),
        verb=f"Remove the member “{name}”",
        stay="Back" if is_last else "",
        back=reverse("admin:members", args=[tenant.slug]),
    )


def other_owner_first(subject: str, tenants: Sequence[Tenant]) -> dict[str, Any]:
    """Return what a confirmation page shows to keep the last owner of tenants; nothing without any.

    `subject` begins its sentence, such as “You are”.
    """
    pages = [
        (f"the members of {tenant.title}", reverse("admin:members", args=[tenant.slug]))
        for tenant in tenants
    ]
    return blocked_by(
        pages,
        "{} the last owner. First make another of {} an owner, or invite one.",
        "{} the last owner of several tenants. In each, first make another member an owner, or invite one:",
        subject,
    )


def _back(request: SignedInRequest, tenant: Tenant, row: str) -> HttpResponseBase:
    return redirect(named_list_url(request, "admin:members", tenant.slug, row=row))


def _locked_scopes(request: SignedInRequest, tenant: Tenant, user: User) -> list[str]:
    """Return a member's scopes, which only change while the tenant's row is locked."""
    lock_open_tenant(tenant.pk, actor(request), Permission.MANAGE_MEMBERS)
    scopes: list[str] = Membership.objects.get(tenant=tenant, user=user).scopes
    return scopes


def _member(tenant: Tenant, user_id: int) -> User:
    return get_object_or_404(User, pk=user_id, memberships__tenant=tenant)
