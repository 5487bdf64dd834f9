"""The methods of a session: those shared by all revisions, and those that only sessions have.

The shared methods return results of the stateless revision, which are then converted to the
session's revision.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcphost.calls import sessions
from mcphost.protocol.errors import OVER_LIMIT, ProtocolError, invalid_params, method_not_found
from mcphost.protocol.legacy import results
from mcphost.protocol.legacy.tasks import created
from mcphost.protocol.messages import LOG_LEVELS
from mcphost.protocol.resources import resource_not_found
from mcphost.protocol.results import INPUT_REQUIRED, TASK
from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.uris import normalize, percent_encoded
from mcphost.serving import limits, policy
from mcphost.serving.context import ClientSession, Incoming
from mcphost.serving.database import in_database
from mcphost.serving.legacy import missing_functions, tasks
from mcphost.serving.legacy.session import session_gone, set_log_level
from mcphost.serving.lookups import offering
from mcphost.serving.methods.dispatch import HANDLERS
from mcphost.serving.options import options
from mcphost.serving.ports import EventStream

Handler = Callable[[Incoming, ClientSession], Awaitable[Mapping[str, Any]]]

STATELESS: Final = frozenset({"server/discover", "tasks/get", "tasks/update", "tasks/cancel"})
"""The methods that sessions do not have."""
SHARED: Final = frozenset(HANDLERS) - STATELESS
"""The methods whose requests are the same in all revisions."""


async def dispatch(
    incoming: Incoming, session: ClientSession, stream: EventStream
) -> Mapping[str, Any]:
    """Run a request of a session and return its result in the form of the session's revision.

    An InputRequired result is returned in the form of the stateless revision. Raises ProtocolError.
    """
    method = incoming.exchange.method
    if method in OF_TASKS and REVISIONS[session.revision].tasks:
        return await OF_TASKS[method](incoming, session)
    if method in OWN:
        return await OWN[method](incoming, session)
    if method not in SHARED:
        raise method_not_found(method)
    await missing_functions.require_code(incoming)
    result = await HANDLERS[method](incoming, stream)
    if result.get("resultType") == INPUT_REQUIRED:
        return result
    if result.get("resultType") == TASK:
        return created(result)
    return results.convert_result(REVISIONS[session.revision], method, result)


async def _ping(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    return {}


async def _set_level(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    level = incoming.exchange.params.get("level")
    if level not in LOG_LEVELS:
        raise invalid_params(f"params.level must be one of {', '.join(LOG_LEVELS)}")
    if level != session.log_level:
        limits.count_change(incoming.principal, incoming.source)
        await set_log_level(session, level)
    return {}


async def _subscribe(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    """Subscribe the session to a resource that its caller can read (spec: server/resources)."""
    policy.require_scope(incoming.principal, policy.CALL)
    uri, normal = _uri(incoming)
    offered = await offering(incoming.tenant.id)
    if offered.read_at(normal, incoming.principal.scopes) is None:
        raise resource_not_found(uri)
    limits.count_change(incoming.principal, incoming.source)
    max_uris = options().listeners.uris
    try:
        await in_database(sessions.subscribe, session.id, session.tenant, uri, max_uris)
    except sessions.TooManyTopicsError:
        raise ProtocolError(
            OVER_LIMIT, f"A session can subscribe to at most {max_uris} resources"
        ) from None
    except sessions.SessionOverError:
        raise session_gone() from None
    return {}


async def _unsubscribe(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    uri, _ = _uri(incoming)
    limits.count_change(incoming.principal, incoming.source)
    await in_database(sessions.unsubscribe, session.id, session.tenant, uri)
    return {}


def _uri(incoming: Incoming) -> tuple[str, str]:
    """The requested URI, as the client wrote it and in its normal form."""
    uri = incoming.exchange.params.get("uri")
    if not isinstance(uri, str):
        raise invalid_params("params.uri must be a string")
    try:
        return uri, normalize(percent_encoded(uri))
    except ValueError as error:
        raise invalid_params(f"params.uri: {error}", {"uri": uri}) from None


OWN: Final[Mapping[str, Handler]] = {
    "ping": _ping,
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
}
"""The methods that only sessions have."""
OF_TASKS: Final[Mapping[str, Handler]] = {
    "tasks/get": tasks.get,
    "tasks/list": tasks.list_tasks,
    "tasks/cancel": tasks.cancel,
    "tasks/result": tasks.result,
}
"""The methods of the tasks of revision 2025-11-25."""
