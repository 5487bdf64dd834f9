"""Export a filtered list, such as that of calls, as CSV or as JSON Lines: a page fetches it in parts, of any size.

Each part is a request of its own: its reads are short, and the right to read is checked again. The last
line says how many rows there are, and whether the file is complete: a file without it was interrupted.
Without JavaScript one file has at most MAX_ROWS rows. Exports are recorded in the audit log: when they begin
and when they end. A part goes on with an export that has begun only by what the part before it signed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.http import HttpResponse, HttpResponseBadRequest, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit import services as audit
from mcphost.audit.selectors import time_of
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.records.filters import RecordFilter, tenants_of
from mcphost.console.records.pills import Pill, pills
from mcphost.listings.calls import CALL_COLUMNS, exported_calls
from mcphost.listings.exports import (
    MAX_ROWS,
    MEDIA_TYPES,
    READ_AT_ONCE,
    Row,
    RowCount,
    Rows,
    count_rows,
    encoded_rows,
    end_line,
    read_rows,
)
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_IN_PART = 2_000
_AT_ONCE = READ_AT_ONCE
MAX_EXPORTED = 200_000
"""Rows in one file that a page fetches in parts, which it holds in the browser's memory."""


@dataclass(frozen=True, slots=True)
class ExportScope:
    """Whose rows are exported: of these tenants (None: all), as the filter says; `now` is the time of the request.

    `name` is in the name of the file; `tenant` is that of the entry, None for the platform's.
    """

    record_filter: RecordFilter
    tenants: frozenset[UUID] | None
    name: str
    tenant: UUID | None
    now: datetime


@dataclass(frozen=True, slots=True)
class ExportedList:
    """A list that can be exported. `noun` is what rows are, `singular` what one is; `read` returns at most so many
    rows after a cursor, `count` only how many they are."""

    noun: str
    action: str
    columns: Sequence[str]
    read: Callable[[ExportScope, UUID | None, int], Rows]
    count: Callable[[ExportScope, UUID | None, int], RowCount]
    singular: str


@dataclass(frozen=True, slots=True)
class ExportPart:
    """Where a part begins: after a call, as a part of an export that has so many calls before it.

    `salt` binds what the next part goes on with to the user, the list, its filter and the format.
    """

    after: UUID | None
    before: int
    is_first: bool
    salt: str

    @classmethod
    def of(
        cls, request: SignedInRequest, record_filter: RecordFilter, form: str, tenant: object
    ) -> "ExportPart":
        """Return the part that a request asks for. `form` is the format, and what else a part keeps.

        Raises BadSignature.
        """
        salt = f"{_SALT}:{request.user.pk}:{tenant}:{form}:{record_filter.query}"
        text = request.GET.get("next", "")
        if not text:
            return cls(record_filter.after, 0, True, salt)
        before, after = signing.loads(text, salt=salt)
        return cls(UUID(after), before, False, salt)

    def next(self, count: int, after: UUID) -> str:
        """Return what the next part has to say, to go on with this export."""
        return signing.dumps([count, str(after)], salt=self.salt)


