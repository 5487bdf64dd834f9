"""Calls that a user cancelled while they waited for input.

The state of a stateless call is with its client, so a row says that the call is cancelled until that
state has expired. A call of a session is cancelled in its own row, and its round can no longer start;
the row here has the reason.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from mcphost.calls import claims, questions
from mcphost.calls.models import CancelledCall, StreamedCall
from mcphost.calls.states import CallState
from mcphost.feed.services import announce

CANCELLED: Final = "call_cancelled"
"""The name of the change in the change log. The object id is the call's."""
PRUNED_AT_ONCE: Final = 500


def cancel(call: UUID, tenant: UUID, reason: str, seconds: float) -> None:
    """Store that a call is cancelled, for `seconds`, and notify all processes.

    Call it last in the transaction that makes sure that no round of the call can start any more.
    """
    until = Now() + timedelta(seconds=seconds + claims.KEPT_LONGER)
    CancelledCall.objects.create(call=call, tenant=tenant, reason=reason, expires_at=until)
    announce(CANCELLED, tenant=tenant, object_id=call.hex)


def stop_in_session(call: UUID, tenant: UUID) -> bool | None:
    """Let no further round of a session's call start, in the caller's transaction.

    False if a round runs already or the call is over; None if there is no such call.
    """
    of_call = StreamedCall.objects.filter(id=call, tenant=tenant)
    if not of_call.filter(state=CallState.WAITING).update(state=CallState.CANCELLED):
        return False if of_call.exists() else None
    questions.cancel(call)
    return True


def reason_of(call: UUID, tenant: UUID) -> str | None:
    """Why a call was cancelled; None if it was not, or if its row has expired."""
    rows = CancelledCall.objects.filter(call=call, tenant=tenant)
    return rows.values_list("reason", flat=True).first()


def unexpired_calls() -> frozenset[UUID]:
    """The calls that are cancelled and whose clients may still return."""
    return frozenset(CancelledCall.objects.values_list("call", flat=True))


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired rows; return how many."""
    old = CancelledCall.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    expired_ids = list(old.values_list("call", flat=True)[:PRUNED_AT_ONCE])
    CancelledCall.objects.filter(call__in=expired_ids).delete()
    return len(expired_ids)
