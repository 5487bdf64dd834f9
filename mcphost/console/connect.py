"""The page that connects a client to a tenant: the address, what to paste, a token, the log, Doctor."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponseBase
from django.utils import timezone

from mcphost.catalogue import selectors
from mcphost.console.base import SignedInRequest, actor, form_input, mcp_url, of_tenant, show
from mcphost.console.forms import forms
from mcphost.console.primitives import examples
from mcphost.console.tenants import clients, connection_log, doctor_run
from mcphost.console.tenants.client_programs import ExampleCall
from mcphost.console.tenants.doctor import verdict
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
    form = ConnectForm(*form_input(request))
    issued: IssuedToken | None = None
    if request.method == "POST" and _may_issue(request, tenant) and form.is_valid():
        token_request = TokenRequest(
            name=form.cleaned_data["name"],
            scopes=sorted(COMMON_SCOPES),
            expires_at=timezone.now() + LASTS,
        )
        issued = form.attempt(
            lambda: services.issue(tenant.pk, request.user, token_request, actor=actor(request))
        )
    return _show(request, tenant, form, issued)


@of_tenant(Permission.EDIT_TOOLS)
def doctor(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the same page; a POST runs Doctor, and shows what it finds."""
    if request.method != "POST":
        return _show(request, tenant, ConnectForm(), None)
    findings = doctor_run.run(request, tenant)
    return _show(
        request,
        tenant,
        ConnectForm(),
        None,
        findings=findings,
        verdict=verdict(findings) if findings else None,
        doctor_paused=findings is None,
    )


def _may_issue(request: SignedInRequest, tenant: Tenant) -> bool:
    is_open = tenant.closed_at is None
    return is_open and Membership.objects.filter(tenant=tenant, user=request.user).exists()


def _show(
    request: SignedInRequest,
    tenant: Tenant,
    form: ConnectForm,
    issued: IssuedToken | None,
    **context: Any,
) -> HttpResponseBase:
    url = mcp_url(request, tenant.slug)
    called = example_call(tenant)
    token = clients.STAND_IN if issued is None else issued.plaintext
    is_open = tenant.closed_at is None
    return show(
        request,
        "connect.html",
        "Connect",
        url=url,
        form=form,
        may_issue=_may_issue(request, tenant),
        token=issued,
        called=called,
        log=connection_log.of_tenant(request.user, tenant),
        setups=clients.setups(tenant.slug, url, token, called) if is_open else (),
        **context,
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
    arguments = examples.arguments(tool.listing.get("inputSchema", {}))
    return ExampleCall(tool.name, arguments, tool.param_headers)


def _required(listing: Mapping[str, Any]) -> int:
    return len(listing.get("inputSchema", {}).get("required", ()))
