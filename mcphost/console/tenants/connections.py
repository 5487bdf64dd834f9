"""Pages for the apps that members of a tenant connected by signing in: the list, and disconnecting."""

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.console.base import Crumb, SignedInRequest, actor, of_tenant, query_text, show
from mcphost.console.forms import forms
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.tenants.tokens import scope_meanings
from mcphost.identity.oauth import connections
from mcphost.identity.oauth.connections import ConnectionListing
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

WHAT_ENDS: Final = (
    "Its streams, calls, questions and tasks will end within seconds, and cannot be resumed.",
    "Its calls will stay in the record.",
)


def disconnection(connection: ConnectionListing) -> str:
    """Return the name of the action that ends a connection."""
    return f"Disconnect the app “{connection.client}”"


def with_meanings(
    listings: Iterable[ConnectionListing],
) -> Sequence[tuple[ConnectionListing, forms.Choices, str]]:
    """Return each connection with its scopes in words, and its state."""
    now = timezone.now()
    return [(listing, scope_meanings(listing.scopes), listing.state(now)) for listing in listings]


@of_tenant(Permission.MANAGE_TOKENS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the connected apps of all members, the newest first."""
    after, before, at = (query_text(request.GET, name) for name in ("after", "before", "at"))
    page = connections.connection_page(tenant.pk, after=after, before=before, at=at)
    is_gone = page.unknown and not after and not before
    if is_gone:  # a link to a connection that has ended since leads to the list
        page = connections.connection_page(tenant.pk)
    return show(
        request,
        "tenants/connections.html",
        "Connected apps",
        connections=with_meanings(page.connections),
        unknown=(after or before) if page.unknown else "",
        is_gone=is_gone,
        older=page.after and urlencode({"after": page.after}),
        newer=page.before and urlencode({"before": page.before}),
    )


@of_tenant(Permission.MANAGE_TOKENS)
def disconnect(request: SignedInRequest, tenant: Tenant, connection_id: UUID) -> HttpResponseBase:
    """Disconnect an app of a member, after confirmation."""
    connection = connections.connection(tenant.pk, connection_id)
    if connection is None:
        raise Http404
    page = Crumb("Connected apps", reverse("admin:connections", args=[tenant.slug]))
    if request.method == "POST":
        connections.end(tenant.pk, connection_id, actor=actor(request))
        done = format_sentence("“{}” of {} is disconnected.", connection.client, connection.owner)
        messages.success(request, done)
        return redirect(page.url)
    return show(
        request,
        "confirm.html",
        disconnection(connection),
        page,
        points=(
            format_sentence(
                "“{}” will no longer be able to act for {} in {}.",
                connection.client,
                connection.owner,
                tenant.title,
            ),
            *WHAT_ENDS,
            "To connect it again, the member will have to allow it again.",
        ),
        verb=disconnection(connection),
        back=page.url,
    )
