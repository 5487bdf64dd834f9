"""Calls of a list, with the slugs of their tenants; of tasks, the state is the task's."""

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from mcphost.audit.call_list import ListedCall
from mcphost.audit.entries import UNKNOWN
from mcphost.audit.timeline import EXPIRED, OPEN
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
