"""`subscriptions/listen` (spec: basic/patterns/subscriptions)."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcphost.catalogue.selectors import Offering
from mcphost.protocol import subscriptions
from mcphost.protocol.errors import invalid_params
from mcphost.protocol.subscriptions import LISTS, Filter
from mcphost.protocol.uris import MAX_LENGTH, normalize
from mcphost.serving import limits, policy, views
from mcphost.serving.authority import presences
from mcphost.serving.drain import draining
from mcphost.serving.finding import Scopes
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.listeners import Listener, listeners
from mcphost.serving.options import options
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import StandingStream

LOOKED_UP_AT_ONCE = 10


async def listen(incoming: Incoming, stream: StandingStream) -> Mapping[str, Any]:
    """Acknowledge what will be honoured, and tell of it until the client hangs up.

    What the caller may not know of is left out of the acknowledgment. When nothing is left, or when
    the server ends the subscription (it drains, the caller's authority is gone), the result says so.
    """
    wanted = _wanted(incoming.exchange.params)
    if limits.are_set(incoming):
        await limits.take_turn(incoming)
    places = listeners.take_place(incoming.principal, incoming.source)
    try:
        await _attend(incoming, wanted, stream)
    finally:
        listeners.give_back(places)
    return subscriptions.ended(_id(incoming), server_info(incoming.tenant))


async def _attend(incoming: Incoming, wanted: Filter, stream: StandingStream) -> None:
    listeners.attach()  # before the look at what is offered: no change is missed in between
    served = await offering(incoming.tenant.id)
    listener = await _listener(incoming, stream, wanted, served)
    honoured = Filter(tuple(listener.lists), tuple(listener.uris.values()))
    stream.send(subscriptions.acknowledged(listener.id, honoured))
    if not honoured or draining():
        return
    listeners.join(listener, served)
    presences.enter(listener)
    try:
        await stream.stay()
    finally:
        presences.leave(listener)
        listeners.leave(listener)


def _wanted(params: Mapping[str, Any]) -> Filter:
    """What is asked for. Raises ProtocolError (INVALID_PARAMS) for nothing, and for too much."""
    wanted = Filter.read(params["notifications"])
    if not wanted:
        fields = ", ".join((*LISTS.values(), "resourceSubscriptions"))
        raise invalid_params(f"params.notifications asks for nothing: it has {fields}")
    most = options().listeners.uris
    if len(wanted.uris) > most:
        raise invalid_params(
            f"params.notifications.resourceSubscriptions has more than {most} URIs"
        )
    if any(len(uri) > MAX_LENGTH for uri in wanted.uris):
        raise invalid_params(
            "params.notifications.resourceSubscriptions has a URI of more than "
            f"{MAX_LENGTH} characters"
        )
    return wanted


async def _listener(
    incoming: Incoming, stream: StandingStream, wanted: Filter, served: Offering
) -> Listener:
    """For the part that the caller may hear of: lists it may ask for, resources it may read."""
    principal = incoming.principal
    uris: dict[str, str] = {}
    for number, uri in enumerate(wanted.uris if principal.may(policy.CALL) else ()):
        if number % LOOKED_UP_AT_ONCE == 0:
            await asyncio.sleep(0)  # each may be held against many templates
        normal = _readable(uri, served, principal.scopes)
        if normal is not None:
            uris.setdefault(normal, uri)
    lists = wanted.lists if principal.may(policy.LIST) else ()
    return Listener(incoming, stream, lists, uris)


def _readable(uri: str, served: Offering, scopes: Scopes) -> str | None:
    """The normal form of a URI at which these scopes read something; else None."""
    try:
        normal = normalize(uri)
    except ValueError:
        return None
    return None if views.reading(served, normal, scopes) is None else normal


def _id(incoming: Incoming) -> str | int:
    identifier = incoming.exchange.id
    assert identifier is not None
    return identifier
