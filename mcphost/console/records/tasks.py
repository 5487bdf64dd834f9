"""Pages for tasks: the list, one task with the rounds of its call, cancelling and retrying.

A task is named by its call: the id of an anonymous caller's task is all that it takes to follow it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list, services
from mcphost.audit import selectors as audit
from mcphost.audit.records import TASK_CANCELLED, TASK_RETRIED
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import SignedInRequest, actor, of_tenant, page_of, query_text, show
from mcphost.feed import nodes
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tasks import listing as tasks
from mcphost.tasks import services as changing
from mcphost.tasks.listing import ListedTask
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


class TaskAct(NamedTuple):
    """What a user can do to a task: its entry, what does it, and the wording."""

    action: str
    do: Callable[[UUID, UUID], bool]
    title: str
    explanation: str
    done: str
    refused: str
    harmless: bool = False


CANCEL: Final = TaskAct(
    TASK_CANCELLED,
    changing.cancel,
    "Cancel task",
    "The task ends now, and its client is told that it was cancelled. What its rounds have done "
    "stays done. This cannot be undone.",
    "The task is cancelled.",
    "The task had already ended.",
)
RETRY: Final = TaskAct(
    TASK_RETRIED,
    changing.retry,
    "Retry task",
    "The next round of the task runs as soon as a process has room, from what its earlier rounds "
    "have recorded. Steps without a recorded result run again.",
    "The task runs again.",
    "The task cannot run now: it has ended, waits for answers, or runs already.",
    harmless=True,
)


class NotDoneError(Exception):
    """The task was in no state for it."""


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the tasks of a tenant, the newest first."""
    words = {name: query_text(request.GET, name) for name in ("state", "tool", "after")}
    unknown, after = "", None
    if words["state"] and words["state"] not in tasks.STATUSES:
        unknown = f"The filter state has no value {words['state']!r}."
    with suppress(ValueError):
        after = UUID(words["after"])
    if words["after"] and after is None:
        unknown = f"There is no page {words['after']!r}."
    page = tasks.page(tenant.pk, words["state"], words["tool"], after)
    found = () if unknown else page.tasks
    chosen = {name: words[name] for name in ("state", "tool") if words[name]}
    older = "" if unknown or page.after is None else urlencode({**chosen, "after": page.after})
    tools = catalogue.primitives(Tenant.objects.filter(pk=tenant.pk))
    return show(
        request,
        "records/tasks.html",
        "Tasks",
        tasks=found,
        callers=audit.callers([each.call for each in found]),
        processes=nodes.names(),
        statuses=tasks.STATUSES,
        state=words["state"],
        tool=words["tool"],
        narrow=bool(chosen) or bool(words["after"]),
        unknown=unknown,
        older=older,
        tools=[row.name for row in tools if row.fields.sort is PrimitiveType.TOOL],
    )


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def task(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one task, its questions, and the rounds of its call."""
    found = _task(tenant, call_id)
    call = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    return show(
        request,
        "records/task.html",
        f"Task of {found.tool}",
        page_of(tenant, "tasks", "Tasks"),
        task=found,
        may_retry=changing.may_retry(found.id, tenant.pk),
        call=call,
        caller=audit.callers([call_id]).get(call_id, ""),
        processes=nodes.names(),
        said=None,
        kept={} if call is None else audit.kept([each.id for each in call.entries], tenant.pk),
    )


@of_tenant(Permission.MANAGE_TASKS)
def cancel(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Cancel a task, after confirmation."""
    return _act(request, tenant, call_id, CANCEL)


@of_tenant(Permission.MANAGE_TASKS)
def retry(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Let the next round of a task run at once, after confirmation."""
    return _act(request, tenant, call_id, RETRY)


def _act(request: SignedInRequest, tenant: Tenant, call_id: UUID, act: TaskAct) -> HttpResponseBase:
    found = _task(tenant, call_id)
    back = reverse("admin:task", args=[tenant.slug, call_id])
    if request.method != "POST":
        return show(
            request,
            "confirm.html",
            act.title,
            page_of(tenant, "tasks", "Tasks"),
            explanation=act.explanation,
            verb=act.title,
            harmless=act.harmless,
            back=back,
            stay="Back",
        )
    try:
        _do(request, found, act)
    except NotDoneError:
        messages.error(request, act.refused)
    else:
        messages.success(request, act.done)
    return redirect(back)


@transaction.atomic
def _do(request: SignedInRequest, found: ListedTask, act: TaskAct) -> None:
    """Record and do it, or neither. Raises NotDoneError."""
    services.record(
        act.action, actor=actor(request), tenant=found.tenant, target=found.tool, call=found.call
    )
    if not act.do(found.id, found.tenant):  # it announces, so it comes last in the transaction
        raise NotDoneError


def _task(tenant: Tenant, call_id: UUID) -> ListedTask:
    found = tasks.of_call(call_id, tenant.pk)
    if found is None:
        raise Http404
    return found


def summary(tenants: frozenset[UUID] | None) -> list[tuple[str, tasks.TaskTally]]:
    """Return the counts of the tenants that have tasks, by slug; None means of all tenants."""
    counted: Mapping[UUID, tasks.TaskTally] = tasks.tallies(tenants)
    slugs = Tenant.objects.filter(pk__in=counted).order_by("slug").values_list("id", "slug")
    return [(slug, counted[id]) for id, slug in slugs]
