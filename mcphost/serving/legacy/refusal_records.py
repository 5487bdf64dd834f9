"""Record refusals: input responses that the session was not asked for, and outgoing messages that
do not belong to their stream."""

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from mcphost.audit.records import MESSAGE_REFUSED, Record, new_id
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.protocol.revisions import Era
from mcphost.runtime.call import Delivery, Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving.context import ClientSession
from mcphost.serving.limits import may_be_recorded

_CLOCK = SystemClock()

log = logging.getLogger(__name__)


async def refuse(
    action: str,
    session: ClientSession,
    principal: Principal,
    reason: str,
    call: UUID | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Record a refusal with its true reason, which the client does not receive.

    The number of records per minute is limited for each session and for all sessions of its caller.
    """
    entry = _entry(action, session, principal, reason, call, facts)
    if not may_be_recorded(session.id.hex, session.holder):
        return
    try:
        await writer.submit((entry,))
    except (RecordLostError, RecordRefusedError):
        log.error("a refusal could not be recorded", extra=_where(session, call))


def refuse_soon(
    action: str, session: ClientSession, principal: Principal, reason: str, call: UUID | None = None
) -> None:
    """Record a refusal without waiting and without a limit. On the event loop."""
    entry = _entry(action, session, principal, reason, call, {})
    writer.submit((entry,)).add_done_callback(_look_at)


def _look_at(written: "asyncio.Future[None]") -> None:
    if not written.cancelled() and written.exception() is not None:
        log.error("a refusal could not be recorded")


def _entry(
    action: str,
    session: ClientSession,
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
    """Whether the server's own code caused it: then the log entry needs the stack."""
    return action == MESSAGE_REFUSED


def _where(session: ClientSession, call: UUID | None) -> dict[str, str]:
    return {"session": str(session.id), "call": str(call)}
