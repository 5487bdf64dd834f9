"""The subscriptions of this process, and the notifications of changes to their clients.

There is one registry. The change log's thread feeds it; it works on the event loop. Subscriptions
are grouped by tenant and scopes. Changes are found once for each group, by comparing what its
scopes see now with what they saw before, so that no client is notified of what it may not know. A
subscription has no task and no timer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, groupby
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from mcphost.catalogue.selectors import Offering
from mcphost.catalogue.updates import LIST, UPDATED
from mcphost.feed.loop import ChangeNews
from mcphost.protocol import subscriptions
from mcphost.protocol.errors import ProtocolError, over_limit
from mcphost.protocol.subscriptions import LISTS
from mcphost.runtime.call import Principal
from mcphost.serving.events import Relay
from mcphost.serving.limits import InUse, caller, share
from mcphost.serving.lookups import Scopes, offering
from mcphost.serving.options import options
from mcphost.serving.ports import LongLivedStream

SECONDS = 0.005


class YieldTimer:
    """Measures SECONDS of work on the event loop, after which the task should yield."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + SECONDS

    def is_due(self) -> bool:
        """Whether to yield now. If so, the next period begins."""
        now = time.perf_counter()
        if now < self._ends:
            return False
        self._ends = now + SECONDS
        return True


class Listed(Protocol):
    """An entry of a list; `encoded` is its JSON in the list."""

    @property
    def scopes(self) -> Scopes: ...

    @property
    def encoded(self) -> bytes: ...


_LISTS: Mapping[str, Callable[[Offering], Iterable[Listed]]] = {
    "tool": lambda offering: offering.tools,
    "prompt": lambda offering: offering.prompts,
    "resource": lambda offering: chain(offering.resources, offering.templates),
}
"""The entries of each list that clients can subscribe to. Templates belong to the resources."""


def digest(offering: Offering, name: str, scopes: Scopes) -> bytes:
    """A digest of a list as callers with these scopes see it. If it is equal, so is the list."""
    hashed = blake2b(digest_size=16)
    for entry in _LISTS[name](offering):
        if entry.scopes <= scopes:
            hashed.update(b"%d:" % len(entry.encoded))
            hashed.update(entry.encoded)
    return hashed.digest()


def reading(offering: Offering, uri: str, scopes: Scopes) -> tuple[UUID, str] | None:
    """The id and version of what callers with these scopes read at `uri`; None if nothing.

    `uri` is in its normal form.
    """
    match = offering.read_at(uri, scopes)
    return None if match is None else (match[0].id, match[0].version)


RETRY_SECONDS = 30
ENDED_AT_ONCE = 200
"""How many subscriptions are ended before the event loop runs other work."""

GAP = ChangeNews(0, None, "gap", "")
"""Stands for a gap in the change log: anything may have changed."""

NOT_LOOKED_AT: Final = object()
"""The state of a topic that was not read yet: unlike any state that can be read."""

ChangeHandler = Callable[[Sequence[ChangeNews]], Awaitable[None]]


class Listener:
    """One subscription: to lists by name, to resources by URI, and to tasks by id.

    `uris` maps the normal form of each URI to the client's form. `id` is in every message unless it
    is None. The listener is registered in `presences`, too: its stream ends when its caller loses
    access.
    """

    __slots__ = ("id", "lists", "principal", "stream", "tasks", "uris")

    def __init__(
        self,
        id: str | int | None,
        principal: Principal,
        stream: LongLivedStream,
        lists: Sequence[str],
        uris: Mapping[str, str],
        tasks: frozenset[UUID] = frozenset(),
    ) -> None:
        self.id = id
        self.principal = principal
        self.stream = stream
        self.lists = lists
        self.uris = uris
        self.tasks = tasks

    @property
    def topics(self) -> tuple[str, ...]:
        """Its lists and normalized URIs. Names of lists have no colon; URIs have one."""
        return (*self.lists, *self.uris)

    def revoke(self, refusal: ProtocolError) -> None:
        """End the stream. The subscription ends with its result, whatever the reason."""
        self.stream.end_stay()

    def notify_change(self, topic: str) -> None:
        if topic in LISTS:
            self.send_message(subscriptions.list_changed(self.id, topic))
        else:
            self.send_message(subscriptions.resource_updated(self.id, self.uris[topic]))

    def send_message(self, message: bytes) -> None:
        self.stream.send(message)


