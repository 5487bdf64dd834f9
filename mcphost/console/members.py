"""Who has which role in a tenant."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from mcphost.console import forms
from mcphost.console.base import Visit, actor, of_tenant, page_of, sent, show
from mcphost.tenants import services
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Permission, Role

ROLES = (
    (Role.OWNER.value, "Owner: everything here but payloads"),
    (Role.OPERATOR.value, "Operator: tools and records"),
    (Role.AUDITOR.value, "Auditor: reads records and payloads"),
    (Role.MEMBER.value, "Member: only calls tools"),
)
NOBODY = "There is no active user of that name. Platform staff make users."


class MemberForm(forms.ConsoleForm):
    """A person by name, and their role."""

    username = forms.text("User name", "Exactly as they sign in.", required=True)
    role = forms.select("Role", choices=ROLES, required=True, initial=Role.OPERATOR.value)

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if not User.objects.filter(username=name, is_active=True).exists():
            raise ValidationError(NOBODY)
        return name


class RoleForm(forms.ConsoleForm):
    """Another role for somebody who has one."""

    role = forms.select("Role", choices=ROLES, required=True)


@of_tenant(Permission.MANAGE_MEMBERS)
def listing(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """Everybody with a role, and a form to add somebody."""
    form = MemberForm(*sent(request))
    if request.method == "POST" and form.is_valid():
        user = User.objects.get(username=form.cleaned_data["username"])
        role = Role(form.cleaned_data["role"])
        services.set_member(tenant.pk, user, role, actor=actor(request))
        messages.success(request, f"{user.get_username()} is {role.value} now.")
        return redirect("admin:members", tenant.slug)
    found = Membership.objects.filter(tenant=tenant).select_related("user")
    members = found.order_by("user__username")
    return show(request, "members.html", "Members", form=form, members=members, roles=ROLES)


@of_tenant(Permission.MANAGE_MEMBERS)
@require_POST
def change(request: Visit, tenant: Tenant, user_id: int) -> HttpResponseBase:
    """Give a member another role."""
    user = _member(tenant, user_id)
    form = RoleForm(request.POST)
    if form.is_valid():
        role = Role(form.cleaned_data["role"])
        services.set_member(tenant.pk, user, role, actor=actor(request))
        messages.success(request, f"{user.get_username()} is {role.value} now.")
    else:
        messages.error(request, "There is no such role.")
    return redirect("admin:members", tenant.slug)


@of_tenant(Permission.MANAGE_MEMBERS)
def remove(request: Visit, tenant: Tenant, user_id: int) -> HttpResponseBase:
    """Take a person's role away, confirmed."""
    user = _member(tenant, user_id)
    if request.method == "POST":
        services.remove_member(tenant.pk, user, actor=actor(request))
        messages.success(request, f"{user.get_username()} has no role here any more.")
        return redirect("admin:members", tenant.slug)
    return show(
        request,
        "confirm.html",
        "Remove a member",
        page_of(tenant, "members", "Members"),
        explanation=(
            f"{user.get_username()} loses the role here, and all tokens they hold for this tenant "
            "stop working for good, even if they return."
        ),
        verb="Remove",
        back=reverse("admin:members", args=[tenant.slug]),
    )


def _member(tenant: Tenant, user_id: int) -> User:
    return get_object_or_404(User, pk=user_id, memberships__tenant=tenant)
