"""Tokens of a tenant: the list, a new one (shown once), and revoking one."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.catalogue import selectors as catalogue
from mcphost.console import clients, forms
from mcphost.console.base import Visit, actor, mcp_url, of_tenant, page_of, sent, show
from mcphost.identity import selectors, services
from mcphost.identity.services import IssuedToken, TokenRequest
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import (
    CALL_TOOLS,
    LIST_TOOLS,
    READ_API,
    WRITE_API,
    Audience,
    Permission,
    audience_of,
)

EXPIRIES = (("7", "in a week"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"))
AUDIENCES = (
    (Audience.MCP.value, "MCP clients of this tenant"),
    (Audience.API.value, "The administration API"),
)
_SCOPES = {
    LIST_TOOLS: "see what is offered",
    CALL_TOOLS: "call tools, get prompts, read resources",
    READ_API: "read by the API",
    WRITE_API: "change by the API",
}


class TokenForm(forms.ConsoleForm):
    """What a new token is to be."""

    name = forms.text("Name", "Where it will be used, such as “Olga's laptop”.", autofocus=True)
    owner = forms.select("Owner", "Whose rights it has. It dies with their role here.")
    audience = forms.select("For", choices=AUDIENCES, initial=Audience.MCP.value)
    scopes = forms.checkboxes("Scopes", "What it may do, at most what its owner may do.")
    expires_at = forms.select(
        "Expires", choices=[*EXPIRIES, ("", "never")], initial="90", required=False
    )
    calls_per_minute = forms.number(
        "Calls per minute", "For this token. Empty: no limit of its own."
    )
    concurrent_calls = forms.number(
        "Calls at a time", "For this token. Empty: no limit of its own."
    )

    def __init__(self, tenant: Tenant, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        owners = _owners(tenant)
        self.fields["owner"].choices = owners  # type: ignore[attr-defined]
        self.fields["owner"].initial = str(person.pk)
        self.fields["scopes"].choices = _scopes(tenant)  # type: ignore[attr-defined]
        self.fields["scopes"].initial = [LIST_TOOLS, CALL_TOOLS]

    def wanted(self, now: datetime) -> TokenRequest:
        """What the service is asked for: of the scopes, those of use to the audience."""
        given = self.cleaned_data
        audience = Audience(given["audience"] or Audience.MCP)
        days = given["expires_at"]
        return TokenRequest(
            name=given["name"],
            scopes=tuple(scope for scope in given["scopes"] if audience_of(scope) is audience),
            audience=audience,
            expires_at=now + timedelta(days=int(days)) if days else None,
            calls_per_minute=given["calls_per_minute"],
            concurrent_calls=given["concurrent_calls"],
        )


def _owners(tenant: Tenant) -> list[tuple[str, str]]:
    found = Membership.objects.filter(tenant=tenant, user__is_active=True).select_related("user")
    return [
        (str(each.user_id), f"{each.user.get_username()} ({each.role})")
        for each in found.order_by("user__username")
    ]


def _scopes(tenant: Tenant) -> list[tuple[str, str]]:
    """The scopes that mean something here: everybody's, and those that are asked for."""
    rows = catalogue.primitives(Tenant.objects.filter(pk=tenant.pk))
    asked = {scope for row in rows for scope in row.fields.scopes}
    asked |= {scope for each in catalogue.offering(tenant.pk).everything for scope in each.scopes}
    named = {**_SCOPES, **dict.fromkeys(sorted(asked), "asked for by something offered")}
    return [(scope, f"{scope}: {meaning}") for scope, meaning in named.items()]


@of_tenant(Permission.MANAGE_TOKENS)
@require_safe
def listing(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """Every token, the newest first, dead ones too."""
    now = timezone.now()
    rows = [(token, token.state(now)) for token in selectors.tokens(tenant.pk)]
    return show(request, "tokens.html", "Tokens", tokens=rows)


@of_tenant(Permission.MANAGE_TOKENS)
def issue(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """A new token. The answer to the form is the only page that ever shows it."""
    form = TokenForm(tenant, request.user, *sent(request))
    if request.method == "POST" and form.is_valid():
        issued = form.attempt(lambda: _issue(request, tenant.pk, form))
        if issued is not None:
            return _shown_once(request, tenant, issued)
    return show(
        request,
        "token_form.html",
        "New token",
        page_of(tenant, "tokens", "Tokens"),
        form=form,
        nobody=not form.fields["owner"].choices,  # type: ignore[attr-defined]
    )


def _issue(request: Visit, tenant_id: UUID, form: TokenForm) -> IssuedToken:
    owner = User.objects.filter(pk=int(form.cleaned_data["owner"] or 0)).first()
    wanted = form.wanted(timezone.now())
    return services.issue(tenant_id, owner or request.user, wanted, actor=actor(request))


def _shown_once(request: Visit, tenant: Tenant, issued: IssuedToken) -> HttpResponseBase:
    url = mcp_url(request, tenant.slug)
    mcp = issued.audience is Audience.MCP
    return show(
        request,
        "token_issued.html",
        "Your new token",
        page_of(tenant, "tokens", "Tokens"),
        token=issued,
        snippets=clients.snippets(tenant.slug, url, issued.plaintext) if mcp else (),
        url=url,
    )


@of_tenant(Permission.MANAGE_TOKENS)
def revoke(request: Visit, tenant: Tenant, token_id: str) -> HttpResponseBase:
    """Making a token worthless for good, confirmed."""
    found = {token.id: token for token in selectors.tokens(tenant.pk)}.get(token_id)
    if found is None:
        raise Http404
    if request.method == "POST":
        services.revoke(tenant.pk, token_id, actor=actor(request))
        messages.success(request, f"“{found.name}” is revoked.")
        return redirect("admin:tokens", tenant.slug)
    return show(
        request,
        "confirm.html",
        "Revoke a token",
        page_of(tenant, "tokens", "Tokens"),
        explanation=f"“{found.name}” of {found.owner} stops working at once, for good.",
        verb="Revoke",
        back=reverse("admin:tokens", args=[tenant.slug]),
    )
