"""Large values that a stateless call has recorded, such as responses of HTTP services.

What does not fit into the request state is sealed into a row, bound to tenant, caller and call. The
state has the row's id and a digest of its content, so that a state never goes on with other values.
The row is kept for as long as the state can be used.
"""

import hashlib
import hmac
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import Error
from django.utils import timezone

from mcphost.audit.records import new_id
from mcphost.calls import state_parts
from mcphost.calls.state_parts import (
    MaxParts,
    NewPart,
    StatePartGoneError,
    StatePartsFullError,
)
from mcphost.observability.availability import availability
from mcphost.protocol.errors import unavailable
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Failed, FailureKind
from mcphost.sealing.tokens import LIMITS, Purpose, Reason, SealError
from mcphost.serving import request_state, sealing
from mcphost.serving.context import Turn
from mcphost.serving.database import in_database
from mcphost.serving.options import options
from mcphost.serving.replies import Asking, Delivered
from mcphost.serving.request_state import InvalidStateError, PartReference, RequestState

LARGE: Final = 2048
"""From how many bytes on a value is moved."""
MAX_CONTENT: Final = 8 * 1024 * 1024
"""The longest content of a part, sealed, in characters."""
SPARE: Final = timedelta(minutes=2)
"""How much longer than its state a part is kept, and how long where the last request may be repeated."""

FULL: Final = "Too much is stored for calls that wait for an answer. Try again later."
NOT_NOW: Final = "Input cannot be requested at the moment."

log = logging.getLogger(__name__)


class PartNotStoredError(Exception):
    """What does not fit into a state could not be stored. The text is for the caller."""


async def seal(turn: Turn, state: RequestState) -> str:
    """Seal the state of a stateless call, without the large values that do not fit into it.

    If it is still too large, it leaves out the paused program, which then runs again from its
    journal. Raises SealError, VaultError, PartNotStoredError.
    """
    carried = turn.resumed.carried
    if carried and turn.resumed.state is not None:
        parts = turn.resumed.state.parts
        state = state._replace(parts=parts, journal=_without(state.journal, carried))
    try:
        token, new = await _token(turn, state), None
    except SealError as error:
        if error.reason is not Reason.TOO_LARGE:
            raise
        token, new = await _smaller(turn, state)
    if carried or new is not None:
        await _store(turn, state, new)
    return token


async def load(turn: Turn) -> Turn:
    """Return the turn with all values of its call. Raises InvalidStateError if they are not there any more,
    ProtocolError (UNAVAILABLE)."""
    state = turn.resumed.state
    if state is None or not state.parts:
        return turn
    ids = [UUID(part.id) for part in state.parts]
    try:
        rows = await in_database(state_parts.read, turn.call.tenant, state.call, ids)
    except Error:
        raise unavailable("The state of this call cannot be read now; retry later") from None
    recorded: dict[str, Any] = {}
    for part in state.parts:
        recorded |= await _opened(state, turn.call.tenant, part, rows.get(UUID(part.id)))
    journal = replace(turn.journal, recorded={**turn.journal.recorded, **recorded})
    resumed = turn.resumed._replace(carried=frozenset(recorded))
    return turn._replace(journal=journal, resumed=resumed)


async def end(turn: Turn, delivered: Delivered) -> None:
    """Delete the parts of a call that is over. Where its last request may run again, they are kept for
    a moment. Never raises: what is left expires."""
    state = turn.resumed.state
    if state is None or not state.parts or isinstance(delivered.reply, Asking):
        return
    outcome = delivered.outcome
    if isinstance(outcome, Failed) and outcome.error.kind is FailureKind.OVERLOADED:
        return  # the client is told to retry
    if availability.unreachable:
        return
    ids = [UUID(part.id) for part in state.parts]
    until = None if turn.is_claimed else timezone.now() + SPARE
    with suppress(Error):
        await in_database(state_parts.end, turn.call.tenant, ids, until)


async def _token(turn: Turn, state: RequestState) -> str:
    written = request_state.write(state)
    if len(written) > LIMITS[Purpose.STATE]:  # it need not be sealed to know
        raise SealError(Reason.TOO_LARGE)
    return await sealing.seal(Purpose.STATE, turn.call.tenant, written)


async def _smaller(turn: Turn, state: RequestState) -> tuple[str, NewPart | None]:
    """Seal a state that is too large without what can be left out. Raises SealError."""
    sizes = {id: len(orjson.dumps(value)) for id, value in state.journal.recorded.items()}
    large = {id: state.journal.recorded[id] for id, size in sizes.items() if size >= LARGE}
    new = None
    if large:
        new, reference = await _part(turn, large)
        journal = _without(state.journal, large)
        state = state._replace(parts=(*state.parts, reference), journal=journal)
    try:
        return await _token(turn, state), new
    except SealError:
        if state.journal.paused is None:
            raise
    unpaused = replace(state.journal, paused=None)
    return await _token(turn, state._replace(journal=unpaused)), new


def _without(journal: Journal, left_out: Collection[str]) -> Journal:
    kept = {id: value for id, value in journal.recorded.items() if id not in left_out}
    return replace(journal, recorded=kept)


async def _part(turn: Turn, values: Mapping[str, Any]) -> tuple[NewPart, PartReference]:
    """Prepare the part with these values. Raises SealError, VaultError."""
    id, written = new_id(), orjson.dumps(values)
    context = _context(turn.call.id, id, turn.bound.principal)
    tenant = turn.call.tenant
    content = await sealing.seal(Purpose.ROW, tenant, written, MAX_CONTENT, context)
    return NewPart(id, tenant, turn.call.id, content), PartReference(id.hex, _digest(written))


async def _opened(
    state: RequestState, tenant: UUID, part: PartReference, content: str | None
) -> Mapping[str, Any]:
    if content is None:
        raise InvalidStateError("its large values are gone", state.call)
    context = _context(state.call, UUID(part.id), state.bound.principal)
    try:
        written = await sealing.unseal(Purpose.ROW, tenant, content, MAX_CONTENT, context)
    except SealError as error:
        raise InvalidStateError(error.reason, state.call) from None
    if not hmac.compare_digest(_digest(written), part.digest):
        raise InvalidStateError("its large values are others", state.call)
    values: Mapping[str, Any] = orjson.loads(written)
    return values


async def _store(turn: Turn, state: RequestState, new: NewPart | None) -> None:
    """Store a new part, and keep the others for as long as the new state. Raises
    PartNotStoredError."""
    until = datetime.fromtimestamp(state.expires_at, UTC) + SPARE
    max_parts = MaxParts(options().state_parts.rows, options().state_parts.bytes)
    older = [] if turn.resumed.state is None else turn.resumed.state.parts
    try:
        if older:
            ids = [UUID(part.id) for part in older]
            await in_database(partial(state_parts.extend, turn.call.tenant, ids, until))
        if new is not None:
            await in_database(partial(state_parts.add, new, until, max_parts))
    except StatePartsFullError:
        raise PartNotStoredError(FULL) from None
    except (StatePartGoneError, Error) as error:
        log.warning("large values of a call could not be stored: %s", type(error).__name__)
        raise PartNotStoredError(NOT_NOW) from None


def _context(call: UUID, part: UUID, principal: str) -> bytes:
    return b"state part" + call.bytes + part.bytes + principal.encode()


def _digest(written: bytes) -> str:
    return hashlib.sha256(written).hexdigest()
