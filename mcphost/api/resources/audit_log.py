"""The audit log: what people and the platform did, and what was refused."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import ListPage, PagedQuery, Time
from mcphost.api.resources.calls import EntryRepresentation, cursor_id, key_of_id
from mcphost.audit import selectors
from mcphost.audit.selectors import Entries, EntryFilter
from mcphost.tenants.roles import Permission

_ACTION: Final = r"^[a-z_]*\.?[a-z_]*$"


class EntryQuery(PagedQuery):
    """The filters of lists of entries."""

    action: str = Field(
        "", max_length=60, pattern=_ACTION, description="What the action begins with."
    )
    target: str = Field("", max_length=2048)
    actor: str = Field("", max_length=200, description="An id, or a part of the label.")
    since: Time | None = Field(None, description="Inclusive.")
    until: Time | None = Field(None, description="Exclusive.")

    def entry_filter(self, tenants: frozenset[UUID] | None) -> EntryFilter:
        """Return the filter as the selector takes it."""
        return EntryFilter(
            tenants=tenants,
            target=self.target,
            principal=self.actor,
            actions=(self.action,) if self.action else (),
            since=self.since,
            until=self.until,
        )


class EntryListPage(ListPage[EntryRepresentation]):
    """Entries, the newest first. A page may have fewer than `limit` and not be the last."""


class EntryCollection(Endpoint):
    """`/tenants/{slug}/entries`."""

    @operation(
        ApiOperation(
            "List what people and the platform did",
            Permission.VIEW_RECORDS,
            EntryListPage,
            query=EntryQuery,
        )
    )
    def get(self, call: ApiCall, query: EntryQuery) -> HttpResponse:
        return _show(call, query, selectors.verbs)


class RefusalCollection(Endpoint):
    """`/tenants/{slug}/refusals`."""

    @operation(
        ApiOperation(
            "List request states, responses and messages that were refused",
            Permission.VIEW_RECORDS,
            EntryListPage,
            query=EntryQuery,
        )
    )
    def get(self, call: ApiCall, query: EntryQuery) -> HttpResponse:
        return _show(call, query, selectors.refusals)


class EntryObject(Endpoint):
    """`/tenants/{slug}/entries/{entry_id}`."""

    @operation(
        ApiOperation(
            "Read an entry of the audit log or of a call",
            Permission.VIEW_RECORDS,
            EntryRepresentation,
        )
    )
    def get(self, call: ApiCall, entry_id: UUID) -> HttpResponse:
        entry = selectors.entry(entry_id, frozenset({call.tenant.pk}))
        if entry is None:
            raise not_found()
        return call.show(EntryRepresentation.of(entry))


def _show(call: ApiCall, query: EntryQuery, read: Callable[..., Entries]) -> HttpResponse:
    filters = query.entry_filter(frozenset({call.tenant.pk}))
    page = read(filters, after=cursor_id(call), limit=call.limit)
    items = [EntryRepresentation.of(entry) for entry in page.entries]
    return call.show_portion(EntryListPage, items, key_of_id(page.after))
