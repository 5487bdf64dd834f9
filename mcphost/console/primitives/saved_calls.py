"""Saved calls of a tool: run one or all again, one after another, and show what is not as expected."""

from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from mcphost.catalogue import saved_calls
from mcphost.catalogue.errors import InvalidPrimitiveError, UnknownError
from mcphost.catalogue.saved_calls import LastRun, SavedCallRow, SavedRequest
from mcphost.console.base import Crumb, SignedInRequest, actor, of_tenant, page_of, show
from mcphost.console.primitives import trial_results
from mcphost.console.primitives.primitives import row_of
from mcphost.console.primitives.saved_comparisons import (
    Comparison,
    SavedCallEnding,
    client_of,
    differing,
    excerpt_of,
    shown_calls,
)
from mcphost.console.primitives.trials import BUSY
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.execution import trials
from mcphost.serving.execution.trials import REFUSAL, TrialEndedError, TrialRequest, TrialResult
from mcphost.serving.user_slots import TRIALS
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

ALL: Final = "all"
MAX_SECONDS: Final = 60.0
"""After this many seconds a request starts no further saved calls."""
MAX_ROUNDS: Final = 32


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def run(request: SignedInRequest, tenant: Tenant, primitive_id: UUID) -> HttpResponseBase:
    """Run the saved call that was chosen, or all, against the working copy; show what they gave."""
    row = row_of(tenant, PrimitiveType.TOOL, primitive_id)
    selected = request.POST.get("call", ALL)
    rows = [saved for saved in saved_calls.saved_calls(row.id) if selected in (ALL, str(saved.id))]
    begun, comparisons = monotonic(), dict[UUID, Comparison]()
    with TRIALS.of(request.user.pk, tenant.pk) as busy:
        if busy:
            messages.error(request, BUSY[busy])
            return redirect(_page_of(tenant, row.id))
        for saved in rows:
            if monotonic() - begun > MAX_SECONDS:
                messages.warning(
                    request,
                    "Not all were run: the time for one request was used up. Run the others one at a time.",
                )
                break
            comparison = _compare(request, tenant, primitive_id, saved)
            comparisons[saved.id] = comparison
            run = LastRun(timezone.now(), comparison.passed, comparison.ending.call)
            saved_calls.note_run(saved, run)
    return show(
        request,
        "primitives/saved_calls.html",
        f"Saved calls of {row.name}",
        page_of(tenant, "tools", "Tools"),
        Crumb(row.name, _page_of(tenant, row.id)),
        row=row,
        saved=shown_calls(row.id, comparisons),
        runs=len(comparisons),
        passed=sum(comparison.passed for comparison in comparisons.values()),
    )


@of_tenant(Permission.EDIT_TOOLS)
def delete(
    request: SignedInRequest, tenant: Tenant, primitive_id: UUID, saved_id: UUID
) -> HttpResponseBase:
    """Delete a saved call, after a confirmation."""
    row = row_of(tenant, PrimitiveType.TOOL, primitive_id)
    if request.method != "POST":
        saved = next(
            (shown for shown in saved_calls.saved_calls(row.id) if shown.id == saved_id), None
        )
        if saved is None:
            raise Http404
        return show(
            request,
            "confirm.html",
            f"Delete the saved call “{saved.name}”",
            page_of(tenant, "tools", "Tools"),
            Crumb(row.name, _page_of(tenant, row.id)),
            explanation=f"“{saved.name}” will be deleted, with its arguments and answers. The records of its runs will stay.",
            verb=f"Delete the saved call “{saved.name}”",
            final=True,
            back=_page_of(tenant, row.id),
        )
    try:
        saved_calls.delete_call(row.id, saved_id, actor(request))
    except UnknownError:
        raise Http404 from None
    messages.success(request, "The saved call is deleted.")
    return redirect(_page_of(tenant, row.id))


def _page_of(tenant: Tenant, tool: UUID) -> str:
    return f"{reverse('admin:tool', args=[tenant.slug, tool])}#saved-calls"


def _compare(
    request: SignedInRequest, tenant: Tenant, tool: UUID, saved: SavedCallRow
) -> Comparison:
    begun = monotonic()
    if saved.request is None or saved.expectation is None:
        return Comparison(
            SavedCallEnding(""), 0.0, ("It can no longer be read: its key was destroyed.",)
        )
    ending = _run(request, tenant, tool, saved.request)
    problems = tuple(differing(saved.expectation, ending))
    return Comparison(ending, monotonic() - begun, problems, excerpt_of(saved.expectation, ending))


def _run(
    request: SignedInRequest, tenant: Tenant, tool: UUID, sent: SavedRequest
) -> SavedCallEnding:
    """Run all rounds of a saved call."""
    row = row_of(tenant, PrimitiveType.TOOL, tool)
    trial = TrialRequest(
        operator=request.user,
        tenant=tenant.pk,
        definition=row.fields,
        arguments=sent.arguments,
        host=request.get_host(),
        source=str(request.META.get("REMOTE_ADDR", "")),
        primitive=tool,
        client=client_of(sent).played,
    )
    answers = iter(sent.answers)
    try:
        while True:
            trial_result = async_to_sync(trials.run)(trial)
            if not trial_result.requests:
                return _ended(trial_result)
            responses = next(answers, {})
            if problem := _unanswerable(trial_result, responses):
                trials.end(trial_result.call, tenant.pk, problem, actor(request))
                return SavedCallEnding("input_required", call=trial_result.call, problem=problem)
            trial = _next(trial, trial_result, responses)
    except (InvalidPrimitiveError, TrialEndedError, PermissionDenied) as refusal:
        return SavedCallEnding("", problem=str(refusal) or "You may not try the tool any more.")


def _unanswerable(trial_result: TrialResult, responses: Mapping[str, Any]) -> str:
    """Why the call does not go on after a round that asks; empty if it does."""
    if responses.keys() != trial_result.requests.keys():
        return (
            f"It asks other questions than when it was saved: {', '.join(trial_result.requests)}."
        )
    return "It has too many rounds." if trial_result.number >= MAX_ROUNDS else ""


def _next(
    trial: TrialRequest, trial_result: TrialResult, responses: Mapping[str, Any]
) -> TrialRequest:
    """Return the request for the next round of a trial.

    A saved refusal is replaced by `REFUSAL` itself, because `trials` compares by identity.
    """
    return replace(
        trial,
        state=trial_result.state,
        responses={key: REFUSAL if "error" in sent else sent for key, sent in responses.items()},
        tool_state=trial_result.tool_state,
    )


def _ended(trial_result: TrialResult) -> SavedCallEnding:
    result = trial_result.result or {}
    text = "\n".join(block.text for block in trial_results.blocks(result))
    if trial_result.error is not None:
        text = trial_result.error.message
    return SavedCallEnding(
        trial_results.outcome(trial_result),
        text,
        result.get("structuredContent"),
        trial_result.call if trial_result.is_recorded else None,
    )