_SALT: Final = "mcphost.console.records.exports"


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def export(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Export the calls of one tenant."""
    return export_file(request, CALLS, scope_of(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def export_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Export the calls of all tenants, for platform staff."""
    return export_file(request, CALLS, scope_of(request, None), form)


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the page that exports the calls of one tenant, with progress."""
    scope = scope_of(request, tenant)
    return export_page(request, CALLS, scope, page_of(tenant, "calls", "Calls"), pills_of(scope))


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def page_of_all(request: SignedInRequest) -> HttpResponseBase:
    """Show the page that exports the calls of all tenants, with progress."""
    scope, crumb = scope_of(request, None), Crumb("All calls", reverse("admin:all_calls"))
    return export_page(request, CALLS, scope, crumb, pills_of(scope))


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def part(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Return the next part of an export of one tenant's calls."""
    return export_part(request, CALLS, scope_of(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def part_of_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Return the next part of an export of the calls of all tenants."""
    return export_part(request, CALLS, scope_of(request, None), form)


def scope_of(request: SignedInRequest, tenant: Tenant | None) -> ExportScope:
    """Return what a request exports: of a tenant, or of all that the filter names."""
    record_filter, now = RecordFilter.of(request.GET), timezone.now()
    if tenant is None:
        return ExportScope(record_filter, tenants_of(record_filter), "all", None, now)
    own_filter = replace(record_filter, tenant="")  # the address names the tenant
    return ExportScope(own_filter, frozenset({tenant.pk}), tenant.slug, tenant.pk, now)


def pills_of(scope: ExportScope, **of_list: Any) -> Sequence[Pill]:
    """Return the filters that are set, of those that a list has."""
    chips = pills(scope.record_filter, of_all_tenants=scope.tenant is None, **of_list)
    return [pill for pill in chips if pill.shown_value]


def export_page(
    request: SignedInRequest,
    exported: ExportedList,
    scope: ExportScope,
    crumb: Crumb,
    active_pills: Sequence[Pill],
) -> HttpResponseBase:
    """Show the page that exports a list, with progress."""
    query = scope.record_filter.query
    return show(
        request,
        "records/export.html",
        f"Export {exported.noun}",
        crumb,
        record_filter=scope.record_filter,
        active_pills=active_pills,
        noun=exported.noun,
        singular=exported.singular,
        row_count=None if scope.record_filter.unknown else _count(exported, scope),
        has_texts="answer" in exported.columns,
        back=f"{crumb.url}?{query}" if query else crumb.url,
        at_once=f"{MAX_ROWS:,}",
        max_rows=f"{MAX_EXPORTED:,}",
        name=f"{exported.noun}-{scope.name}-{_stamp()}",
    )


def export_part(
    request: SignedInRequest, exported: ExportedList, scope: ExportScope, form: str
) -> HttpResponseBase:
    """Return the next part of an export."""
    record_filter = scope.record_filter
    if record_filter.unknown:
        return JsonResponse({"error": " ".join(record_filter.unknown)}, status=400)
    # Columns are part of what a part is bound to: who may read fewer of them meanwhile does not go on.
    kept_form = f"{form}:{exported.noun}:{len(exported.columns)}"
    try:
        part = ExportPart.of(request, record_filter, kept_form, scope.tenant)
    except signing.BadSignature:
        return JsonResponse({"error": "This is no part of an export of yours."}, status=400)
    max_rows = min(MAX_IN_PART, MAX_EXPORTED - part.before)
    rows, after = _read(exported, scope, part.after, max_rows)
    total = part.before + len(rows)
    end = _ending(exported, total, after)
    is_last = after is None or total >= MAX_EXPORTED
    if is_last or part.is_first:
        _record_export(request, exported, scope, form, end)
    lines = [
        *encoded_rows(exported.columns, rows, form, head=part.is_first),
        *([end_line(end, form)] * is_last),
    ]
    return JsonResponse(
        {
            "text": "".join(lines),
            "rows": total,
            "after": after and str(after),
            "next": None if after is None or is_last else part.next(total, after),
            "at": after and time_of(after).isoformat(),
            "last": is_last,
            "cut": end_line(_ending(exported, total, after, complete=False), form),
        }
    )


def export_file(
    request: SignedInRequest, exported: ExportedList, scope: ExportScope, form: str
) -> HttpResponseBase:
    """Return a file with as many rows as one request may read."""
    record_filter = scope.record_filter
    if record_filter.unknown:
        return HttpResponseBadRequest(" ".join(record_filter.unknown), content_type="text/plain")
    rows, after = _read(exported, scope, record_filter.after, MAX_ROWS)
    end = _ending(exported, len(rows), after)
    _record_export(request, exported, scope, form, end)
    text = "".join([*encoded_rows(exported.columns, rows, form, head=True), end_line(end, form)])
    response = HttpResponse(text, content_type=f"{MEDIA_TYPES[form]}; charset=utf-8")
    name = f"{exported.noun}-{scope.name}-{_stamp()}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _stamp() -> str:
    return timezone.now().strftime("%Y%m%dT%H%M%SZ")


def _record_export(
    request: SignedInRequest, exported: ExportedList, scope: ExportScope, form: str, end: Row
) -> None:
    texts = {"texts": True} if "answer" in exported.columns else {}
    facts = {"format": form, **scope.record_filter.active_filters, **texts, **end}
    user, noun, tenant = actor(request), exported.noun, scope.tenant
    audit.record(exported.action, actor=user, tenant=tenant, target=noun, facts=facts)


def _ending(
    exported: ExportedList, count: int, after: UUID | None, *, complete: bool = True
) -> Row:
    return {
        exported.noun: count,
        "complete": complete and after is None,
        "after": after and str(after),
    }


def _read(exported: ExportedList, scope: ExportScope, after: UUID | None, max_rows: int) -> Rows:
    def read(after: UUID | None, limit: int) -> Rows:
        return exported.read(scope, after, limit)

    return read_rows(read, after, max_rows, _AT_ONCE)


def _count(exported: ExportedList, scope: ExportScope) -> RowCount:
    def count(after: UUID | None, limit: int) -> RowCount:
        return exported.count(scope, after, limit)

    return count_rows(count, scope.record_filter.after, MAX_EXPORTED)


def _count_calls(scope: ExportScope, after: UUID | None, limit: int) -> RowCount:
    filters = scope.record_filter.within(scope.tenants, scope.now)
    return RowCount(*call_list.count(filters, scope.now, after=after, limit=limit))


def _read_calls(scope: ExportScope, after: UUID | None, limit: int) -> Rows:
    return exported_calls(scope.record_filter.within(scope.tenants, scope.now), after, limit)


CALLS: Final = ExportedList(
    "calls", "calls.exported", CALL_COLUMNS, _read_calls, _count_calls, singular="call"
)
