"""Pages for tasks: the list, one task with the rounds of its call, cancelling and retrying.

A task is named by its call: the id of an anonymous caller's task is all that it takes to follow it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit import selectors as audit
from mcphost.audit.records import Actor
from mcphost.audit.timeline import key_of
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.records.calls import picture_of
from mcphost.console.records.cancel_calls import CancelForm
from mcphost.console.records.filters import page_cursor
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.templatetags.questions import question_title
from mcphost.feed import nodes
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.execution.cancelling import cancel_task, retry_task
from mcphost.tasks import listing as tasks
from mcphost.tasks import services as changing
from mcphost.tasks.listing import ListedTask
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import slugs


class TaskAct(NamedTuple):
    """What a user can do to a task: what does and records it, and the wording.

    `reasoned`: the user has to say why, and the caller is told.
    """

    do: Callable[[ListedTask, str, Actor], bool]
    title: str
    consequences: Sequence[str]
    done: str
    refused: str
    reasoned: bool = False


CANCEL: Final = TaskAct(
    cancel_task,
    "Cancel task",
    (
        "The task will end now.",
        "Its client will be told the reason when it next looks at the task.",
        "What its rounds have done will stay done.",
    ),
    "The task is cancelled. Its client is told the reason.",
    "The task had already ended.",
    reasoned=True,
)
RETRY: Final = TaskAct(
    lambda task, reason, actor: retry_task(task, actor),
    "Retry task",
    (
        (
            "The next round of the task will run as soon as a process has room, from what its earlier rounds "
            "have recorded."
        ),
        "Steps without a recorded result will run again.",
    ),
    "The task runs again.",
    "The task cannot run now: it has ended, waits for answers, or runs already.",
)


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the tasks of a tenant, the newest first."""
    words = {name: query_text(request.GET, name) for name in ("state", "tool", "after", "before")}
    unknown = ""
    after, before = page_cursor(words["after"]), page_cursor(words["before"])
    if words["state"] and words["state"] not in tasks.STATUSES:
        unknown = f"The filter “State” has no value “{words['state']}”."
    for text, cursor in ((words["after"], after), (words["before"], before)):
        if text and cursor is None:
            unknown = f"There is no page “{text}”."
    page = tasks.page(tenant.pk, words["state"], words["tool"], after=after, before=before)
    if unknown:
        page = tasks.TaskPage((), None)
    active_filters = {name: words[name] for name in ("state", "tool") if words[name]}
    return show(
        request,
        "records/tasks.html",
        "Tasks",
        tasks=page.tasks,
        callers=audit.callers([task.call for task in page.tasks]),
        processes=nodes.names(),
        statuses=tasks.STATUSES,
        state=words["state"],
        tool=words["tool"],
        narrow=bool(active_filters) or bool(words["after"] or words["before"]),
        unknown=unknown,
        older=page.after and urlencode({**active_filters, "after": page.after}),
        newer=page.before and urlencode({**active_filters, "before": page.before}),
        tools=catalogue.target_names(tenant.pk, PrimitiveType.TOOL),
    )


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def task(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one task, its questions, and the rounds of its call."""
    listed_task = _task(tenant, call_id)
    call = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    return show(
        request,
        "records/task.html",
        f"Task of {listed_task.tool}",
        page_of(tenant, "tasks", "Tasks"),
        task=listed_task,
        may_retry=changing.may_retry(listed_task.id, tenant.pk),
        call=call,
        question_ids={}
        if call is None
        else {key_of(question.entry): question.entry.id for question in call.questions},
        picture=None if call is None else picture_of(call, listed_task, timezone.now()),
        caller=audit.callers([call_id]).get(call_id, ""),
        processes=nodes.names(),
        displayed_payloads=None,
        kept={} if call is None else audit.kept([entry.id for entry in call.entries], tenant.pk),
    )


@of_tenant(Permission.MANAGE_TASKS)
def cancel(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Cancel a task, with a reason for its caller."""
    return _confirm_and_do(request, tenant, call_id, CANCEL)


@of_tenant(Permission.MANAGE_TASKS)
def retry(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Let the next round of a task run at once, after confirmation."""
    return _confirm_and_do(request, tenant, call_id, RETRY)


def _confirm_and_do(
    request: SignedInRequest, tenant: Tenant, call_id: UUID, act: TaskAct
) -> HttpResponseBase:
    listed_task = _task(tenant, call_id)
    back = reverse("admin:task", args=[tenant.slug, call_id])
    form = CancelForm(*form_input(request)) if act.reasoned else None
    if request.method != "POST" or (form is not None and not form.is_valid()):
        return show(
            request,
            "confirm.html",
            f"{act.title} of “{listed_task.tool}”",
            page_of(tenant, "tasks", "Tasks"),
            Crumb(f"Task of {listed_task.tool}", back),
            form=form,
            final=act.reasoned,
            explanation=_described(listed_task),
            points=act.consequences,
            verb=act.title,
            harmless=not act.reasoned,
            back=back,
            stay="Back",
        )
    reason = "" if form is None else form.cleaned_data["reason"]
    if act.do(listed_task, reason, actor(request)):
        messages.success(request, act.done)
    else:
        messages.error(request, act.refused)
    return redirect(back)


def _described(task: ListedTask) -> str:
    """Say which task it is: what it runs, for whom, since when, and where it stands."""
    caller = audit.callers([task.call]).get(task.call) or "an unknown caller"
    keys = ", ".join(f"“{question_title(question.key)}”" for question in task.open)
    waiting = f" and waits for an answer to {keys}" if keys else ""
    return format_sentence(
        "This task of `{}` was started by {} at {} UTC. It is in round {}{}.",
        task.tool,
        caller,
        f"{task.created_at:%Y-%m-%d %H:%M:%S}",
        task.round,
        waiting,
    )


def _task(tenant: Tenant, call_id: UUID) -> ListedTask:
    listed_task = tasks.of_call(call_id, tenant.pk)
    if listed_task is None:
        raise Http404
    return listed_task


def summary(tenants: frozenset[UUID] | None) -> list[tuple[str, tasks.TaskTally]]:
    """Return the counts of the tenants that have tasks, by slug; None means of all tenants."""
    counted: Mapping[UUID, tasks.TaskTally] = tasks.tallies(tenants)
    named = ((slug, counted[id]) for id, slug in slugs(counted).items() if id is not None)
    return sorted(named)
