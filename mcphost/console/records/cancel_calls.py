"""Pages that cancel calls which wait for a response, with a reason for their callers."""

from typing import Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.timeline import Timeline
from mcphost.console.base import (
    SignedInRequest,
    actor,
    form_input,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.records.filters import with_task
from mcphost.serving.execution.cancelling import MAX_REASON, CancelResult, plain_reason
from mcphost.serving.execution.cancelling import cancel as cancel_call
from mcphost.tasks import listing as tasks
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


@of_tenant(Permission.CANCEL_CALLS)
def cancel(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Cancel a call that waits for a response, with a reason for its caller."""
    timeline = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    if timeline is None:
        raise Http404
    listed = page_of(tenant, "input_requests", "Questions")
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
