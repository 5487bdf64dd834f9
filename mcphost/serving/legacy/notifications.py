"""What clients of sessions tell us without asking anything. What we do not know is ignored."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcphost.calls import sessions
from mcphost.protocol.legacy.opening import LegacyNotification
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Session
from mcphost.serving.legacy.cancelling import cancellations

Taker = Callable[[Session, Mapping[str, Any]], Awaitable[None]]


async def take(session: Session, notification: LegacyNotification) -> None:
    """Do what the notification asks for, if anything."""
    taker = _TAKERS.get(notification.method)
    if taker is not None:
        await taker(session, notification.params)


async def _initialized(session: Session, params: Mapping[str, Any]) -> None:
    if not session.initialized:
        await in_database(sessions.initialize, session.id)


async def _cancelled(session: Session, params: Mapping[str, Any]) -> None:
    request = params.get("requestId")
    if type(request) is str or type(request) is int:
        await cancellations.call_off(session, request)


_TAKERS: Final[Mapping[str, Taker]] = {
    "notifications/initialized": _initialized,
    "notifications/cancelled": _cancelled,
}
