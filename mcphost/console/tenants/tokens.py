"""Pages for the tokens of a tenant: the list, issuing one (shown once), and revoking one."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from mcphost.audit.records import Actor
from mcphost.catalogue import selectors as catalogue
from mcphost.console import return_links
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    mcp_url,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.return_links import list_url, list_with
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.tenants import clients
from mcphost.identity import selectors, service_accounts, services
from mcphost.identity.oauth.addresses import public_url
from mcphost.identity.selectors import TokenListing, TokenPage
from mcphost.identity.services import IssuedToken, TokenRequest
from mcphost.identity.token_filters import TOKEN_STATES, TokenFilter, token_owners
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import (
    CALL_TOOLS,
    LIST_TOOLS,
    READ_API,
    WRITE_API,
    Audience,
    Permission,
    Role,
    audience_of,
    may_take,
)

MAX_OWNERS: Final = 100
"""Owners that the filter suggests."""
EXPIRIES = (("7", "in a week"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"))
AUDIENCES = (
    (Audience.MCP.value, "MCP clients of this tenant"),
    (Audience.API.value, "The administration API"),
)
SCOPE_MEANINGS = {
    LIST_TOOLS: "list tools, prompts and resources",
    CALL_TOOLS: "call tools, get prompts, read resources",
    READ_API: "read through the API",
    WRITE_API: "change through the API",
}


def scope_meanings(scopes: Iterable[str]) -> forms.Choices:
    """Return each scope with what it allows, in words."""
    return [(scope, SCOPE_MEANINGS.get(scope, "use what requires this scope")) for scope in scopes]


class TokenForm(forms.ConsoleForm):
    """The fields of a new token."""

    name = forms.text("Name", "Where it will be used, such as “Olga's laptop”.", autofocus=True)
    owner = forms.select(
        "Owner",
        "You, or a service account. Other members issue their own tokens under “Your access”.",
        required=True,
        error_messages={"invalid_choice": services.FOR_ONESELF},
    )
    audience = forms.select("Audience", choices=AUDIENCES, initial=Audience.MCP.value)
    scopes = forms.checkboxes("Scopes", "The token can never do more than the account it acts for.")
    expires_at = forms.select(
        "Expires", choices=[*EXPIRIES, ("", "never")], initial="90", required=False
    )
    calls_per_minute = forms.number(
        "Calls per minute", "calls", "For this token. Empty: no separate limit."
    )
    concurrent_calls = forms.number(
        "Concurrent calls", "calls", "For this token. Empty: no separate limit."
    )

    def __init__(
        self, owners: forms.Choices, scopes: forms.Choices, *args: Any, **kwargs: Any
    ) -> None:
        """Without `owners` to choose from, the token belongs to the signed-in user."""
        super().__init__(*args, **kwargs)
        if owners:
            self.fields["owner"].choices = owners  # type: ignore[attr-defined]
        else:
            del self.fields["owner"]
            self.fields["scopes"].help_text = "The token can never do more than you can."
        self.fields["scopes"].choices = scopes  # type: ignore[attr-defined]
        self.fields["scopes"].initial = [LIST_TOOLS, CALL_TOOLS]

    def token_request(self, now: datetime) -> TokenRequest:
        """Return the request for the service, with only the scopes that fit the audience."""
        submitted = self.cleaned_data
        audience = Audience(submitted["audience"] or Audience.MCP)
        days = submitted["expires_at"]
        return TokenRequest(
            name=submitted["name"],
            scopes=tuple(scope for scope in submitted["scopes"] if audience_of(scope) is audience),
            audience=audience,
            expires_at=now + timedelta(days=int(days)) if days else None,
            calls_per_minute=submitted["calls_per_minute"],
            concurrent_calls=submitted["concurrent_calls"],
        )


class RenewalForm(forms.ConsoleForm):
    """When the token that renews another expires."""

    expires_at = forms.select(
        "Expires", choices=[*EXPIRIES, ("", "never")], initial="90", required=False
    )

    def renew(self, token: TokenListing, by: Actor) -> IssuedToken | None:
        """Renew the token; None if the form, or the service, has something against it."""
        if not self.is_valid():
            return None
        days = self.cleaned_data["expires_at"]
        until = timezone.now() + timedelta(days=int(days)) if days else None
        return self.attempt(
            lambda: services.renew(token.tenant, token.id, actor=by, expires_at=until)
        )


class RevocationForm(forms.ConsoleForm):
    """Whether all tokens of a line are revoked."""

    stolen = forms.switch(
        "Revoke as stolen",
        "Also revokes every other token of its line: those that it renewed, and those that renewed it.",
    )


def own_scopes(membership: Membership) -> forms.Choices:
    """Return the scopes that a member may give to their own token."""
    role = Role(membership.role)
    return [
        (scope, text)
        for scope, text in _scopes(membership.tenant)
        if may_take(role, scope, membership.scopes)
    ]


def asked_scopes(tenant: Tenant) -> tuple[str, ...]:
    """Return the scopes that single primitives of a tenant require."""
    scopes = set(catalogue.working_scopes(tenant.pk))
    scopes |= {
        scope
        for primitive in catalogue.offering(tenant.pk).everything
        for scope in primitive.scopes
    }
    return tuple(sorted(scopes - set(SCOPE_MEANINGS)))


def _scopes(tenant: Tenant) -> forms.Choices:
    """Return the scopes in use here: the general ones, and those that primitives require."""
    named = {
        **SCOPE_MEANINGS,
        **dict.fromkeys(asked_scopes(tenant), "required by a tool, prompt or resource"),
    }
    return [(scope, f"{scope}: {meaning}") for scope, meaning in named.items()]


@of_tenant(Permission.MANAGE_TOKENS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List tokens, newest first, and last those that are revoked."""
    now = timezone.now()
    words = {name: query_text(request.GET, name) for name in ("state", "owner")}
    beside = {name: query_text(request.GET, name) for name in ("after", "before", "at")}
    token_filter = TokenFilter(**words, also=query_text(request.GET, return_links.CHANGED))
    if words["state"] in ("", *TOKEN_STATES):
        page = selectors.listed_tokens(tenant.pk, token_filter, now, **beside)
        beside_row = next(filter(None, beside.values()), "")
        problem = f"There is no page “{beside_row}”." if page.unknown else ""
    else:
        page, problem = TokenPage(()), f"The filter “State” has no value “{words['state']}”."
    active_filters = {name: value for name, value in words.items() if value}
    return show(
        request,
        "tenants/tokens.html",
        "Tokens",
        tokens=[(token, token.state(now)) for token in page.tokens],
        problem=problem,
        older=page.after and urlencode({**active_filters, "after": page.after}),
        newer=page.before and urlencode({**active_filters, "before": page.before}),
        states=TOKEN_STATES,
        owners=token_owners(tenant.pk, MAX_OWNERS),
        narrow=bool(active_filters),
        state=words["state"],
        owner=words["owner"],
        kept=return_links.from_here(request),
    )


