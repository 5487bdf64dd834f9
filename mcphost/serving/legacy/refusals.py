"""Recording what a session was to have no part in: answers that nobody asked it for, and messages that
nothing of its own had sent."""

import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from mcphost.audit.records import Record, new_id
from mcphost.audit.writer import RecordLost, RecordRefused, writer
from mcphost.protocol.eras import Era
from mcphost.runtime.call import Delivery, Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving.incoming import Session

_CLOCK = SystemClock()
_NOTHING: Mapping[str, Any] = {}

log = logging.getLogger(__name__)


async def refuse(
    action: str,
    session: Session,
    principal: Principal,
    reason: str,
    call: UUID | None = None,
    facts: Mapping[str, Any] = _NOTHING,
) -> None:
    """Record it with the true reason, which the client is not told."""
    where = {"session": str(session.id), "call": str(call)}
    log.warning("%s: %s", action, reason, extra=where)
    entry = Record(
        new_id(),
        _CLOCK.now(),
        session.tenant,
        call,
        action=action,
        actor_kind=str(principal.kind),
        actor_id=principal.id,
        actor_label=principal.label,
        token_id=principal.token_id or "",
        revision=session.revision,
        era=str(Era.LEGACY),
        delivery=str(Delivery.LEGACY),
        client_name=session.client.name,
        client_version=session.client.version,
        outcome="refused",
        reason=reason,
        facts={**facts, "session": str(session.id)},
    )
    try:
        await writer.submit((entry,))
    except (RecordLost, RecordRefused):
        log.error("that something was refused could not be recorded", extra=where)
