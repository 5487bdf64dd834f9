"""The messages of a subscription (spec: basic/patterns/subscriptions).

Every one of them names its subscription by the id of the request that opened it, which keeps its
JSON type: 1 and "1" are two. On the streams of a session, which no request opens, they name none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from mcphost.protocol import messages, results
from mcphost.protocol.exchange import Exchange, Meta

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

LISTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tool": "toolsListChanged",
        "prompt": "promptsListChanged",
        "resource": "resourcesListChanged",
    }
)
"""The field of a filter that asks for changes of a list, by what the list is of."""

_CHANGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tool": "notifications/tools/list_changed",
        "prompt": "notifications/prompts/list_changed",
        "resource": "notifications/resources/list_changed",
    }
)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a subscription is about: lists by name (see LISTS), and URIs of resources, each once."""

    lists: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lists or self.uris)

    @classmethod
    def read(cls, notifications: Mapping[str, Any]) -> "Filter":
        """The filter in a request's params, whose shape has been checked."""
        lists = tuple(name for name, field in LISTS.items() if notifications.get(field))
        uris = notifications.get("resourceSubscriptions") or ()
        return cls(lists, tuple(dict.fromkeys(uris)))

    def wire(self) -> dict[str, Any]:
        """The filter as it travels; what it is not about is left out."""
        fields: dict[str, Any] = {LISTS[name]: True for name in self.lists}
        if self.uris:
            fields["resourceSubscriptions"] = list(self.uris)
        return fields


def lasting(exchange: Exchange) -> Exchange:
    """The request, with nothing but what a subscription needs of it: it stays for as long.

    A client can put millions of objects into what nobody reads.
    """
    tracestate = exchange.params["_meta"].get("tracestate")
    params = {
        "_meta": {} if tracestate is None else {"tracestate": tracestate},
        "notifications": Filter.read(exchange.params["notifications"]).wire(),
    }
    meta = Meta(traceparent=exchange.meta.traceparent)
    return exchange._replace(params=params, meta=meta)


def acknowledged(subscription: str | int, honoured: Filter) -> bytes:
    """The first message of a subscription: what of it will be honoured."""
    params = {"_meta": _meta(subscription), "notifications": honoured.wire()}
    return messages.notification("notifications/subscriptions/acknowledged", params)


def list_changed(subscription: str | int | None, name: str) -> bytes:
    """A list is not what it was (`name` is one of LISTS)."""
    return messages.notification(_CHANGED[name], _named(subscription))


def resource_updated(subscription: str | int | None, uri: str) -> bytes:
    """What can be read at `uri` is not what it was."""
    params = {**_named(subscription), "uri": uri}
    return messages.notification("notifications/resources/updated", params)


def ended(subscription: str | int, server: Mapping[str, Any]) -> dict[str, Any]:
    """The result with which the server ends a subscription (section "Graceful Closure")."""
    return results.complete({"_meta": _meta(subscription)}, server)


def _named(subscription: str | int | None) -> dict[str, Any]:
    return {} if subscription is None else {"_meta": _meta(subscription)}


def _meta(subscription: str | int) -> dict[str, Any]:
    return {SUBSCRIPTION_ID: subscription}
