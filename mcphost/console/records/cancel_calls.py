"""Pages that cancel calls which wait for a response, with a reason for their callers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from mcphost.audit import call_list, question_list
from mcphost.audit.timeline import Timeline
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.records.filters import page_cursor
from mcphost.console.templatetags.console import format_sentence
from mcphost.console.templatetags.questions import question_title
from mcphost.listings.calls import with_task
from mcphost.listings.input_requests import ListedInputRequest, listed_rows
from mcphost.serving.execution.cancelling import MAX_REASON, CancelResult, plain_reason
from mcphost.serving.execution.cancelling import cancel as cancel_call
from mcphost.tasks import listing as tasks
from mcphost.tenants.access import tenants_where
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

_CANCEL_MESSAGES: Final = {
    CancelResult.DONE: "The call is cancelled. Its client is told the reason.",
    CancelResult.RUNS: "The call was not cancelled: an answer has come, and its round is running. "
    "It ends by itself.",
    CancelResult.OVER: "The call was not cancelled: it no longer waits for an answer.",
}
_BULK_MESSAGES: Final = {
    CancelResult.DONE: "Cancelled: {}. The clients are told the reason.",
    CancelResult.RUNS: "Not cancelled: {}. An answer has come, and the round is running.",
    CancelResult.OVER: "Not cancelled: {}, no longer waiting for an answer.",
}
MAX_CHOSEN: Final = 100
"""How many questions can be chosen at once: more than a page has."""
_HOW: Final = {
    "modern": "Its client will be told the reason when it returns with an answer, and cannot be told before.",
    "legacy": "Its client will be told the reason at once.",
    "task": "Its client will be told the reason when it next looks at the task.",
    "playground": "The operator who tries the tool will be told the reason with the next answer.",
}


class CancelForm(forms.ConsoleForm):
    """Why a call is cancelled. The reason is shown to the caller."""

    reason = forms.text(
        "Reason",
        f"Required. The caller reads this, and it is recorded. At most {MAX_REASON} characters.",
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
    if request.method != "POST" and (over := _over(tenant, timeline)):
        messages.info(request, over)
        return redirect(reverse("admin:call", args=[tenant.slug, call_id]))
    return show(
        request,
        "confirm.html",
        f"Cancel the call of “{timeline.entries[0].target}”",
        listed,
        form=form,
        verb="Cancel the call",
        stay="Back",
        back=listed.url,
        final=True,
        points=_consequences(tenant, timeline),
    )


@of_tenant(Permission.CANCEL_CALLS)
def cancel_chosen(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Cancel the calls that wait for the chosen questions of one tenant, with one reason."""
    crumb = page_of(tenant, "input_requests", "Questions")
    return _cancel_chosen(request, Tenant.objects.filter(pk=tenant.pk), crumb)


@of_platform(Permission.CANCEL_CALLS)
def cancel_chosen_of_all(request: SignedInRequest) -> HttpResponseBase:
    """The same for questions of all tenants, for platform staff."""
    crumb = Crumb("All questions", reverse("admin:all_input_requests"))
    return _cancel_chosen(request, Tenant.objects.all(), crumb)


def _cancel_chosen(
    request: SignedInRequest, tenants: QuerySet[Tenant], crumb: Crumb
) -> HttpResponseBase:
    form = CancelForm(*form_input(request))
    own = tenants_where(request.user, Permission.CANCEL_CALLS).filter(pk__in=tenants)
    rows = _chosen_rows(request.POST if request.method == "POST" else request.GET, own)
    if not rows:
        messages.error(request, "No question is chosen that is still open.")
        return redirect(crumb.url)
    if request.method == "POST" and form.is_valid():
        _cancel_each(request, {row.question.call: row.question.tenant for row in rows}, form)
        return redirect(f"{crumb.url}?state=open")
    calls = len({row.question.call for row in rows})
    return show(
        request,
        "records/cancel_chosen.html",
        f"Cancel {calls} call{'s' * (calls > 1)}",
        crumb,
        form=form,
        rows=rows,
        back=f"{crumb.url}?state=open",
    )


def _chosen_rows(fields: QueryDict, tenants: QuerySet[Tenant]) -> list[ListedInputRequest]:
    """The chosen questions that are open, of these tenants."""
    ids = [id for text in fields.getlist("question")[:MAX_CHOSEN] if (id := page_cursor(text))]
    now = timezone.now()
    questions = question_list.questions_with_ids(
        ids, frozenset(tenants.values_list("id", flat=True)), now
    )
    return [row for row in listed_rows(questions, now) if row.is_open]


def _cancel_each(
    request: SignedInRequest, tenant_by_call: Mapping[UUID, UUID | None], form: CancelForm
) -> None:
    """Cancel calls one after another, each in a transaction of its own, and say what came of it."""
    results: Counter[CancelResult] = Counter()
    for call, tenant in tenant_by_call.items():
        if tenant is not None:
            reason = form.cleaned_data["reason"]
            results[cancel_call(call, tenant, reason, actor(request))] += 1
    for result, text in _BULK_MESSAGES.items():
        if count := results[result]:
            notify = messages.success if result is CancelResult.DONE else messages.error
            notify(request, text.format(f"{count} call{'s' * (count > 1)}"))


def _over(tenant: Tenant, timeline: Timeline) -> str:
    """Say that a call has nothing to cancel; empty if it waits, or goes on as a task."""
    call_id = timeline.entries[0].call
    task = None if call_id is None else tasks.of_call(call_id, tenant.pk)
    if timeline.state == "open" or (task is not None and task.works):
        return ""
    state = with_task(timeline.state, task).replace("_", " ")
    return f"The call no longer waits for an answer: it is {state}."


def _consequences(tenant: Tenant, timeline: Timeline) -> Sequence[str]:
    first, last = timeline.entries[0], timeline.entries[-1]
    titles = ", ".join(
        f"“{question_title(str(question.entry.facts.get('key', '')))}”"
        for question in timeline.questions
        if question.outcome == "open"
    )
    task = None if first.call is None else tasks.of_call(first.call, tenant.pk)
    is_task = task is not None and task.works
    how = _HOW["task"] if is_task else _HOW.get(str(last.delivery), _HOW["modern"])
    answered = sum(bool(question.answers) for question in timeline.questions)
    caller = first.actor_label or first.actor_kind
    sentences = (
        format_sentence(
            "The call of {} is waiting for {}. It will end without one, and later answers will be rejected.",
            caller,
            f"an answer to {titles}" if titles else "no answer now",
        ),
        how,
        "What the call has already done will stay done.",
    )
    return (
        (*sentences, f"Answers given before will stay recorded: {answered}.")
        if answered
        else sentences
    )
