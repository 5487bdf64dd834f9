"""Pages for every account, also without access to the console: roles, apps and tokens.

These pages are about the signed-in user only. A tenant is looked up among those in which the user
has a role, so any other tenant is unknown.
"""

from collections.abc import Sequence
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    mcp_url,
    query_text,
    show,
    show_refusal,
)
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.tenants import connection_log
from mcphost.console.tenants.connections import WHAT_ENDS, disconnection, with_meanings
from mcphost.console.tenants.members import other_owner_first
from mcphost.console.tenants.tokens import (
    RevocationForm,
    TokenForm,
    own_scopes,
    renewal,
    revocation,
    shown_once,
)
from mcphost.identity import live_access, selectors, services
from mcphost.identity.oauth import connections
from mcphost.identity.oauth.connections import ConnectionPage
from mcphost.identity.selectors import TokenPage
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import ROLES_BY_TITLE, Membership, Tenant
from mcphost.tenants.roles import ROLE_PERMISSIONS, Permission, Role
from mcphost.tenants.services import active_owners, is_last_owner, remove_member

TITLE = "Your access"
_PAGES = ("after", "before", "at")
"""The fields of a URL that name a page of tokens; those of apps begin with `app_`."""


@require_safe
def overview(request: SignedInRequest) -> HttpResponseBase:
    """Show the user's roles with the addresses to connect to, and the apps and tokens that act for the user."""
    now = timezone.now()
    roles = _memberships(request.user).select_related("tenant").order_by(*ROLES_BY_TITLE)
    apps, tokens = _own_apps(request), _own_tokens(request)
    return show(
        request,
        "users/you.html",
        TITLE,
        roles=[(role, mcp_url(request, role.tenant.slug)) for role in roles],
        titles={role.tenant.slug: role.tenant.title for role in roles},
        readable=frozenset(
            role.tenant_id
            for role in roles
            if request.user.is_staff or Permission.VIEW_TOOLS in ROLE_PERMISSIONS[Role(role.role)]
        ),
        connections=with_meanings(apps.connections),
        older_apps=_beside(request, "app_after", apps.after),
        newer_apps=_beside(request, "app_before", apps.before),
        log=connection_log.of_user(request.user),
        tokens=[(token, token.state(now)) for token in tokens.tokens],
        older_tokens=_beside(request, "after", tokens.after),
        newer_tokens=_beside(request, "before", tokens.before),
    )


def _own_apps(request: SignedInRequest) -> ConnectionPage:
    """Return the page of connections that the URL names; the first one if it is of one that has ended."""
    after, before, at = (query_text(request.GET, f"app_{name}") for name in _PAGES)
    page = connections.own_connection_page(request.user.pk, after=after, before=before, at=at)
    return connections.own_connection_page(request.user.pk) if page.unknown else page


def _own_tokens(request: SignedInRequest) -> TokenPage:
    after, before, at = (query_text(request.GET, name) for name in _PAGES)
    page = selectors.own_token_page(request.user.pk, after=after, before=before, at=at)
    return selectors.own_token_page(request.user.pk) if page.unknown else page


def _beside(request: SignedInRequest, name: str, cursor: object) -> str:
    """Return the query of a page of one of the two lists, on which the other list stays as it is."""
    if not cursor:
        return ""
    prefix = "app_" if name.startswith("app_") else ""
    replaced = {f"{prefix}{name}" for name in _PAGES}
    rest = {
        key: value
        for key, value in request.GET.items()
        if key not in replaced and key.removeprefix("app_") in _PAGES
    }
    return urlencode({**rest, name: str(cursor)})


def issue(request: SignedInRequest, slug: str) -> HttpResponseBase:
    """Issue a token for the signed-in user. Only the form's response ever shows it."""
    membership = _membership(request.user, slug)
    tenant = membership.tenant
    form = TokenForm((), own_scopes(membership), *form_input(request))
    if request.method == "POST" and form.is_valid():
        token_request = form.token_request(timezone.now())
        issued = form.attempt(
            lambda: services.issue(tenant.pk, request.user, token_request, actor=actor(request))
        )
        if issued is not None:
            return shown_once(request, issued, tenant.slug, _here())
    return show(
        request,
        "tenants/token_form.html",
        f"New token for {tenant.title}",
        _here(),
        form=form,
        back=_here().url,
    )


