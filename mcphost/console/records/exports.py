"""Export a filtered list of calls, as CSV or as JSON Lines: a page fetches it in parts, of any size.

Each part is a request of its own: its reads are short, and the right to read is checked again. The last
line says how many calls there are, and whether the file is complete: a file without it was interrupted.
Without JavaScript one file has at most MAX_CALLS. Exports are recorded in the audit log: when they begin
and when they end. A part goes on with an export that has begun only by what the part before it signed.
"""

import csv
import io
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.http import HttpResponse, HttpResponseBadRequest, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit import services as audit
from mcphost.audit.selectors import EntryFilter, time_of
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.records.filters import RecordFilter, named_calls, tenants_of
from mcphost.console.records.pills import pills
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_CALLS = 5_000
"""Calls in one file. The last line has the cursor (`after`) of the next."""
MAX_IN_PART = 2_000
MAX_EXPORTED = 200_000
"""Calls in one file that a page fetches in parts, which it holds in the browser's memory."""
READING_SECONDS = 2.0
"""How long one request reads: of a filter that finds little, it may have read many calls in vain."""
_AT_ONCE = 500
_FORMULA = re.compile(
    r"^(?=[\t\r\n])"
    r"|(?:^|(?<=[;\t\r\n]))"
    r"(?=[\s\"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
    r"[-=+@\uff0b\uff0d\uff1d\uff20])"
)
"""Where a spreadsheet may begin to read a formula: some take a semicolon or a tab, too, for the end of a
cell, drop quotes at its begin, skip white space and unseen characters, or read full-width characters as
the plain ones."""
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}

_COLUMNS = (
    "at",
    "tenant",
    "call",
    "method",
    "target",
    "version",
    "outcome",
    "reason",
    "caller",
    "client",
    "client_version",
    "protocol_version",
    "delivery",
    "rounds",
    "last_round_ms",
    "input_requests",
    "responses",
    "rejected",
    "trace_id",
)

Row = Mapping[str, Any]


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
        """Return the part that a request asks for. Raises BadSignature."""
        salt = f"{_SALT}:{request.user.pk}:{tenant}:{form}:{record_filter.query}"
        text = request.GET.get("next", "")
        if not text:
            return cls(record_filter.after, 0, True, salt)
        before, after = signing.loads(text, salt=salt)
        return cls(UUID(after), before, False, salt)

    def next(self, calls: int, after: UUID) -> str:
        """Return what the next part has to say, to go on with this export."""
        return signing.dumps([calls, str(after)], salt=self.salt)


