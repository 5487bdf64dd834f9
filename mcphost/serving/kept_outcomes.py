"""The outcomes of claimed rounds as they lie in the database: sealed, and bound to their round."""

import logging
from uuid import UUID

from django.db import Error

from mcphost.calls.claims import Taking, Wanted
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import opening
from mcphost.vault import sealer
from mcphost.vault.errors import VaultError

RETRY_SECONDS = 2
GONE = "This was done before, and how it ended can no longer be told"

log = logging.getLogger(__name__)


def seal(taking: Taking, outcome: bytes) -> str:
    """What is kept of an outcome; nothing if it cannot be sealed, because the round has ended all the
    same. In the writer's thread: it may read the database, whose errors it raises."""
    payload = _place(taking.call, taking.round) + outcome
    try:
        return sealer.seal(Purpose.ROW, taking.tenant, payload)
    except (SealError, VaultError) as error:
        log.error("the outcome of a round is not kept: %s", _why(error), extra=_facts(taking))
        return ""


async def unseal(wanted: Wanted, kept: str) -> bytes:
    """The outcome of just this round.

    Raises ProtocolError: INTERNAL_ERROR for one that cannot be opened, whose round must not be run
    again; UNAVAILABLE when the keys cannot be read now.
    """
    try:
        payload = await opening.unseal(Purpose.ROW, wanted.tenant, kept)
    except Error:
        message = "The server cannot look up these answers at the moment"
        raise ProtocolError(UNAVAILABLE, message, {"retryAfter": RETRY_SECONDS}) from None
    except (SealError, VaultError) as error:
        raise _gone(wanted, _why(error)) from None
    place = _place(wanted.call, wanted.round)
    if not payload.startswith(place):
        raise _gone(wanted, "it is another round's")
    return payload[len(place) :]


def _gone(wanted: Wanted, why: str) -> ProtocolError:
    log.error("the outcome of a round cannot be told again: %s", why, extra=_facts(wanted))
    return ProtocolError(INTERNAL_ERROR, GONE)


def _place(call: UUID, number: int) -> bytes:
    return call.bytes + number.to_bytes(8)


def _why(error: SealError | VaultError) -> str:
    return error.reason.value if isinstance(error, SealError) else str(error)


def _facts(about: Taking | Wanted) -> dict[str, str | int]:
    return {"call": str(about.call), "round": about.round}