class Group:
    """The listeners of one tenant with the same scopes, and the last state of their topics."""

    __slots__ = ("by_topic", "members", "scopes", "states")

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.members: set[Listener] = set()
        self.by_topic: dict[str, set[Listener]] = {}
        self.states: dict[str, object] = {}

    def add(self, listener: Listener, offering: Offering, read: Mapping[str, object]) -> None:
        """Add a listener. `read` is what these scopes read of the offering at its URIs."""
        self.members.add(listener)
        for topic in listener.topics:
            if topic not in self.by_topic:
                self.by_topic[topic] = set()
                listed = topic in LISTS
                self.states[topic] = (
                    _state_of(offering, topic, self.scopes) if listed else read[topic]
                )
            self.by_topic[topic].add(listener)

    def discard(self, listener: Listener) -> None:
        self.members.discard(listener)
        self.discard_from(listener.topics, listener)

    def discard_from(self, topics: Iterable[str], listener: Listener) -> None:
        for topic in topics:
            present = self.by_topic.get(topic, set())
            present.discard(listener)
            if not present:
                self.by_topic.pop(topic, None)
                self.states.pop(topic, None)

    def concerned(self, changes: "TenantChanges") -> tuple[str, ...]:
        """The topics that the changes may concern. A changed resource may be read at any URI."""
        named = changes.lists | changes.updated
        if "resource" in changes.lists:
            return tuple(topic for topic in self.by_topic if topic not in LISTS or topic in named)
        return tuple(topic for topic in named if topic in self.by_topic)

    def changed(self, topic: str, offering: Offering, *, updated: bool) -> set[Listener]:
        """The listeners to notify of a topic: none if these scopes see the same state as before."""
        if topic not in self.by_topic:
            return set()
        now = _state_of(offering, topic, self.scopes)
        before, self.states[topic] = self.states[topic], now
        is_changed = now is not None and (updated or now != before)
        return self.by_topic[topic] if is_changed else set()


def _state_of(offering: Offering, topic: str, scopes: Scopes) -> object:
    if topic in LISTS:
        return digest(offering, topic, scopes)
    return reading(offering, topic, scopes)


class TenantChanges(NamedTuple):
    """The changes of one tenant: lists that may have changed, and topics that were announced."""

    lists: set[str]
    updated: set[str]


