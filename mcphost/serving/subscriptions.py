"""`subscriptions/listen` (spec: basic/patterns/subscriptions)."""

from collections.abc import Mapping
from typing import Any

from mcphost.catalogue.selectors import Offering
from mcphost.protocol import subscriptions
from mcphost.protocol.errors import invalid_params
from mcphost.protocol.subscriptions import LISTS, Filter
from mcphost.runtime.call import Principal
from mcphost.serving import limits, policy, views
from mcphost.serving.authority import presences
from mcphost.serving.drain import draining
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.listeners import Listener, listeners
from mcphost.serving.options import options
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import StandingStream

URI_LENGTH = 2048


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
    principal = incoming.principal
    listeners.attach()  # before the look at what is offered: no change is missed in between
    served = await offering(principal.tenant)
    honoured = _honoured(wanted, principal, served)
    stream.send(subscriptions.acknowledged(_id(incoming), honoured))
    if not honoured or draining():
        return
    listener = Listener(_id(incoming), principal, honoured, stream)
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
    if any(len(uri) > URI_LENGTH for uri in wanted.uris):
        raise invalid_params(
            "params.notifications.resourceSubscriptions has a URI of more than "
            f"{URI_LENGTH} characters"
        )
    return wanted


def _honoured(wanted: Filter, principal: Principal, offering: Offering) -> Filter:
    """The part that the caller may hear of: lists that it may ask for, resources it may read."""
    lists = wanted.lists if principal.may(policy.LIST) else ()
    scopes = principal.scopes
    readable = principal.may(policy.CALL)
    uris = (uri for uri in wanted.uris if readable and views.reading(offering, uri, scopes))
    return Filter(lists, tuple(uris))


def _id(incoming: Incoming) -> str | int:
    identifier = incoming.exchange.id
    assert identifier is not None
    return identifier
