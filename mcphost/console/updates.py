"""Telling subscribers that what lies at a URI can be read anew."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.catalogue.updates import announce_update
from mcphost.console import forms
from mcphost.console.base import Crumb, Visit, actor, of_tenant, page_of, sent, show
from mcphost.console.primitives import row_of
from mcphost.console.words import WORDS
from mcphost.kinds.sorts import Sort
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

_EXPLANATION = (
    "Clients that have subscribed to {} are told that it changed, and will read it again. What is "
    "served does not change by this."
)


class UpdateForm(forms.ConsoleForm):
    """Which URI of those that a template answers."""

    uri = forms.text("URI", "One that the template answers.", inputmode="url", spellcheck="false")


@of_tenant(Permission.EDIT_TOOLS)
def announce(request: Visit, tenant: Tenant, sort: Sort, primitive_id: UUID) -> HttpResponseBase:
    """Ask whether it is meant, then tell."""
    row, words = row_of(tenant, sort, primitive_id), WORDS[sort]
    back = reverse(words.detail, args=[tenant.slug, row.id])
    form = UpdateForm(_asked(request, row), initial={"uri": row.uri})
    if form.is_valid():
        uri = form.cleaned_data["uri"]
        if form.attempt(lambda: _told(tenant.pk, uri, request)):
            messages.success(request, f"Subscribers of {uri} are told that it changed.")
            return redirect(back)
    resource = sort is Sort.RESOURCE
    return show(
        request,
        "confirm.html",
        "Tell subscribers",
        page_of(tenant, words.listing.removeprefix("admin:"), words.title),
        Crumb(row.name, back),
        form=form,
        hidden=resource,
        explanation=_EXPLANATION.format(row.uri if resource else "this URI"),
        verb="Tell subscribers it changed",
        harmless=True,
        back=back,
    )


def _asked(request: Visit, row: PrimitiveRow) -> Mapping[str, Any] | None:
    """What was sent; a resource has but one URI."""
    data, _ = sent(request)
    return {"uri": row.uri} if data is not None and row.sort is Sort.RESOURCE else data


def _told(tenant_id: UUID, uri: str, request: Visit) -> bool:
    announce_update(tenant_id, uri, actor(request))
    return True