class Listeners:
    """The registry. Only for the event loop's thread, except `on_change` and `on_gap`.

    `followed` is called with the tasks of a new subscription.
    """

    def __init__(self) -> None:
        self._groups: dict[UUID, dict[Scopes, Group]] = {}
        self._counts = InUse()
        self._handlers: dict[str, ChangeHandler] = {}
        self._by_task: dict[UUID, set[Listener]] = {}
        self.followed: Callable[[frozenset[UUID]], None] = _unheard
        self._relay: Relay[ChangeNews] = Relay(self._notify, _pause)

    def __len__(self) -> int:
        return self._counts[""]

    def start(self) -> None:
        """Tell listeners of changes, on the running loop."""
        self._relay.start()

    async def stop(self) -> None:
        await self._relay.stop()

    def take_place(self, principal: Principal, source: str) -> tuple[str, ...]:
        """Count one more subscription; pass the result to `give_back`.

        Raises ProtocolError (OVER_LIMIT) when the credential, the tenant or this process has too
        many. The first two limits are shared among all processes. A caller without a credential is
        counted by its address.
        """
        limit = options().listeners
        places = (
            (caller(principal, source), share(limit.per_token), "for this credential"),
            (str(principal.tenant), share(limit.per_tenant), "for this tenant"),
            ("", limit.in_all, "on this server"),
        )
        for key, max_count, phrase in places:
            if self._counts[key] >= max_count:
                message = f"Too many subscriptions {phrase}"
                raise over_limit(message, RETRY_SECONDS)
        keys = tuple(key for key, _, _ in places)
        self._counts.take(keys)
        return keys

    def give_back(self, places: Sequence[str]) -> None:
        self._counts.give_back(places)

    def join(self, listener: Listener, offering: Offering, read: Mapping[str, object]) -> None:
        """Notify `listener` of changes since `offering`. `read` is what it reads there."""
        principal = listener.principal
        groups = self._groups.setdefault(principal.tenant, {})
        group = groups.get(principal.scopes)
        if group is None:
            group = groups[principal.scopes] = Group(principal.scopes)
        group.add(listener, offering, read)
        for task in listener.tasks:
            self._by_task.setdefault(task, set()).add(listener)
        if listener.tasks:
            self.followed(listener.tasks)

    def of_task(self, task: UUID) -> tuple[Listener, ...]:
        """The subscriptions to this task."""
        return tuple(self._by_task.get(task, ()))

    def tasks(self) -> tuple[UUID, ...]:
        """All tasks that are subscribed to."""
        return tuple(self._by_task)

    def replace_topics(self, listener: Listener, uris: Mapping[str, str]) -> None:
        """Replace the resources to which a joined listener is subscribed.

        Their present state is not read, so the first change that may concern one is notified.
        """
        group = self._groups[listener.principal.tenant][listener.principal.scopes]
        removed = set(listener.uris) - set(uris)
        listener.uris = uris
        for topic in uris:
            group.by_topic.setdefault(topic, set()).add(listener)
            group.states.setdefault(topic, NOT_LOOKED_AT)
        group.discard_from(removed, listener)

    def register_handler(self, kind: str, handler: ChangeHandler) -> None:
        """Register `handler` for changes of the kind `kind`, in change log order with notifications.

        It must accept the same change twice.
        """
        self._handlers[kind] = handler

    def remove(self, listener: Listener) -> None:
        """Stop notifying a listener that has joined."""
        principal = listener.principal
        groups = self._groups[principal.tenant]
        group = groups[principal.scopes]
        group.discard(listener)
        for task in listener.tasks:
            self._by_task[task].discard(listener)
            if not self._by_task[task]:
                del self._by_task[task]
        if not group.members:
            del groups[principal.scopes]
        if not groups:
            del self._groups[principal.tenant]

    def end_all(self) -> None:
        """End every subscription gracefully, ENDED_AT_ONCE in each pass of the event loop."""
        groups = [group for of_tenant in self._groups.values() for group in of_tenant.values()]
        self._end([listener for group in groups for listener in group.members])

    def on_change(self, news: ChangeNews) -> None:
        """Queue a change that may concern listeners. From the change log's thread."""
        self._relay.put(news)

    def on_gap(self) -> None:
        """Queue a gap: anything may have changed. From the change log's thread."""
        self._relay.put(GAP)

    def _end(self, listeners: Sequence[Listener]) -> None:
        for listener in listeners[:ENDED_AT_ONCE]:
            listener.stream.end_stay()
        if later := listeners[ENDED_AT_ONCE:]:
            asyncio.get_running_loop().call_soon(self._end, later)

    async def _notify(self, news: Sequence[ChangeNews]) -> None:
        for kind, changes in groupby(news, self._kind_of):
            handler = self._handlers.get(kind)
            if handler is None:
                await self._notify_listeners(tuple(changes))
            else:
                await handler(tuple(changes))

    def _kind_of(self, news: ChangeNews) -> str:
        return news.kind if news.kind in self._handlers else ""

    async def _notify_listeners(self, news: Sequence[ChangeNews]) -> None:
        timer = YieldTimer()
        for tenant, changes in self._sorted(news).items():
            if tenant not in self._groups:
                continue
            served = await offering(tenant)
            for group in tuple(self._groups.get(tenant, {}).values()):
                for topic in group.concerned(changes):
                    changed = group.changed(topic, served, updated=topic in changes.updated)
                    if timer.is_due():
                        await asyncio.sleep(0)
                    for listener in tuple(changed):
                        listener.notify_change(topic)
                        if timer.is_due():
                            await asyncio.sleep(0)

    def _sorted(self, news: Sequence[ChangeNews]) -> dict[UUID, TenantChanges]:
        """Group the changes by tenant. A change without a tenant concerns all tenants."""
        by_tenant: dict[UUID, TenantChanges] = {}
        for change in news:
            for tenant in tuple(self._groups) if change.tenant is None else (change.tenant,):
                changes = by_tenant.setdefault(tenant, TenantChanges(set(), set()))
                if change.kind in (UPDATED, LIST):
                    changes.updated.add(change.object_id)
                elif change.kind in LISTS:
                    changes.lists.add(change.kind)
                else:
                    changes.lists.update(LISTS)
                    for group in self._groups.get(tenant, {}).values():
                        changes.updated.update(set(group.by_topic).difference(LISTS))
        return by_tenant


def _pause() -> float:
    """The delay in seconds between a change and its notification.

    A notified client requests the new state at once, from any process. All processes must have read
    the change by then, or the client would keep an outdated response without another notification.
    """
    return options().settling_seconds


def _unheard(_: frozenset[UUID]) -> None:
    return None


listeners = Listeners()
