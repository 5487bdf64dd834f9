"""Cancel a call that waits for input, or cancel or retry a task, at the request of a user.

Whether a response or the cancellation comes first is decided by the row that the next round needs: of
a session's call its own row, of a task the task's, of a stateless call the claim of the round. (Rounds
of tools that may safely run twice are not claimed. A process runs one although its call is cancelled
if the client returns within the moment that the change log takes.)
"""

from enum import StrEnum
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit import services as audit
from mcphost.audit.entries import UNKNOWN
from mcphost.audit.records import Actor
from mcphost.audit.timeline import OPEN, Timeline
from mcphost.calls import cancelled, claims
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving.execution.cancelled_calls import CANCELLED_MESSAGE
from mcphost.serving.execution.stored_tasks import MESSAGE
from mcphost.serving.options import options
from mcphost.tasks import listing as tasks
from mcphost.tasks import services as changing
from mcphost.tasks.listing import ListedTask
from mcphost.tenants.access import lock_tenant
from mcphost.tenants.roles import Permission
from mcphost.vault import sealer
from mcphost.vault.errors import VaultError

MAX_REASON: Final = 300


class CancelResult(StrEnum):
    """What came of it. Of all but DONE nothing was changed."""

    DONE = "done"
    RUNS = "runs"
    """A response was faster: its round runs, or its end is not recorded."""
    OVER = "over"
    """The call waits for no response any more, or no such call is known."""


def plain_reason(text: str) -> str:
    """Return a reason on one line, without control characters. Empty if no word is left."""
    return " ".join(
        "".join(character if character.isprintable() else " " for character in text).split()
    )


def cancel(call: UUID, tenant: UUID, reason: str, actor: Actor) -> CancelResult:
    """Cancel a call of the tenant that waits for input; its caller is told the reason.

    Records it. What was answered before stays recorded. Raises PermissionDenied if the actor may no
    longer cancel calls, and UnknownTenantError if there is no such tenant.
    """
    with transaction.atomic():
        lock_tenant(tenant, actor, Permission.CANCEL_CALLS)
        result = _cancel(call, tenant, reason, actor)
        if result is not CancelResult.DONE:
            transaction.set_rollback(True)
    return result


def cancel_task(task: ListedTask, reason: str, actor: Actor) -> bool:
    """Cancel a task, whatever it does now; its caller is told the reason. Records it.

    False, and nothing is recorded, if it has ended. Raises PermissionDenied if the actor no longer
    manages tasks, and UnknownTenantError if there is no such tenant.
    """
    with transaction.atomic():
        lock_tenant(task.tenant, actor, Permission.MANAGE_TASKS)
        audit.cancel_task(task.call, task.tenant, task.tool, reason, actor)
        done = changing.cancel(task.id, task.tenant, _message(task, reason))
        if not done:
            transaction.set_rollback(True)
    return done


@transaction.atomic
def retry_task(task: ListedTask, actor: Actor) -> bool:
    """Let the next round of a task run now, and record it; False, and neither, if it cannot run now.

    The entry does not have the task's id: that is all that an anonymous caller needs to follow it.
    Raises as `cancel_task`.
    """
    lock_tenant(task.tenant, actor, Permission.MANAGE_TASKS)
    audit.retry_task(task.call, task.tenant, task.tool, actor)
    done = changing.retry(task.id, task.tenant)
    if not done:
        transaction.set_rollback(True)
    return done


def _cancel(call: UUID, tenant: UUID, reason: str, actor: Actor) -> CancelResult:
    if _read_timeline(call, tenant) is None:
        return CancelResult.OVER
    task = tasks.of_call(call, tenant)
    if task is not None and task.works:
        return _cancel_task(task, reason, actor)
    longest = settings.MCPHOST_MAX_ANSWER_SECONDS
    stopped = cancelled.stop_in_session(call, tenant)
    if stopped is None:
        # A call has a request more than replies, and a round that none of them has claimed.
        stopped = claims.cancel(call, tenant, options().stateless_replies + 2, longest)
    timeline = _read_timeline(call, tenant)  # again: no round can start any more
    assert timeline is not None
    if not stopped or _has_response(timeline):
        return CancelResult.RUNS if _goes_on(timeline) else CancelResult.OVER
    if timeline.state != OPEN:
        return CancelResult.OVER
    audit.cancel_call(call, tenant, reason, actor)
    cancelled.cancel(call, tenant, reason, longest)
    return CancelResult.DONE


def _cancel_task(task: ListedTask, reason: str, actor: Actor) -> CancelResult:
    audit.cancel_call(task.call, task.tenant, reason, actor)
    if not changing.cancel(task.id, task.tenant, _message(task, reason)):
        return CancelResult.OVER
    return CancelResult.DONE


def _message(task: ListedTask, reason: str) -> str:
    """The status message of the cancelled task, sealed; empty if it cannot be sealed."""
    text, context = CANCELLED_MESSAGE.format(reason).encode(), task.id.bytes + MESSAGE
    try:
        return sealer.seal(Purpose.ROW, task.tenant, text, context=context)
    except (SealError, VaultError):
        return ""


def _read_timeline(call: UUID, tenant: UUID) -> Timeline | None:
    return call_list.call(call, frozenset({tenant}), timezone.now())


def _has_response(timeline: Timeline) -> bool:
    """Whether a response has come since the last round, and the round that takes it in has no end."""
    last = timeline.rounds[-1]
    return bool(last.answers) and all(attempt.finished is None for attempt in last.attempts)


def _goes_on(timeline: Timeline) -> bool:
    return timeline.state in (OPEN, UNKNOWN)