def token_url(slug: str, token_id: str) -> str:
    """Return the URL of the page of the list which has this token."""
    return list_with(reverse("admin:tokens", args=[slug]), token_id)


@of_tenant(Permission.MANAGE_TOKENS)
def issue(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Issue a token for the user or a service account. Only the form's response shows it."""
    person = request.user
    itself = Membership.objects.filter(tenant=tenant, user=person).first()
    owners = [(str(person.pk), f"you ({person.get_username()}, {itself.role})")] if itself else []
    owners += [
        (str(account.id), f"service account {account.name}")
        for account in service_accounts.accounts(tenant.pk)
        if account.disabled_at is None
    ]
    initial = {"owner": request.GET.get("owner", "")}
    form = TokenForm(owners, _scopes(tenant), *form_input(request), initial=initial)
    if request.method == "POST" and owners and form.is_valid():
        issued = form.attempt(lambda: _issue(request, tenant.pk, form))
        if issued is not None:
            return shown_once(request, issued, tenant.slug, page_of(tenant, "tokens", "Tokens"))
    return show(
        request,
        "tenants/token_form.html",
        "New token",
        page_of(tenant, "tokens", "Tokens"),
        form=form,
        ownerless=not owners,
        back=reverse("admin:tokens", args=[tenant.slug]),
    )


def _issue(request: SignedInRequest, tenant_id: UUID, form: TokenForm) -> IssuedToken:
    token_request, owner = form.token_request(timezone.now()), form.cleaned_data["owner"]
    if owner == str(request.user.pk):
        return services.issue(tenant_id, request.user, token_request, actor=actor(request))
    return services.issue_for_service(tenant_id, UUID(owner), token_request, actor=actor(request))


def shown_once(
    request: SignedInRequest, issued: IssuedToken, slug: str, back: Crumb
) -> HttpResponseBase:
    """Show a new token, on the only page that ever does; `back` is its link back."""
    url = mcp_url(request, slug)
    address = public_url(request, f"/api/v1/tenants/{slug}")
    return show(
        request,
        "tenants/token_issued.html",
        f"New token “{issued.name}”",
        back,
        token=issued,
        purpose="",
        snippets=(
            clients.snippets(slug, url, issued.plaintext)
            if issued.audience is Audience.MCP
            else (clients.api_snippet(address, issued.plaintext),)
        ),
        url=url,
        back=back.url,
    )


@of_tenant(Permission.MANAGE_TOKENS)
def renew(request: SignedInRequest, tenant: Tenant, token_id: str) -> HttpResponseBase:
    """Renew a token of the user or of a service account. Only the form's response shows it."""
    token = selectors.token(tenant.pk, token_id)
    if token is None or token.user_id not in {None, request.user.pk}:
        raise Http404
    return renewal(request, token, Crumb("Tokens", token_url(tenant.slug, token_id)))


def revocation(token: TokenListing, subject: SafeString) -> Sequence[str]:
    """Say what the revocation of a token ends, what stays, and when it was last used."""
    used = "never" if token.last_used_at is None else f"{token.last_used_at:%Y-%m-%d %H:%M} UTC"
    return (
        format_sentence("{} will stop working immediately and permanently.", subject),
        "Its calls will stay in the record, and it will stay in the list as revoked.",
        f"Last used: {used}. Expires: {_day(token.expires_at)}.",
    )


def _old_token(token: TokenListing) -> str:
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "The old token has expired."
    if token.expires_at is None:
        return "The old token will keep working until you revoke it."
    return f"The old token will work until {_day(token.expires_at)}: replace it before then."


def _owner(token: TokenListing) -> SafeString:
    """Name the owner within a sentence."""
    words = "the service account `{}`" if token.user_id is None else "`{}`"
    return format_sentence(words, token.owner_name)


def _day(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment:%Y-%m-%d}"


def renewal(request: SignedInRequest, token: TokenListing, page: Crumb) -> HttpResponseBase:
    """Show the form that renews a token, or the new token."""
    form = RenewalForm(*form_input(request))
    issued = form.renew(token, actor(request)) if request.method == "POST" else None
    if issued is not None:
        return shown_once(request, issued, token.slug, page)
    return show(
        request,
        "confirm.html",
        f"Renew “{token.name}”",
        page,
        form=form,
        points=(
            format_sentence(
                "You will get a new token of {}, with the same scopes and limits.", _owner(token)
            ),
            "Calls in progress will go on under the new one.",
            _old_token(token),
        ),
        verb="Renew token",
        harmless=True,
        back=page.url,
    )


@of_tenant(Permission.MANAGE_TOKENS)
def revoke(request: SignedInRequest, tenant: Tenant, token_id: str) -> HttpResponseBase:
    """Revoke a token for good, after confirmation."""
    token = selectors.token(tenant.pk, token_id)
    if token is None:
        raise Http404
    page = Crumb("Tokens", token_url(tenant.slug, token_id))
    if request.method == "POST":
        stolen = bool(request.POST.get("stolen"))
        services.revoke(tenant.pk, token_id, actor=actor(request), stolen=stolen)
        messages.success(request, format_sentence("“{}” is revoked.", token.name))
        return redirect(list_url(request, page.url, row=f"token-{token_id}", changed=token_id))
    return show(
        request,
        "confirm.html",
        f"Revoke the token “{token.name}”",
        page,
        form=RevocationForm() if selectors.has_line(token_id) else None,
        final=True,
        points=revocation(
            token, format_sentence("The token “{}” of {}", token.name, _owner(token))
        ),
        verb=f"Revoke the token “{token.name}”",
        back=page.url,
        at_row=f"token-{token_id}",
    )
