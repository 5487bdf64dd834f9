"""Rounds that asked, as they are recorded."""

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
    """A round that asked, whose question may be answered for so many seconds; the call."""
    expires = timezone.now() + timedelta(seconds=lives)
    facts = {"sealed_by": key, "expires_at": expires.isoformat()}
    return _finished(
        call=call or uuid4(), round=number, outcome=INPUT_REQUIRED, tenant=tenant, facts=facts
    )


def ended(call: UUID, number: int) -> UUID:
    """A round that was the call's last."""
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
