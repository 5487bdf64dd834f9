"""Pages for filters that are saved: under a name, for oneself or for all who read the list."""

from collections.abc import Mapping, Sequence
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
from mcphost.console.models import FilteredList, SavedFilter
from mcphost.console.records import filter_store
from mcphost.console.records.filter_store import FilterFields
from mcphost.console.records.filters import RecordFilter
from mcphost.console.records.pills import OF_CALLS, OF_QUESTIONS, QUESTION_LABELS, pills
from mcphost.console.templatetags.console import format_sentence
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

_TITLES: Mapping[FilteredList, tuple[str, str]] = {
    FilteredList.CALLS: ("Calls", "All calls"),
    FilteredList.QUESTIONS: ("Questions", "All questions"),
}
"""The titles of the list of a tenant, and of all tenants."""
_CHIPS: Mapping[FilteredList, tuple[Sequence[str], Mapping[str, str]]] = {
    FilteredList.CALLS: (OF_CALLS, {}),
    FilteredList.QUESTIONS: (OF_QUESTIONS, QUESTION_LABELS),
}
"""The filters of a list, and what it calls them."""


class SavedFilterForm(forms.ConsoleForm):
    """The name of a filter, and whether others see it."""

    name = forms.text("Name", "What it finds, in a few words.", required=True, maxlength=60)
    shared = forms.switch(
        "Shared",
        "Everyone who can open this list sees it; each person finds only what their own role allows.",
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
    request: SignedInRequest,
    tenant: Tenant | None,
    record_filter: RecordFilter,
    listing: FilteredList = FilteredList.CALLS,
) -> Sequence[ListedFilter]:
    """Return the filters that the user sees above a list."""
    filters = filter_store.visible(request.user, tenant, listing)[: filter_store.MAX_SHOWN]
    any_of_them = filter_store.may_delete_shared(request.user, tenant)
    return [
        ListedFilter(
            saved.name,
            saved.query,
            "" if saved.author_id == request.user.pk else saved.author.get_username(),
            saved.shared,
            _url(listing, tenant, "filter", saved.pk)
            if any_of_them or saved.author_id == request.user.pk
            else "",
            saved.query == record_filter.query,
        )
        for saved in filters
    ]


@of_tenant(Permission.VIEW_RECORDS)
def add(request: SignedInRequest, tenant: Tenant, listing: FilteredList) -> HttpResponseBase:
    """Save the filter in the address, for the list of a tenant."""
    return _add(request, tenant, listing)


@of_platform(Permission.VIEW_RECORDS)
def add_of_all(request: SignedInRequest, listing: FilteredList) -> HttpResponseBase:
    """Save the filter in the address, for the list of all tenants."""
    return _add(request, None, listing)


@of_tenant(Permission.VIEW_RECORDS)
def edit(
    request: SignedInRequest, tenant: Tenant, listing: FilteredList, filter_id: UUID
) -> HttpResponseBase:
    """Rename, share or delete a saved filter of a tenant's list."""
    return _edit(request, tenant, listing, filter_id)


@of_platform(Permission.VIEW_RECORDS)
def edit_of_all(
    request: SignedInRequest, listing: FilteredList, filter_id: UUID
) -> HttpResponseBase:
    """Rename, share or delete a saved filter of the list of all tenants."""
    return _edit(request, None, listing, filter_id)


def _add(
    request: SignedInRequest, tenant: Tenant | None, listing: FilteredList
) -> HttpResponseBase:
    record_filter = _filter_of(request.GET, listing)
    form = SavedFilterForm(*form_input(request))
    if request.method == "POST" and form.is_valid() and not record_filter.unknown:
        user, fields = request.user, form.filter_fields()
        made = form.attempt(
            lambda: filter_store.save(user, tenant, fields, record_filter.query, listing)
        )
        if made is not None:
            messages.success(request, format_sentence("Saved as “{}”.", made.name))
            return redirect(f"{_url(listing, tenant)}?{made.query}")
    return _form(request, tenant, (listing, record_filter), form)


def _edit(
    request: SignedInRequest, tenant: Tenant | None, listing: FilteredList, filter_id: UUID
) -> HttpResponseBase:
    saved = filter_store.visible(request.user, tenant, listing).filter(pk=filter_id).first()
    if saved is None or not filter_store.may_delete(request.user, saved):
        raise Http404
    own = saved.author_id == request.user.pk
    if request.method == "POST" and "_delete" in request.POST:
        if not filter_store.delete(request.user, filter_id):
            raise Http404
        messages.success(request, format_sentence("The filter “{}” is deleted.", saved.name))
        return redirect(_url(listing, tenant))
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
            return redirect(f"{_url(listing, tenant)}?{saved.query}")
    record_filter = _filter_of(QueryDict(saved.query), listing)
    return _form(request, tenant, (listing, record_filter), form, saved)


def _form(
    request: SignedInRequest,
    tenant: Tenant | None,
    of_list: tuple[FilteredList, RecordFilter],
    form: SavedFilterForm,
    saved: SavedFilter | None = None,
) -> HttpResponseBase:
    listing, record_filter = of_list
    back = _url(listing, tenant)
    names, labels = _CHIPS[listing]
    chips = pills(record_filter, of_all_tenants=tenant is None, names=names, labels=labels)
    active_pills = [pill for pill in chips if pill.shown_value]
    return show(
        request,
        "records/saved_filter.html",
        "Save filter" if saved is None else saved.name,
        Crumb(_TITLES[listing][tenant is None], back),
        form=form,
        record_filter=record_filter,
        active_pills=active_pills,
        saved=saved,
        own=saved is None or saved.author_id == request.user.pk,
        back=f"{back}?{record_filter.query}" if record_filter.query else back,
    )


def _filter_of(query: QueryDict, listing: FilteredList) -> RecordFilter:
    """The filter of a query string, without what the list cannot be filtered by."""
    record_filter = RecordFilter.of(query)
    return (
        record_filter
        if listing == FilteredList.CALLS
        else record_filter.only(*OF_QUESTIONS, "counted")
    )


def add_url(
    tenant: Tenant | None,
    record_filter: RecordFilter,
    listing: FilteredList = FilteredList.CALLS,
) -> str:
    """Return the address of the page that saves a filter; empty if there is nothing to save."""
    if not record_filter.active_filters or record_filter.unknown:
        return ""
    return f"{_url(listing, tenant, 'filter_add')}?{urlencode(record_filter.active_filters)}"


def _url(listing: FilteredList, tenant: Tenant | None, page: str = "", *ids: UUID) -> str:
    name = f"{listing}_{page}" if page else str(listing)
    if tenant is None:
        return reverse(f"admin:all_{name}", args=ids)
    return reverse(f"admin:{name}", args=[tenant.slug, *ids])
