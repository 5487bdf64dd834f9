"""The methods of a session: those that all revisions share, and those that only sessions have.

The shared ones answer as the stateless revision has it, and are put into the words of the session's
revision afterwards.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcphost.calls import sessions
from mcphost.protocol.errors import OVER_LIMIT, ProtocolError, invalid_params, method_not_found
from mcphost.protocol.legacy import results
from mcphost.protocol.messages import LOG_LEVELS
from mcphost.protocol.resources import resource_not_found
from mcphost.protocol.results import INPUT_REQUIRED
from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.uris import normalize
from mcphost.serving import finding, policy
from mcphost.serving.dispatch import HANDLERS
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Incoming, Session
from mcphost.serving.options import options
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import Stream

Handler = Callable[[Incoming, Session], Awaitable[Mapping[str, Any]]]

SHARED: Final = frozenset(HANDLERS) - {"server/discover"}
"""What is asked for in the same way on all revisions."""


async def dispatch(incoming: Incoming, session: Session, stream: Stream) -> Mapping[str, Any]:
    """The result of a request of a session, in the words of its revision. Raises ProtocolError.

    What asks for something first is as the stateless revision has it, and is no result yet.
    """
    method = incoming.exchange.method
    if method in OWN:
        return await OWN[method](incoming, session)
    if method not in SHARED:
        raise method_not_found(method)
    result = await HANDLERS[method](incoming, stream)
    if result.get("resultType") == INPUT_REQUIRED:
        return result
    return results.dress(REVISIONS[session.revision], method, result)


async def _ping(incoming: Incoming, session: Session) -> Mapping[str, Any]:
    return {}


async def _set_level(incoming: Incoming, session: Session) -> Mapping[str, Any]:
    level = incoming.exchange.params.get("level")
    if level not in LOG_LEVELS:
        raise invalid_params(f"params.level must be one of {', '.join(LOG_LEVELS)}")
    await in_database(sessions.set_log_level, session.id, level)
    return {}


async def _subscribe(incoming: Incoming, session: Session) -> Mapping[str, Any]:
    """Tell the session of a resource that its caller can read (spec: server/resources)."""
    policy.require_scope(incoming.principal, policy.CALL)
    uri, normal = _uri(incoming)
    offered = await offering(incoming.tenant.id)
    if finding.at(offered, normal, incoming.principal.scopes) is None:
        raise resource_not_found(uri)
    most = options().listeners.uris
    try:
        await in_database(sessions.subscribe, session.id, session.tenant, uri, most)
    except sessions.TooManyTopicsError:
        raise ProtocolError(OVER_LIMIT, f"A session is told of {most} resources at most") from None
    return {}


async def _unsubscribe(incoming: Incoming, session: Session) -> Mapping[str, Any]:
    await in_database(sessions.unsubscribe, session.id, session.tenant, _uri(incoming)[0])
    return {}


def _uri(incoming: Incoming) -> tuple[str, str]:
    """What is asked for, as the client calls it and in its normal form."""
    uri = incoming.exchange.params.get("uri")
    if not isinstance(uri, str):
        raise invalid_params("params.uri must be a string")
    try:
        return uri, normalize(uri)
    except ValueError as error:
        raise invalid_params(f"params.uri: {error}", {"uri": uri}) from None


OWN: Final[Mapping[str, Handler]] = {
    "ping": _ping,
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
}
"""What only sessions have, by method."""