_SALT: Final = "mcphost.console.records.exports"


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def export(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Export the calls of one tenant."""
    return _file(request, frozenset({tenant.pk}), form, tenant.slug, tenant.pk)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def export_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Export the calls of all tenants, for platform staff."""
    return _file(request, tenants_of(RecordFilter.of(request.GET)), form, "all", None)


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the page that exports the calls of one tenant, with progress."""
    return _page(request, page_of(tenant, "calls", "Calls"), tenant.slug)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def page_of_all(request: SignedInRequest) -> HttpResponseBase:
    """Show the page that exports the calls of all tenants, with progress."""
    return _page(request, Crumb("All calls", reverse("admin:all_calls")), "all")


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def part(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Return the next part of an export of one tenant's calls."""
    return _part(request, frozenset({tenant.pk}), form, tenant.pk)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def part_of_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Return the next part of an export of the calls of all tenants."""
    return _part(request, tenants_of(RecordFilter.of(request.GET)), form, None)


def _page(request: SignedInRequest, crumb: Crumb, name: str) -> HttpResponseBase:
    record_filter = RecordFilter.of(request.GET)
    return show(
        request,
        "records/export.html",
        "Export calls",
        crumb,
        record_filter=record_filter,
        active_pills=[
            pill for pill in pills(record_filter, of_all_tenants=name == "all") if pill.shown_value
        ],
        back=f"{crumb.url}?{record_filter.query}" if record_filter.query else crumb.url,
        at_once=f"{MAX_CALLS:,}",
        max_calls=f"{MAX_EXPORTED:,}",
        name=f"calls-{name}-{_stamp()}",
    )


def _part(
    request: SignedInRequest, tenants: frozenset[UUID] | None, form: str, tenant: UUID | None
) -> HttpResponseBase:
    record_filter = RecordFilter.of(request.GET)
    if record_filter.unknown:
        return JsonResponse({"error": " ".join(record_filter.unknown)}, status=400)
    try:
        part = ExportPart.of(request, record_filter, form, tenant)
    except signing.BadSignature:
        return JsonResponse({"error": "This is no part of an export of yours."}, status=400)
    max_rows = min(MAX_IN_PART, MAX_EXPORTED - part.before)
    rows, after = _rows(record_filter.within(tenants, timezone.now()), part.after, max_rows)
    total = part.before + len(rows)
    end = _ending(total, after)
    is_last = after is None or total >= MAX_EXPORTED
    if is_last or part.is_first:
        _record_export(request, record_filter, form, tenant, end)
    lines = [*_lines(rows, form, head=part.is_first), *([_end_line(end, form)] * is_last)]
    return JsonResponse(
        {
            "text": "".join(lines),
            "calls": total,
            "after": after and str(after),
            "next": None if after is None or is_last else part.next(total, after),
            "at": after and time_of(after).isoformat(),
            "last": is_last,
            "cut": _end_line(_ending(total, after, complete=False), form),
        }
    )


def _file(
    request: SignedInRequest,
    tenants: frozenset[UUID] | None,
    form: str,
    name: str,
    tenant: UUID | None,
) -> HttpResponseBase:
    record_filter = RecordFilter.of(request.GET)
    if record_filter.unknown:
        return HttpResponseBadRequest(" ".join(record_filter.unknown), content_type="text/plain")
    rows, after = _rows(
        record_filter.within(tenants, timezone.now()), record_filter.after, MAX_CALLS
    )
    end = _ending(len(rows), after)
    _record_export(request, record_filter, form, tenant, end)
    text = "".join([*_lines(rows, form, head=True), _end_line(end, form)])
    response = HttpResponse(text, content_type=_TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="calls-{name}-{_stamp()}.{form}"'
    return response


def _stamp() -> str:
    return timezone.now().strftime("%Y%m%dT%H%M%SZ")


def _record_export(
    request: SignedInRequest, record_filter: RecordFilter, form: str, tenant: UUID | None, end: Row
) -> None:
    facts = {"format": form, **record_filter.active_filters, **end}
    audit.record("calls.exported", actor=actor(request), tenant=tenant, target="calls", facts=facts)


def _ending(calls: int, after: UUID | None, *, complete: bool = True) -> Row:
    return {
        "calls": calls,
        "complete": complete and after is None,
        "after": after and str(after),
    }


def _rows(
    entry_filter: EntryFilter, after: UUID | None, max_rows: int
) -> tuple[list[Row], UUID | None]:
    """Return at most `max_rows` calls, and the cursor of the next one, if there are more."""
    now, end = timezone.now(), time.monotonic() + READING_SECONDS
    rows: list[Row] = []
    while len(rows) < max_rows:
        page = call_list.calls(
            entry_filter, now, after=after, limit=min(_AT_ONCE, max_rows - len(rows))
        )
        rows += [_row(listed_call, slug) for listed_call, slug in named_calls(page.calls)]
        after = page.after
        if after is None or time.monotonic() >= end:
            break
    return rows, after


def _row(listed: call_list.ListedCall, slug: str) -> Row:
    entry = listed.entry
    return {
        "at": entry.at.isoformat(),
        "tenant": slug,
        "call": str(entry.call),
        "method": entry.method,
        "target": entry.target,
        "version": entry.target_version,
        "outcome": listed.state,
        "reason": entry.reason,
        "caller": entry.actor_label or entry.actor_kind,
        "client": entry.client_name,
        "client_version": entry.client_version,
        "protocol_version": entry.revision,
        "delivery": entry.delivery,
        "rounds": entry.round,
        "last_round_ms": None if entry.duration_us is None else entry.duration_us / 1000,
        "input_requests": listed.questions,
        "responses": dict(listed.answers),
        "rejected": listed.refused,
        "trace_id": entry.trace_id,
    }


def _lines(rows: list[Row], form: str, *, head: bool) -> Iterator[str]:
    """Yield a line for each call: an object of JSON, or cells, below their names."""
    if form == "jsonl":
        yield from (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    if head:
        yield _csv_line(_COLUMNS)
    for row in rows:
        yield _csv_line([_cell(row[name]) for name in _COLUMNS])


def _end_line(end: Row, form: str) -> str:
    if form == "jsonl":
        return json.dumps({"end": end}, ensure_ascii=False) + "\n"
    return _csv_line(["end", *(f"{name}={value}" for name, value in end.items())])


def _csv_line(cells: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    """Return the text of a cell; an apostrophe defuses what looks like a formula."""
    if isinstance(value, Mapping):
        value = " ".join(f"{name}:{count}" for name, count in value.items())
    text = "" if value is None else str(value)
    return _FORMULA.sub("'", text)
