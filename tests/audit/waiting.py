"""Recorded rounds that ended with a question."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import INPUT_REQUIRED, ROUND_FINISHED, new_id


def asked(
    key: str,
    *,
    call: UUID | None = None,
    number: int = 1,
    lives: float = 60,
    tenant: UUID | None = None,
) -> UUID:
    """Write a round with a question that can be answered for some seconds; return the call."""
    expires = timezone.now() + timedelta(seconds=lives)
    facts = {"sealed_by": key, "expires_at": expires.isoformat()}
    return _finished(
        call=call or uuid4(), round=number, outcome=INPUT_REQUIRED, tenant=tenant, facts=facts
    )


def ended(call: UUID, number: int) -> UUID:
    """Write the last round of a call."""
    return _finished(call=call, round=number, outcome="complete")


def _finished(call: UUID, **columns: Any) -> UUID:
    Entry.objects.create(
        id=new_id(),
        at=timezone.now(),
        call=call,
        action=ROUND_FINISHED,
        actor_kind="token",
        **columns,
    )
    return call
