"""Commit the records of a round. What a failed commit means to the client is decided here alone."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar
from uuid import UUID

from mcphost.audit.records import Record
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.observability.availability import availability
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.runtime.call import Call
from mcphost.runtime.ports import Misuse
from mcphost.serving.context import Turn
from mcphost.serving.database import DatabaseAwayError, until_there
from mcphost.serving.execution import audit_records

NOT_NOW = "The server cannot record calls at the moment"
LOST = "The server could not record the call"
REFUSED = "The call cannot be recorded, and a retry will not help"
UNRECORDED_END = "The tool has run, but its result could not be recorded"
UNRECORDED_TASK = "The call could not be recorded as a task, and has not run"

T = TypeVar("T")

log = logging.getLogger(__name__)


async def check() -> None:
    """Wait until the database can be reached. Raises ProtocolError (UNAVAILABLE) if no round may start
    now, because it could not be recorded."""
    if availability.unreachable or writer.is_behind():
        try:
            await until_there()
        except DatabaseAwayError:
            raise unavailable(NOT_NOW) from None
    if writer.refuse_new():
        raise unavailable(NOT_NOW)


async def begin(turn: Turn, commit: Awaitable[None]) -> None:
    """Wait for the commit before the round. A cancellation meanwhile is recorded as the round's end.
    Raises ProtocolError."""
    try:
        await commit
    except (RecordLostError, RecordRefusedError) as error:
        raise error_for(error) from None
    except asyncio.CancelledError as end:
        submit_without_waiting(audit_records.cancelled(turn, 0, end))
        raise


async def committed(commit: Awaitable[T], ended: Turn | None = None) -> T:
    """Wait for a commit, and return its result. `ended` is the round whose end it records, if it does.
    Raises ProtocolError, and what else `commit` raises."""
    try:
        return await commit
    except (RecordLostError, RecordRefusedError) as error:
        raise error_for(error, ended) from None


def error_for(
    error: RecordLostError | RecordRefusedError, ended: Turn | None = None
) -> ProtocolError:
    """The error for the client. If it is the end of a round that is not recorded, and its tool is not
    read-only, the error does not invite the client to retry."""
    if isinstance(error, RecordRefusedError):
        return ProtocolError(INTERNAL_ERROR, REFUSED)
    if ended is None or ended.primitive.read_only:
        return unavailable(LOST)
    return ProtocolError(INTERNAL_ERROR, UNRECORDED_TASK if ended.task.at_once else UNRECORDED_END)


async def refusal(turn: Turn, reason: str, call: UUID | None) -> None:
    """Record and log why a request's state was refused. The caller does not learn the reason."""
    log.warning("a request's state was refused: %s", reason, extra=turn.facts)
    await committed(writer.submit((audit_records.refused(turn, reason, call),)))


def misuse(turn: Turn, kind: Misuse, other_call: Call | None) -> None:
    """Record and log that a tool context was misused (`Misuse`).

    The log has both calls if there is an `other_call`; the record of one tenant never names the call of
    another. On the event loop.
    """
    facts = {**turn.facts, "tenant_id": str(turn.call.tenant), "misuse": str(kind)}
    if other_call is not None:
        facts |= {"other_call": str(other_call.id), "other_tenant_id": str(other_call.tenant)}
    log.warning("a tool context was misused", extra=facts)
    submit_without_waiting(audit_records.misused(turn, kind))


def submit_without_waiting(record: Record) -> None:
    """Submit a record without waiting. If it is lost, that is logged."""
    writer.submit((record,)).add_done_callback(_log_lost)


def _log_lost(commit: "asyncio.Future[None]") -> None:
    if not commit.cancelled() and commit.exception() is not None:
        log.warning("a record for which no request waits was lost")
