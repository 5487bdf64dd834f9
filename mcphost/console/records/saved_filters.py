"""Pages for filters that are saved: under a name, for oneself or for all who read the list."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    form_input,
    of_platform,
    of_tenant,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.models import SavedFilter
from mcphost.console.records import filter_store
from mcphost.console.records.filter_store import FilterFields
from mcphost.console.records.filters import RecordFilter
from mcphost.console.records.pills import pills
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


class SavedFilterForm(forms.ConsoleForm):
    """The name of a filter, and whether others see it."""

    name = forms.text("Name", "What it finds, in a few words.", required=True, maxlength=60)
    shared = forms.switch(
        "Shared", "All who may read this list see it. They run it with their own rights."
    )

    def filter_fields(self) -> FilterFields:
        """Return the fields, as the services take them."""
        return FilterFields(self.cleaned_data["name"], self.cleaned_data["shared"])


@dataclass(frozen=True, slots=True)
class ListedFilter:
    """A saved filter above the list; `url` is empty if the user may neither edit nor delete it."""

    name: str
    query: str
    author: str
    shared: bool
    url: str
    current: bool


def visible_filters(
    request: SignedInRequest, tenant: Tenant | None, record_filter: RecordFilter
) -> Sequence[ListedFilter]:
    """Return the filters that the user sees above a list."""
    filters = filter_store.visible(request.user, tenant)[: filter_store.MAX_SHOWN]
    any_of_them = filter_store.may_delete_shared(request.user, tenant)
    return [
        ListedFilter(
            saved.name,
            saved.query,
            "" if saved.author_id == request.user.pk else saved.author.get_username(),
            saved.shared,
            _url(tenant, "filter", saved.pk)
            if any_of_them or saved.author_id == request.user.pk
            else "",
            saved.query == record_filter.query,
        )
        for saved in filters
    ]


@of_tenant(Permission.VIEW_RECORDS)
def add(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Save the filter in the address, for the list of a tenant."""
    return _add(request, tenant)


@of_platform(Permission.VIEW_RECORDS)
def add_of_all(request: SignedInRequest) -> HttpResponseBase:
    """Save the filter in the address, for the list of all tenants."""
    return _add(request, None)


@of_tenant(Permission.VIEW_RECORDS)
def edit(request: SignedInRequest, tenant: Tenant, filter_id: UUID) -> HttpResponseBase:
    """Rename, share or delete a saved filter of a tenant's list."""
    return _edit(request, tenant, filter_id)


@of_platform(Permission.VIEW_RECORDS)
def edit_of_all(request: SignedInRequest, filter_id: UUID) -> HttpResponseBase:
    """Rename, share or delete a saved filter of the list of all tenants."""
    return _edit(request, None, filter_id)


def _add(request: SignedInRequest, tenant: Tenant | None) -> HttpResponseBase:
    record_filter = RecordFilter.of(request.GET)
    form = SavedFilterForm(*form_input(request))
    if request.method == "POST" and form.is_valid() and not record_filter.unknown:
        user, fields = request.user, form.filter_fields()
        made = form.attempt(lambda: filter_store.save(user, tenant, fields, record_filter.query))
        if made is not None:
            messages.success(request, f"Saved as “{made.name}”.")
            return redirect(f"{_url(tenant)}?{made.query}")
    return _form(request, tenant, record_filter, form)


def _edit(request: SignedInRequest, tenant: Tenant | None, filter_id: UUID) -> HttpResponseBase:
    saved = filter_store.visible(request.user, tenant).filter(pk=filter_id).first()
    if saved is None or not filter_store.may_delete(request.user, saved):
        raise Http404
    own = saved.author_id == request.user.pk
    if request.method == "POST" and "_delete" in request.POST:
        if not filter_store.delete(request.user, filter_id):
            raise Http404
        messages.success(request, f"The filter “{saved.name}” is deleted.")
        return redirect(_url(tenant))
    initial = {"name": saved.name, "shared": saved.shared}
    form = SavedFilterForm(*form_input(request), initial=initial)
    if request.method == "POST" and own and form.is_valid():
        user, fields = request.user, form.filter_fields()
        try:
            changed = form.attempt(lambda: filter_store.change(user, filter_id, fields))
        except SavedFilter.DoesNotExist:  # deleted meanwhile
            raise Http404 from None
        if changed:
            messages.success(request, "Saved.")
            return redirect(f"{_url(tenant)}?{saved.query}")
    record_filter = RecordFilter.of(QueryDict(saved.query))
    return _form(request, tenant, record_filter, form, saved)


def _form(
    request: SignedInRequest,
    tenant: Tenant | None,
    record_filter: RecordFilter,
    form: SavedFilterForm,
    saved: SavedFilter | None = None,
) -> HttpResponseBase:
    back = _url(tenant)
    active_pills = [
        pill for pill in pills(record_filter, of_all_tenants=tenant is None) if pill.shown_value
    ]
    return show(
        request,
        "records/saved_filter.html",
        "Save filter" if saved is None else saved.name,
        Crumb("Calls" if tenant else "All calls", back),
        form=form,
        record_filter=record_filter,
        active_pills=active_pills,
        saved=saved,
        own=saved is None or saved.author_id == request.user.pk,
        back=f"{back}?{record_filter.query}" if record_filter.query else back,
    )


def add_url(tenant: Tenant | None, record_filter: RecordFilter) -> str:
    """Return the address of the page that saves a filter; empty if there is nothing to save."""
    if not record_filter.active_filters or record_filter.unknown:
        return ""
    return f"{_url(tenant, 'filter_add')}?{urlencode(record_filter.active_filters)}"


def _url(tenant: Tenant | None, page: str = "", *ids: UUID) -> str:
    name = f"calls_{page}" if page else "calls"
    if tenant is None:
        return reverse(f"admin:all_{name}", args=ids)
    return reverse(f"admin:{name}", args=[tenant.slug, *ids])
