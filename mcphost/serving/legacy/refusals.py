"""Recording what a session was to have no part in: answers that nobody asked it for, and messages that
nothing of its own had sent."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from mcphost.audit.records import MESSAGE_REFUSED, Record, new_id
from mcphost.audit.writer import RecordLost, RecordRefused, writer
from mcphost.protocol.eras import Era
from mcphost.runtime.call import Delivery, Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving.incoming import Session
from mcphost.serving.limits import may_be_recorded

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
    """Record it with the true reason, which the client is not told: so many of a session per minute."""
    entry = _entry(action, session, principal, reason, call, facts)
    if not await may_be_recorded(session.id.hex):
        return
    try:
        await writer.submit((entry,))
    except (RecordLost, RecordRefused):
        log.error("that something was refused could not be recorded", extra=_where(session, call))


def refuse_soon(
    action: str, session: Session, principal: Principal, reason: str, call: UUID | None = None
) -> None:
    """The same without waiting, on the event loop."""
    entry = _entry(action, session, principal, reason, call, _NOTHING)
    try:
        writer.submit((entry,)).add_done_callback(_look_at)
    except RecordLost:
        log.error("that something was refused could not be recorded", extra=_where(session, call))


def _look_at(written: "asyncio.Future[None]") -> None:
    if not written.cancelled() and written.exception() is not None:
        log.error("that something was refused could not be recorded")


def _entry(
    action: str,
    session: Session,
    principal: Principal,
    reason: str,
    call: UUID | None,
    facts: Mapping[str, Any],
) -> Record:
    log.warning("%s: %s", action, reason, extra=_where(session, call), stack_info=_is_ours(action))
    return Record(
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


def _is_ours(action: str) -> bool:
    """Whether it came from in here: then it matters from where."""
    return action == MESSAGE_REFUSED


def _where(session: Session, call: UUID | None) -> dict[str, str]:
    return {"session": str(session.id), "call": str(call)}
