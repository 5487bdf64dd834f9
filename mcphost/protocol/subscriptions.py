"""The messages of a subscription (spec: basic/patterns/subscriptions).

Each message carries the subscription id: the id of the request that opened the subscription, with
its JSON type (1 and "1" differ). On the streams of a session, which no request opens, messages
carry none.
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
"""The filter field that asks for changes of a list, by primitive type."""

_CHANGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tool": "notifications/tools/list_changed",
        "prompt": "notifications/prompts/list_changed",
        "resource": "notifications/resources/list_changed",
    }
)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a client subscribes to: lists by name (see LISTS), resource URIs, and ids of tasks, both
    without duplicates."""

    lists: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lists or self.uris or self.tasks)

    @classmethod
    def read(cls, notifications: Mapping[str, Any]) -> "Filter":
        """Read the filter from a request's params, whose shape has been checked."""
        lists = tuple(name for name, field in LISTS.items() if notifications.get(field))
        uris = notifications.get("resourceSubscriptions") or ()
        tasks = notifications.get("taskIds") or ()
        return cls(lists, tuple(dict.fromkeys(uris)), tuple(dict.fromkeys(tasks)))

    def wire(self) -> dict[str, Any]:
        """Return the filter in wire format; fields that are not set are left out."""
        fields: dict[str, Any] = {LISTS[name]: True for name in self.lists}
        if self.uris:
            fields["resourceSubscriptions"] = list(self.uris)
        if self.tasks:
            fields["taskIds"] = list(self.tasks)
        return fields


def lasting(exchange: Exchange) -> Exchange:
    """Return the request with only what its subscription needs, because it is kept as long.

    A client could fill the unused fields with millions of objects.
    """
    tracestate = exchange.params["_meta"].get("tracestate")
    params = {
        "_meta": {} if tracestate is None else {"tracestate": tracestate},
        "notifications": Filter.read(exchange.params["notifications"]).wire(),
    }
    meta = Meta(traceparent=exchange.meta.traceparent)
    return exchange._replace(params=params, meta=meta)


def acknowledged(subscription: str | int, honoured: Filter) -> bytes:
    """Encode the first message of a subscription: the part of the filter that is honoured."""
    params = {"_meta": _meta(subscription), "notifications": honoured.wire()}
    return messages.notification("notifications/subscriptions/acknowledged", params)


def list_changed(subscription: str | int | None, name: str) -> bytes:
    """Encode the notification that a list has changed (`name` is one of LISTS)."""
    return messages.notification(_CHANGED[name], _named(subscription))


def resource_updated(subscription: str | int | None, uri: str) -> bytes:
    """Encode the notification that the resource at `uri` has changed."""
    params = {**_named(subscription), "uri": uri}
    return messages.notification("notifications/resources/updated", params)


def ended(subscription: str | int, server: Mapping[str, Any]) -> dict[str, Any]:
    """Build the result with which the server ends a subscription (section "Graceful Closure")."""
    return results.complete({"_meta": _meta(subscription)}, server)


def _named(subscription: str | int | None) -> dict[str, Any]:
    return {} if subscription is None else {"_meta": _meta(subscription)}


def _meta(subscription: str | int) -> dict[str, Any]:
    return {SUBSCRIPTION_ID: subscription}
