"""`subscriptions/listen` (spec: basic/patterns/subscriptions)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from mcphost.catalogue.selectors import Offering
from mcphost.protocol import subscriptions
from mcphost.protocol.errors import invalid_params, invalid_request
from mcphost.protocol.subscriptions import LISTS, Filter
from mcphost.protocol.tasks import parse_task_id
from mcphost.protocol.uris import MAX_LENGTH, normalize, percent_encoded
from mcphost.runtime.call import Principal
from mcphost.serving import limits, policy
from mcphost.serving.context import Incoming
from mcphost.serving.database import in_database
from mcphost.serving.lookups import Scopes, offering
from mcphost.serving.options import options
from mcphost.serving.ports import LongLivedStream
from mcphost.serving.replies import server_info
from mcphost.serving.request_state import principal_key
from mcphost.serving.revocation import presences
from mcphost.serving.shutdown import draining
from mcphost.serving.subscriptions import registry
from mcphost.serving.subscriptions.registry import Listener, YieldTimer, listeners
from mcphost.tasks import selectors as tasks

LOOKS = 3
"""How often the offering is read at most, should it change all the time."""
MAX_ID = 256
"""In characters. The id is in each message of a subscription, and is kept as long as that lasts."""


class Readable(NamedTuple):
    """A resource to listen to: the URI in the client's form, and what is read there now."""

    uri: str
    reading: object


async def listen(incoming: Incoming, stream: LongLivedStream) -> Mapping[str, Any]:
    """Acknowledge the subscription and send its notifications until the client disconnects.

    The acknowledgment leaves out what the caller may not know of. The method returns its result
    when nothing is left, or when the server ends the subscription: at a drain, or because the
    caller has lost access.
    """
    if len(str(_id(incoming))) > MAX_ID:
        raise invalid_request(f"The id of a subscription has at most {MAX_ID} characters")
    requested = _read_filter(incoming.exchange.params)
    if limits.are_set(incoming):
        limits.count_call(incoming)
    places = listeners.take_place(incoming.principal, incoming.source)
    try:
        await _attend(incoming, requested, stream)
    finally:
        listeners.give_back(places)
    return subscriptions.ended(
        _id(incoming), server_info(incoming.tenant.title, incoming.tenant.icon)
    )


async def _attend(incoming: Incoming, requested: Filter, stream: LongLivedStream) -> None:
    principal = incoming.principal
    lists = requested.lists if principal.may(policy.LIST) else ()
    requested_uris = requested.uris if principal.may(policy.CALL) else ()
    served, readable = await look_at(principal, requested_uris)
    uris = {normal: resource.uri for normal, resource in readable.items()}
    followed = await _own_tasks(incoming, requested.tasks) if principal.may(policy.CALL) else {}
    listener = Listener(_id(incoming), principal, stream, lists, uris, frozenset(followed.values()))
    honoured = Filter(tuple(lists), tuple(uris.values()), tuple(followed))
    stream.send(subscriptions.acknowledged(_id(incoming), honoured))
    if not honoured or draining():
        return
    read = {normal: resource.reading for normal, resource in readable.items()}
    listeners.join(listener, served, read)
    presences.register(listener)
    try:
        await stream.stay()
    finally:
        presences.unregister(listener)
        listeners.remove(listener)


async def _own_tasks(incoming: Incoming, ids: Sequence[str]) -> dict[str, UUID]:
    """Those of the tasks that are the caller's."""
    task_ids = {id: task for id in ids if (task := parse_task_id(id)) is not None}
    if not task_ids:
        return {}
    caller = principal_key(incoming.principal)
    era, tenant = incoming.exchange.era, incoming.tenant.id
    own = await in_database(tasks.owned, tuple(task_ids.values()), tenant, caller, era)
    return {id: task for id, task in task_ids.items() if task in own}


def _read_filter(params: Mapping[str, Any]) -> Filter:
    """The requested filter. Raises ProtocolError (INVALID_PARAMS) if it is empty or too large."""
    requested = Filter.read(params["notifications"])
    if not requested:
        fields = ", ".join((*LISTS.values(), "resourceSubscriptions", "taskIds"))
        raise invalid_params(f"params.notifications requests nothing; its fields are {fields}")
    max_uris = options().listeners.uris
    if len(requested.uris) > max_uris:
        raise invalid_params(
            f"params.notifications.resourceSubscriptions has more than {max_uris} URIs"
        )
    if any(len(uri) > MAX_LENGTH for uri in requested.uris):
        raise invalid_params(
            "params.notifications.resourceSubscriptions has a URI of more than "
            f"{MAX_LENGTH} characters"
        )
    return requested


async def look_at(
    principal: Principal, uris: Sequence[str]
) -> tuple[Offering, Mapping[str, Readable]]:
    """Return the current offering and what the caller reads at these URIs, by their normal forms.

    This takes a while: each URI may be compared with many templates. A change in the meantime was
    notified without this caller, so the lookup is repeated when the offering has changed.
    """
    tenant, scopes = principal.tenant, principal.scopes
    served = await offering(tenant)
    readable = await _read_resources(uris, served, scopes)
    for _ in range(LOOKS - 1):
        if served is await offering(tenant):
            break
        served = await offering(tenant)
        readable = await _read_resources(uris, served, scopes)
    return served, readable


async def _read_resources(
    uris: Sequence[str], served: Offering, scopes: Scopes
) -> dict[str, Readable]:
    readable: dict[str, Readable] = {}
    timer = YieldTimer()
    for uri in uris:
        if timer.is_due():
            await asyncio.sleep(0)
        try:
            normal = normalize(percent_encoded(uri))
        except ValueError:
            continue
        # The first of those with one normal form.
        reading = None if normal in readable else registry.reading(served, normal, scopes)
        if reading is not None:
            readable[normal] = Readable(uri, reading)
    return readable


def _id(incoming: Incoming) -> str | int:
    identifier = incoming.exchange.id
    assert identifier is not None
    return identifier
