"""Answering a request that was let in: its work is done, or ends with its client, or is refused."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.db import InterfaceError, OperationalError

from mcphost.observability import counters, tracing
from mcphost.protocol import messages
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.serving.incoming import Incoming
from mcphost.serving.streams import Stream
from mcphost.transport import refusals
from mcphost.transport.bodies import Receive
from mcphost.transport.conversation import Conversation
from mcphost.transport.options import options
from mcphost.transport.responder import RawHeaders, Send

AWAY = (OperationalError, InterfaceError)
"""What the ORM raises when there is no database to ask."""
RETRY_SECONDS = 2
NOBODY = 0
"""Stands for the status of an answer that nobody was there for."""

Answer = tuple[int, bytes, RawHeaders]


Work = Callable[[Incoming, Stream], Awaitable[Mapping[str, Any]]]

log = logging.getLogger(__name__)


async def converse(
    incoming: Incoming, work: Work, receive: Receive, send: Send, headers: RawHeaders
) -> int:
    """Answer a request, and cancel its work when the client hangs up or reads too slowly, or when
    its authority is taken away. Gives the status of the answer."""
    conversation = Conversation(receive, send, options().stream, headers, incoming.principal)
    status = NOBODY
    try:
        answer = await answer_of(incoming, work(incoming, conversation))
        if not conversation.ended_early:
            await conversation.finish(*answer)
            status = answer[0]
    except asyncio.CancelledError:
        if not conversation.ended_early:
            raise
    finally:
        status = await _conclude(incoming, conversation) or status
    return status


async def _conclude(incoming: Incoming, conversation: Conversation) -> int:
    """Tell a caller that may not go on why, if it is still there, and let go of everything."""
    status = NOBODY
    try:
        if conversation.ended_early:
            conversation.forgive()
        if conversation.refusal is not None and not conversation.lost:
            answer = refusal_of(incoming, conversation.refusal)
            status = answer[0]
            await conversation.finish(*answer)
    except asyncio.CancelledError:  # servers tell of a hang-up also when all has been sent
        if not conversation.lost:
            raise
        conversation.forgive()
    finally:
        conversation.end()
    return status


async def answer_of(incoming: Incoming, work: Awaitable[Mapping[str, Any]]) -> Answer:
    identifier = incoming.exchange.id
    assert identifier is not None
    try:
        return 200, messages.response(identifier, await work), ()
    except Exception as error:  # noqa: BLE001 - it is told, and logged unless it is a refusal
        return refusal_of(incoming, told(error))


def told(error: Exception) -> ProtocolError:
    """What a client is told of whatever kept its request from being answered."""
    if isinstance(error, ProtocolError):
        return error
    if isinstance(error, AWAY):
        return unavailable(error)
    log.error("a request failed", exc_info=error)
    return ProtocolError(INTERNAL_ERROR, "Internal error")


def unavailable(error: Exception) -> ProtocolError:
    """What to say when something is not remembered and cannot be read now."""
    log.error("the database is away: %s", type(error).__name__)
    again = {"retryAfter": RETRY_SECONDS}
    return ProtocolError(UNAVAILABLE, "The database is away; try again soon", again)


def refusal_of(incoming: Incoming, error: ProtocolError) -> Answer:
    counters.refused(error.code)
    tracing.refused(error.code)
    named = error.with_id(incoming.exchange.id)
    return refusals.status_of(named), refusals.body_of(named), refusals.headers_of(named)
