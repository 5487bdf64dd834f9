"""The page that notifies subscribers that the content at a URI has changed."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from mcphost.catalogue.updates import announce_update
from mcphost.console.base import Crumb, SignedInRequest, actor, form_input, of_tenant, page_of, show
from mcphost.console.forms import forms
from mcphost.console.primitive_words import WORDS
from mcphost.console.primitives.primitives import row_of
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

_EXPLANATION = (
    "Clients that have subscribed to {} will be notified that its content has changed, so that they can "
    "read it again. The content itself will not change."
)


class UpdateForm(forms.ConsoleForm):
    """One of the URIs that a template answers."""

    uri = forms.text("URI", "A URI that matches the template.", inputmode="url", spellcheck="false")


@of_tenant(Permission.EDIT_TOOLS)
def announce(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType, primitive_id: UUID
) -> HttpResponseBase:
    """Ask for confirmation, then notify subscribers."""
    row, words = row_of(tenant, primitive_type, primitive_id), WORDS[primitive_type]
    back = reverse(words.detail, args=[tenant.slug, row.id])
    resource = primitive_type is PrimitiveType.RESOURCE
    data: Mapping[str, Any] | None = form_input(request)[0]
    if data is not None and resource:  # it has only one URI
        data = {"uri": row.uri}
    form = UpdateForm(data, initial={"uri": row.uri})
    if form.is_valid():
        uri = form.cleaned_data["uri"]
        if form.attempt(lambda: _notify_subscribers(tenant.pk, uri, request)):
            messages.success(request, f"Subscribers of {uri} are notified that it changed.")
            return redirect(back)
    return show(
        request,
        "confirm.html",
        f"Notify subscribers of “{row.name}”",
        page_of(tenant, words.listing.removeprefix("admin:"), words.title),
        Crumb(row.name, back),
        form=form,
        hidden=resource,
        explanation=_EXPLANATION.format(f"`{row.uri}`" if resource else "this URI"),
        verb="Notify subscribers",
        harmless=True,
        back=back,
    )


def _notify_subscribers(tenant_id: UUID, uri: str, request: SignedInRequest) -> bool:
    announce_update(tenant_id, uri, actor(request))
    return True