def renew(request: SignedInRequest, token_id: str) -> HttpResponseBase:
    """Renew a token of the user. Only the form's response ever shows it."""
    token = selectors.token_of(request.user.pk, token_id)
    if token is None:
        raise Http404
    return renewal(request, token, _here())


def revoke(request: SignedInRequest, token_id: str) -> HttpResponseBase:
    """Revoke a token that acts for the user, even if another account issued it; confirmed."""
    token = selectors.token_of(request.user.pk, token_id)
    if token is None:
        raise Http404
    if request.method == "POST":
        stolen = bool(request.POST.get("stolen"))
        services.revoke(token.tenant, token_id, actor=actor(request), stolen=stolen)
        messages.success(request, format_sentence("“{}” is revoked.", token.name))
        return redirect("admin:you")
    return show(
        request,
        "confirm.html",
        f"Revoke the token “{token.name}”",
        _here(),
        form=RevocationForm() if selectors.has_line(token_id) else None,
        final=True,
        points=revocation(
            token, format_sentence("Your token “{}” for {}", token.name, _title(token.tenant))
        ),
        verb=f"Revoke the token “{token.name}”",
        back=_here().url,
    )


def disconnect(request: SignedInRequest, connection_id: UUID) -> HttpResponseBase:
    """Disconnect an app of the user, after confirmation."""
    connection = connections.connection_of(request.user.pk, connection_id)
    if connection is None:
        raise Http404
    if request.method == "POST":
        connections.end(connection.tenant, connection_id, actor=actor(request))
        done = format_sentence("“{}” is disconnected from {}.", connection.client, connection.slug)
        messages.success(request, done)
        return redirect("admin:you")
    return show(
        request,
        "confirm.html",
        disconnection(connection),
        _here(),
        points=(
            format_sentence(
                "“{}” will no longer be able to act as you in {}.",
                connection.client,
                _title(connection.tenant),
            ),
            *WHAT_ENDS,
            "To connect it again, you will have to allow it again.",
        ),
        verb=disconnection(connection),
        back=_here().url,
    )


def leave_tenant(request: SignedInRequest, slug: str) -> HttpResponseBase:
    """Give up the user's own role in a tenant, after confirmation."""
    membership = _membership(request.user, slug)
    tenant = membership.tenant
    if request.method == "POST":
        try:
            remove_member(tenant.pk, request.user, actor=actor(request))
            done = format_sentence("You no longer have a role in {}.", tenant.title)
            messages.success(request, done)
        except InvalidError as refusal:
            show_refusal(request, refusal)
        return redirect("admin:you")
    is_last = is_last_owner(tenant, request.user)
    return show(
        request,
        "confirm.html",
        f"You cannot leave “{tenant.title}” yet" if is_last else f"Leave “{tenant.title}”",
        _here(),
        **other_owner_first("You are", [tenant] if is_last else ()),
        points=() if is_last else _leaving(membership),
        verb=f"Leave “{tenant.title}”",
        stay="Back" if is_last else "",
        back=_here().url,
    )


def _leaving(membership: Membership) -> Sequence[str]:
    """Say what ends for a member who leaves, and who owns the tenant then."""
    tenant, role = membership.tenant, membership.role
    owners = active_owners(tenant.pk).exclude(pk=membership.pk).count()
    remaining = f"{owners or 'no'} {'other ' * (role == Role.OWNER)}owner{'s' * (owners != 1)}"
    access = live_access.of_member(tenant.pk, membership.user_id, timezone.now())
    ending = f"{access} will stop working permanently, even if you return."
    return (
        format_sentence(
            "You will lose the role of {} in {}, which has {}.", role, tenant.title, remaining
        ),
        *([ending] if access else ()),
        "Calls and the audit log will keep your name. You need a new invitation to return.",
    )


def _memberships(user: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user, tenant__closed_at=None)


def _membership(user: User, slug: str) -> Membership:
    memberships = _memberships(user).select_related("tenant")
    return get_object_or_404(memberships, tenant__slug=slug)


def _here() -> Crumb:
    return Crumb(TITLE, reverse("admin:you"))


def _title(tenant_id: UUID) -> str:
    return Tenant.objects.values_list("title", flat=True).get(pk=tenant_id)
