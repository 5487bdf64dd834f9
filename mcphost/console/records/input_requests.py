"""Pages for open input requests: the lists, and cancelling a call that waits for a response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit.call_list import MAX_WAITING, OverdueCall, WaitingQuestion
from mcphost.audit.timeline import Timeline
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import (
    SignedInRequest,
    actor,
    form_input,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.records.filters import (
    RecordFilter,
    named_waiting,
    still_open,
    tenants_of,
    with_task,
)
from mcphost.console.templatetags.console import lasted
from mcphost.runtime.call import Delivery
from mcphost.serving.execution.cancelling import MAX_REASON, CancelResult, plain_reason
from mcphost.serving.execution.cancelling import cancel as cancel_call
from mcphost.tasks import listing as tasks
from mcphost.tenants.access import tenants_where
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

_CANCEL_MESSAGES: Final = {
    CancelResult.DONE: "The call is cancelled. Its client is told the reason.",
    CancelResult.RUNS: "The call was not cancelled: a response has come, and its round is running. "
    "It ends by itself.",
    CancelResult.OVER: "The call was not cancelled: it no longer waits for a response.",
}
_HOW: Final = {
    "modern": "Its client is told the reason when it returns with a response. It cannot be told before.",
    "legacy": "Its client is told the reason at once.",
    "task": "Its client is told the reason when it next looks at the task.",
    "playground": "The operator who tries the tool is told the reason with the next response.",
}


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A row of the list. `late` is by how much the target time of its tool is exceeded, None if it has
    none or is not exceeded; `may_cancel` whether the user may cancel its call."""

    question: WaitingQuestion
    slug: str
    target: timedelta | None
    late: timedelta | None
    may_cancel: bool

    @property
    def is_late(self) -> bool:
        return self.late is not None

    @property
    def lateness(self) -> str:
        """By how much it is late, in words."""
        return "" if self.late is None else lasted(self.late.total_seconds())

    @property
    def aim(self) -> str:
        """The target time of its tool, in words."""
        return "" if self.target is None else lasted(self.target.total_seconds())


class CancelForm(forms.ConsoleForm):
    """Why a call is cancelled. The reason is shown to the caller."""

    reason = forms.text(
        "Reason",
        f"The caller reads this, and it is recorded. At most {MAX_REASON} characters.",
        required=True,
        maxlength=MAX_REASON,
    )

    def clean_reason(self) -> str:
        reason = plain_reason(self.cleaned_data["reason"])
        if not reason:
            raise ValidationError("Say why, in words that the caller can read.")
        if len(reason) > MAX_REASON:
            raise ValidationError(
                f"The reason has {len(reason)} characters; at most {MAX_REASON} are possible."
            )
        return reason


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the open input requests of one tenant."""
    return _listing(request, frozenset({tenant.pk}), "Input requests")


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_open(request: SignedInRequest) -> HttpResponseBase:
    """List the open input requests of all tenants, for platform staff."""
    return _listing(request, tenants_of(RecordFilter.of(request.GET)), "All input requests")


def _listing(
    request: SignedInRequest, tenants: frozenset[UUID] | None, title: str
) -> HttpResponseBase:
    now = timezone.now()
    targets = catalogue.targets(tenants)
    overdue = call_list.overdue(tenants, targets, now)
    waiting = call_list.waiting(tenants, now, [call.call for call in overdue[:MAX_WAITING]])
    rows = _rows(request, still_open(waiting), targets, now)
    shown = {question.entry.call for question in waiting}
    unread = [call for call in overdue if call.call not in shown]
    return show(
        request,
        "records/input_requests.html",
        title,
        rows=rows,
        late=sum(row.is_late for row in rows) + _count(unread),
        full=len(shown) >= MAX_WAITING,
        max_calls=MAX_WAITING,
    )


def _rows(
    request: SignedInRequest,
    questions: Sequence[WaitingQuestion],
    targets: Mapping[tuple[UUID, str], float],
    now: datetime,
) -> list[OpenRequest]:
    """Return the rows, overdue ones first, the latest first; then those that expire soonest."""
    may = tenants_where(request.user, Permission.CANCEL_CALLS)
    tenant_ids = {
        question.entry.tenant for question in questions if question.entry.tenant is not None
    }
    cancels = frozenset(may.filter(pk__in=tenant_ids).values_list("id", flat=True))
    rows = []
    for question, slug in named_waiting(questions):
        seconds = (
            targets.get((question.entry.tenant, question.entry.target))
            if question.entry.tenant
            else None
        )
        target = None if seconds is None else timedelta(seconds=seconds)
        late = None if target is None else now - question.entry.at - target
        if late is not None and late <= timedelta():
            late = None
        rows.append(OpenRequest(question, slug, target, late, question.entry.tenant in cancels))
    return sorted(rows, key=lambda row: (-(row.late or timedelta()), row.question.expires_at))


def _count(overdue: Sequence[OverdueCall]) -> int:
    """Count the open input requests of these calls."""
    of_tasks = [call.call for call in overdue if call.delivery == Delivery.TASK]
    open_count = sum(call.open for call in overdue if call.delivery != Delivery.TASK)
    return open_count + (len(tasks.open_questions(of_tasks)) if of_tasks else 0)


@of_tenant(Permission.CANCEL_CALLS)
def cancel(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Cancel a call that waits for a response, with a reason for its caller."""
    timeline = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    if timeline is None:
        raise Http404
    listed = page_of(tenant, "input_requests", "Input requests")
    form = CancelForm(*form_input(request))
    if request.method == "POST" and form.is_valid():
        result = cancel_call(call_id, tenant.pk, form.cleaned_data["reason"], actor(request))
        notify = messages.success if result is CancelResult.DONE else messages.error
        notify(request, _CANCEL_MESSAGES[result])
        return redirect(reverse("admin:call", args=[tenant.slug, call_id]))
    return show(
        request,
        "confirm.html",
        f"Cancel the call of {timeline.entries[0].target}",
        listed,
        form=form,
        verb="Cancel the call",
        stay="Back",
        back=listed.url,
        explanation=_explanation(tenant, timeline),
    )


def _explanation(tenant: Tenant, timeline: Timeline) -> str:
    first, last = timeline.entries[0], timeline.entries[-1]
    open_keys = [
        question.entry.facts.get("key", "")
        for question in timeline.questions
        if question.fate == "open"
    ]
    task = None if first.call is None else tasks.of_call(first.call, tenant.pk)
    state = with_task(timeline.state, task)
    if task is not None and task.works:
        how = _HOW["task"]
    elif timeline.state != "open":
        return f"The call no longer waits for a response: it is {state.replace('_', ' ')}."
    else:
        how = _HOW.get(str(last.delivery), _HOW["modern"])
    answered = sum(bool(question.answers) for question in timeline.questions)
    kept = f" {answered} given before stay recorded." if answered else ""
    keys_text = ", ".join(map(str, open_keys)) or "nothing now"
    caller = first.actor_label or first.actor_kind
    return (
        f"The call of {caller} waits for a response to {keys_text}. It ends without one, and no later "
        f"response is taken. {how} What the call did so far stays done.{kept and ' Responses:' + kept} "
        "This cannot be undone."
    )
