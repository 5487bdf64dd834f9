"""The page that connects a client to a tenant: the address, what to paste, and a token."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponseBase
from django.utils import timezone

from mcphost.catalogue import selectors
from mcphost.console.base import SignedInRequest, actor, form_input, mcp_url, of_tenant, show
from mcphost.console.forms import forms
from mcphost.console.primitives import examples
from mcphost.console.tenants import clients, connection_log
from mcphost.console.tenants.client_programs import ExampleCall
from mcphost.identity import services
from mcphost.identity.services import IssuedToken, TokenRequest
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import COMMON_SCOPES, Permission

LASTS: Final = timedelta(days=90)


class ConnectForm(forms.ConsoleForm):
    """The only thing to say of a token that is issued here: where it will be used."""

    name = forms.text("Name of the token", "Where it will be used, such as “Olga's laptop”.")


@of_tenant(Permission.VIEW_TOOLS)
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show how to connect; a POST issues a token of the user, which only its response shows."""
    url = mcp_url(request, tenant.slug)
    is_open = tenant.closed_at is None
    may_issue = is_open and Membership.objects.filter(tenant=tenant, user=request.user).exists()
    form = ConnectForm(*form_input(request))
    issued: IssuedToken | None = None
    if request.method == "POST" and may_issue and form.is_valid():
        token_request = TokenRequest(
            name=form.cleaned_data["name"],
            scopes=sorted(COMMON_SCOPES),
            expires_at=timezone.now() + LASTS,
        )
        issued = form.attempt(
            lambda: services.issue(tenant.pk, request.user, token_request, actor=actor(request))
        )
    called = example_call(tenant)
    token = clients.STAND_IN if issued is None else issued.plaintext
    return show(
        request,
        "connect.html",
        "Connect",
        url=url,
        form=form,
        may_issue=may_issue,
        token=issued,
        called=called,
        log=connection_log.of_tenant(request.user, tenant),
        setups=clients.setups(tenant.slug, url, token, called) if is_open else (),
    )


def example_call(tenant: Tenant) -> ExampleCall | None:
    """Return a call for the snippets: of a tool that only reads and takes few arguments."""
    tools = [tool for tool in selectors.offering(tenant.pk).tools if not tool.scopes]
    if not tools:
        return None
    tool = min(
        tools,
        key=lambda candidate: (
            not candidate.read_only,
            _required(candidate.listing),
            candidate.name,
        ),
    )
    return ExampleCall(tool.name, examples.arguments(tool.listing.get("inputSchema", {})))


def _required(listing: Mapping[str, Any]) -> int:
    return len(listing.get("inputSchema", {}).get("required", ()))
