"""Exports: filtered lists of calls, input requests and audit entries as files, in CSV or JSON Lines.

`Accept` decides which. A file is bounded. Its last line says how many rows it has, whether they are all, and the cursor of the next file.
Each file is recorded in the audit log before it is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field
from rest_framework.renderers import BaseRenderer

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.representations import PagedQuery
from mcphost.api.resources.audit_log import EntryQuery
from mcphost.api.resources.calls import CallQuery, cursor_id, key_of_id
from mcphost.api.resources.input_requests import InputRequestQuery, tenants_named
from mcphost.audit.services import record
from mcphost.listings.audit_log import ENTRY_COLUMNS, exported_entries
from mcphost.listings.calls import CALL_COLUMNS, exported_calls
from mcphost.listings.exports import (
    MAX_ROWS,
    MEDIA_TYPES,
    Rows,
    encoded_rows,
    end_line,
    read_rows,
)
from mcphost.listings.input_requests import (
    INPUT_REQUEST_COLUMNS,
    TEXT_COLUMNS,
    exported_input_requests,
    exported_with_texts,
)
from mcphost.tenants.access import require
from mcphost.tenants.roles import Permission

_ROWS: Final[Any] = Field(
    MAX_ROWS, ge=1, le=MAX_ROWS, description="Maximum number of rows in the file."
)
_CURSOR: Final[Any] = Field(
    "", max_length=2000, description="The `next` of the last line of the previous file."
)
_TENANT: Final[Any] = Field("", max_length=200, description="The slug of a tenant.")
_TYPES: Final = tuple(MEDIA_TYPES.values())


class JsonLinesRenderer(BaseRenderer):
    """Negotiates JSON Lines; files are encoded by `listings.exports`."""

    media_type, format = MEDIA_TYPES["jsonl"], "jsonl"


class CsvRenderer(BaseRenderer):
    """Negotiates CSV."""

    media_type, format = MEDIA_TYPES["csv"], "csv"


class CallExportQuery(CallQuery):
    """The filters of an export of calls, which are those of the list."""

    limit: int = _ROWS
    cursor: str = _CURSOR


class AllCallExportQuery(CallExportQuery):
    """The same for the calls of all tenants."""

    tenant: str = _TENANT


class AllInputRequestExportQuery(InputRequestQuery):
    """The filters of an export of the input requests of all tenants, which are those of the list."""

    limit: int = _ROWS
    cursor: str = _CURSOR
    tenant: str = _TENANT


class InputRequestExportQuery(InputRequestQuery):
    """The same of one tenant."""

    limit: int = _ROWS
    cursor: str = _CURSOR
    texts: bool = Field(False, description="With questions and answers in words, for auditors.")


class EntryExportQuery(EntryQuery):
    """The filters of an export of the audit log, which are those of the list."""

    limit: int = _ROWS
    cursor: str = _CURSOR


class AllEntryExportQuery(EntryExportQuery):
    """The same for the audit logs of the platform and all tenants."""

    tenant: str = _TENANT


@dataclass(frozen=True, slots=True)
class ApiExport:
    """What is exported: what a row is, in the plural; the action of its entry; the columns; and how rows after a
    cursor are read."""

    noun: str
    action: str
    columns: Sequence[str]
    read: Callable[[UUID | None, int], Rows]


class ExportEndpoint(Endpoint):
    """An address that answers with a file."""

    renderer_classes = (JsonLinesRenderer, CsvRenderer)  # type: ignore[assignment]  # no JSON


class CallExport(ExportEndpoint):
    """`/tenants/{slug}/calls/export`."""

    @operation(
        ApiOperation(
            "Export calls; each export is recorded",
            Permission.VIEW_RECORDS,
            None,
            query=CallExportQuery,
            media_types=_TYPES,
        )
    )
    def get(self, call: ApiCall, query: CallExportQuery) -> HttpResponse:
        return _send(call, query, _calls(query, frozenset({call.tenant.pk})))


class AllCallExport(ExportEndpoint):
    """`/calls/export`, for staff."""

    @operation(
        ApiOperation(
            "Export the calls of all tenants; each export is recorded",
            Permission.VIEW_RECORDS,
            None,
            query=AllCallExportQuery,
            media_types=_TYPES,
        )
    )
    def get(self, call: ApiCall, query: AllCallExportQuery) -> HttpResponse:
        return _send(call, query, _calls(query, tenants_named(call, query.tenant)))


class InputRequestExport(ExportEndpoint):
    """`/tenants/{slug}/input_requests/export`."""

    @operation(
        ApiOperation(
            "Export input requests; each export is recorded",
            Permission.VIEW_RECORDS,
            None,
            query=InputRequestExportQuery,
            media_types=_TYPES,
        )
    )
    def get(self, call: ApiCall, query: InputRequestExportQuery) -> HttpResponse:
        filters = query.question_filter(frozenset({call.tenant.pk}), call.now)
        if not query.texts:
            return _send(
                call,
                query,
                _input_requests(partial(exported_input_requests, filters, query.state or "")),
            )
        require(call.credential.user, call.tenant, Permission.VIEW_PAYLOADS)
        read = partial(exported_with_texts, filters, query.state or "", call.tenant.pk)
        return _send(call, query, _input_requests(read, *TEXT_COLUMNS))


class AllInputRequestExport(ExportEndpoint):
    """`/input_requests/export`, for staff."""

    @operation(
        ApiOperation(
            "Export the input requests of all tenants; each export is recorded",
            Permission.VIEW_RECORDS,
            None,
            query=AllInputRequestExportQuery,
            media_types=_TYPES,
        )
    )
    def get(self, call: ApiCall, query: AllInputRequestExportQuery) -> HttpResponse:
        filters = query.question_filter(tenants_named(call, query.tenant), call.now)
        read = partial(exported_input_requests, filters, query.state or "")
        return _send(call, query, _input_requests(read))


class EntryExport(ExportEndpoint):
    """`/tenants/{slug}/entries/export`."""

    @operation(
        ApiOperation(
            "Export the audit log; each export is recorded",
            Permission.VIEW_RECORDS,
            None,
            query=EntryExportQuery,
            media_types=_TYPES,
        )
    )
    def get(self, call: ApiCall, query: EntryExportQuery) -> HttpResponse:
        return _send(call, query, _entries(query, frozenset({call.tenant.pk})))


class AllEntryExport(ExportEndpoint):
    """`/entries/export`, for staff."""

    @operation(
        ApiOperation(
            "Export the audit log of the platform and all tenants; each export is recorded",
            Permission.VIEW_RECORDS,
            None,
            query=AllEntryExportQuery,
            media_types=_TYPES,
        )
    )
    def get(self, call: ApiCall, query: AllEntryExportQuery) -> HttpResponse:
        return _send(call, query, _entries(query, tenants_named(call, query.tenant)))


def _calls(query: CallQuery, tenants: frozenset[UUID] | None) -> ApiExport:
    read = partial(exported_calls, query.entry_filter(tenants))
    return ApiExport("calls", "calls.exported", CALL_COLUMNS, read)


def _entries(query: EntryQuery, tenants: frozenset[UUID] | None) -> ApiExport:
    read = partial(exported_entries, query.entry_filter(tenants))
    return ApiExport("entries", "entries.exported", ENTRY_COLUMNS, read)


def _input_requests(read: Callable[[UUID | None, int], Rows], *texts: str) -> ApiExport:
    columns = (*INPUT_REQUEST_COLUMNS, *texts)
    return ApiExport("input_requests", "questions.exported", columns, read)


def _send(call: ApiCall, query: PagedQuery, export: ApiExport) -> HttpResponse:
    """Read the rows of a file, record the export, and send the file."""
    file_format: str = call.request.accepted_renderer.format
    rows, after = read_rows(export.read, cursor_id(call), call.limit)
    tenant = None if call.url_tenant is None else call.url_tenant.pk
    subject = export.action.partition(".")[0]
    size = {"complete": after is None, "after": after and str(after)}
    facts = {"format": file_format, **query.filters(), subject: len(rows), **size}
    record(export.action, actor=call.actor, tenant=tenant, target=subject, facts=facts)
    counted = {export.noun: len(rows), "complete": after is None}
    end = end_line({**counted, "next": call.cursor(key_of_id(after))}, file_format)
    text = "".join([*encoded_rows(export.columns, rows, file_format, head=True), end])
    response = HttpResponse(text, content_type=f"{MEDIA_TYPES[file_format]}; charset=utf-8")
    name = (
        f"{export.noun}-{'all' if call.url_tenant is None else call.url_tenant.slug}.{file_format}"
    )
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
