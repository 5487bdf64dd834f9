"""Calls of a list, with the slugs of their tenants; of tasks, the state is the task's."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.call_list import ListedCall
from mcphost.audit.entries import UNKNOWN
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.timeline import EXPIRED, OPEN
from mcphost.listings.exports import Row, Rows
from mcphost.serving.execution import audit_records
from mcphost.tasks.listing import WAITING, ListedTask, of_calls
from mcphost.tenants.selectors import slugs

UNCERTAIN = frozenset(
    {
        OPEN,
        EXPIRED,
        UNKNOWN,
        audit_records.YIELDED,
        audit_records.DEFERRED,
        audit_records.CANCELLED,
    }
)
"""The states that do not tell whether the task of a call goes on."""
_NO_CALL = UUID(int=0)
CALL_COLUMNS: Final = (
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
    "server_ms",
    "waited_ms",
    "input_requests",
    "responses",
    "rejected",
    "trace_id",
)
"""The columns of exported calls."""


def named_calls(calls: Iterable[ListedCall]) -> list[tuple[ListedCall, str]]:
    """Pair each call with the current slug of its tenant; of tasks, the state is the task's."""
    listed_calls = tuple(calls)
    uncertain = [listed.entry.call for listed in listed_calls if listed.state in UNCERTAIN]
    tasks = of_calls([call for call in uncertain if call is not None]) if uncertain else {}
    listed_calls = tuple(
        replace(listed, state=with_task(listed.state, tasks.get(listed.entry.call or _NO_CALL)))
        for listed in listed_calls
    )
    slug_by_tenant = slugs(listed.entry.tenant for listed in listed_calls)
    return [(listed, slug_by_tenant.get(listed.entry.tenant, "")) for listed in listed_calls]


def with_task(state: str, task: ListedTask | None) -> str:
    """Return the state of a call, given its task, if any: a task that works is known to go on."""
    if task is not None and task.works and state in UNCERTAIN:
        return state if (state, task.status) == (OPEN, WAITING) else task.status
    return EXPIRED if task is None and state == audit_records.DEFERRED else state


def exported_calls(filters: EntryFilter, after: UUID | None, limit: int) -> Rows:
    """Return calls after a cursor as an export has them, and the cursor after those."""
    page = call_list.calls(filters, timezone.now(), after=after, limit=limit)
    return [call_row(listed, slug) for listed, slug in named_calls(page.calls)], page.after


def call_row(listed: ListedCall, slug: str) -> Row:
    """Return a call of a tenant as an export has it."""
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
        "server_ms": _milliseconds(listed.server),
        "waited_ms": _milliseconds(listed.waited),
        "input_requests": listed.questions,
        "responses": dict(listed.answers),
        "rejected": listed.refused,
        "trace_id": entry.trace_id,
    }


def _milliseconds(length: timedelta | None) -> float | None:
    return None if length is None else length / timedelta(milliseconds=1)
