"""Who listens in this process, and telling them what changed.

One registry, fed by the feed's thread and working on the event loop. Listeners are grouped by
tenant and scopes: what changed is found out once for each group, by comparing what its scopes see
now with what they saw before, so that nobody is told of what it may not know. A listener has no
task and no timer.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple
from uuid import UUID

from mcphost.catalogue.selectors import Offering
from mcphost.catalogue.updates import LIST, UPDATED
from mcphost.feed.loop import ChangeNews
from mcphost.protocol import subscriptions
from mcphost.protocol.errors import OVER_LIMIT, ProtocolError
from mcphost.protocol.subscriptions import LISTS
from mcphost.runtime.call import Principal
from mcphost.serving import views
from mcphost.serving.breath import Breath
from mcphost.serving.finding import Scopes
from mcphost.serving.limits import share
from mcphost.serving.options import options
from mcphost.serving.relay import Relay
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import StandingStream

RETRY_SECONDS = 30
ENDED_AT_ONCE = 200
"""How many are ended before others on the event loop have a turn."""

GAP = ChangeNews(0, None, "gap", "")
"""Stands for whatever was not heard."""

NOT_LOOKED_AT: Final = object()
"""Stands for what was seen where nobody has looked: it is like nothing that can be seen."""

Taker = Callable[[Sequence[ChangeNews]], Awaitable[None]]


class Listener:
    """One subscription: to lists by name, and to resources by the normal form of their URIs.

    `uris` has what the client calls them. `id` is in every message, where it is not None. It is one of
    `presences`, too: its stream ends when its caller's authority does.
    """

    __slots__ = ("id", "lists", "principal", "stream", "uris")

    def __init__(
        self,
        id: str | int | None,
        principal: Principal,
        stream: StandingStream,
        lists: Sequence[str],
        uris: Mapping[str, str],
    ) -> None:
        self.id = id
        self.principal = principal
        self.stream = stream
        self.lists = lists
        self.uris = uris

    @property
    def topics(self) -> tuple[str, ...]:
        """What it hears of. Names of lists have no colon, and URIs have one."""
        return (*self.lists, *self.uris)

    def lose(self, refusal: ProtocolError) -> None:
        """A subscription ends by its result, whatever the reason."""
        self.stream.leave()

    def tell(self, topic: str) -> None:
        if topic in LISTS:
            self.say(subscriptions.list_changed(self.id, topic))
        else:
            self.say(subscriptions.resource_updated(self.id, self.uris[topic]))

    def say(self, message: bytes) -> None:
        self.stream.send(message)


class Group:
    """The listeners of one tenant with the same scopes, and what those saw when last looked at."""

    __slots__ = ("by_topic", "members", "scopes", "seen")

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.members: set[Listener] = set()
        self.by_topic: dict[str, set[Listener]] = {}
        self.seen: dict[str, object] = {}

    def add(self, listener: Listener, offering: Offering, read: Mapping[str, object]) -> None:
        """`read` is what these scopes read of the offering at the listener's URIs."""
        self.members.add(listener)
        for topic in listener.topics:
            if topic not in self.by_topic:
                self.by_topic[topic] = set()
                listed = topic in LISTS
                self.seen[topic] = _seen(offering, topic, self.scopes) if listed else read[topic]
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
                self.seen.pop(topic, None)

    def concerned(self, heard: "Heard") -> tuple[str, ...]:
        """The topics that news may be about. A resource that changed may be read at any URI."""
        named = heard.lists | heard.updated
        if "resource" in heard.lists:
            return tuple(topic for topic in self.by_topic if topic not in LISTS or topic in named)
        return tuple(topic for topic in named if topic in self.by_topic)

    def changed(self, topic: str, offering: Offering, *, updated: bool) -> set[Listener]:
        """Who is to be told of a topic: nobody, if these scopes see nothing else than before."""
        if topic not in self.by_topic:
            return set()
        now = _seen(offering, topic, self.scopes)
        before, self.seen[topic] = self.seen[topic], now
        told = now is not None and (updated or now != before)
        return self.by_topic[topic] if told else set()


def _seen(offering: Offering, topic: str, scopes: Scopes) -> object:
    if topic in LISTS:
        return views.digest(offering, topic, scopes)
    return views.reading(offering, topic, scopes)


class Heard(NamedTuple):
    """What was heard of one tenant: lists that may have changed, and topics that were announced."""

    lists: set[str]
    updated: set[str]


class Listeners:
    """The registry. Only for the event loop's thread, except `heard` and `heard_nothing`."""

    def __init__(self) -> None:
        self._groups: dict[UUID, dict[Scopes, Group]] = {}
        self._counts: Counter[str] = Counter()
        self._takers: dict[str, Taker] = {}
        self._relay: Relay[ChangeNews] = Relay(self._tell, _pause)

    def __len__(self) -> int:
        return self._counts[""]

    def attach(self) -> None:
        """Hear of changes from now on: before looking at what a new listener sees."""
        self._relay.attach()

    def take_place(self, principal: Principal, source: str) -> tuple[str, ...]:
        """Count one more; give the result to `give_back`.

        Raises ProtocolError (OVER_LIMIT) when there are too many of the credential, the tenant, or
        in this process; all processes have a share of the first two. Callers without a credential are counted by their address.
        """
        limit = options().listeners
        credential = principal.token_id or f"{principal.tenant} {source}"
        places = (
            (credential, share(limit.per_token), "for this credential"),
            (str(principal.tenant), share(limit.per_tenant), "for this tenant"),
            ("", limit.in_all, "on this server"),
        )
        for key, most, whose in places:
            if self._counts[key] >= most:
                message = f"There are as many subscriptions {whose} as there may be"
                raise ProtocolError(OVER_LIMIT, message, {"retryAfter": RETRY_SECONDS})
        keys = tuple(key for key, _, _ in places)
        self._counts.update(keys)
        return keys

    def give_back(self, places: Sequence[str]) -> None:
        for key in places:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

    def join(self, listener: Listener, offering: Offering, read: Mapping[str, object]) -> None:
        """Tell `listener` from now on. `offering` is what was just shown to it, `read` what it
        reads of that at its URIs."""
        principal = listener.principal
        groups = self._groups.setdefault(principal.tenant, {})
        group = groups.get(principal.scopes)
        if group is None:
            group = groups[principal.scopes] = Group(principal.scopes)
        group.add(listener, offering, read)

    def turn_to(self, listener: Listener, uris: Mapping[str, str]) -> None:
        """Tell one that has joined of these resources instead of those that it was told of.

        What is read there was not looked at in time: whatever may be news of one is told as such.
        """
        group = self._groups[listener.principal.tenant][listener.principal.scopes]
        gone = set(listener.uris) - set(uris)
        listener.uris = uris
        for topic in uris:
            group.by_topic.setdefault(topic, set()).add(listener)
            group.seen.setdefault(topic, NOT_LOOKED_AT)
        group.discard_from(gone, listener)

    def in_its_place(self, what: str, taker: Taker) -> None:
        """Have `taker` given news of this kind, in the order of the feed and between what is told.

        It must be able to take the same news twice.
        """
        self._takers[what] = taker

    def leave(self, listener: Listener) -> None:
        """Tell one that has joined nothing more."""
        principal = listener.principal
        groups = self._groups[principal.tenant]
        group = groups[principal.scopes]
        group.discard(listener)
        if not group.members:
            del groups[principal.scopes]
        if not groups:
            del self._groups[principal.tenant]

    def end_all(self) -> None:
        """End every subscription gracefully, some in each turn of the event loop."""
        self._end(tuple(self._all()))

    def heard(self, news: ChangeNews) -> None:
        """The feed tells of something listeners may want to know. From the feed's thread."""
        self._relay.put(news)

    def heard_nothing(self) -> None:
        """There was a gap in the feed: anything may have changed. From the feed's thread."""
        self._relay.put(GAP)

    def _end(self, listeners: Sequence[Listener]) -> None:
        for listener in listeners[:ENDED_AT_ONCE]:
            listener.stream.leave()
        if later := listeners[ENDED_AT_ONCE:]:
            asyncio.get_running_loop().call_soon(self._end, later)

    def _all(self) -> Iterator[Listener]:
        for groups in self._groups.values():
            for group in groups.values():
                yield from group.members

    async def _tell(self, news: Sequence[ChangeNews]) -> None:
        for what, some in groupby(news, self._kind_of):
            taker = self._takers.get(what)
            if taker is None:
                await self._tell_of(tuple(some))
            else:
                await taker(tuple(some))

    def _kind_of(self, news: ChangeNews) -> str:
        return news.what if news.what in self._takers else ""

    async def _tell_of(self, news: Sequence[ChangeNews]) -> None:
        breath = Breath()
        for tenant, heard in self._sorted(news).items():
            if tenant in self._groups:
                served = await offering(tenant)
                for listener, topic in self._told(tenant, served, heard):
                    if listener is not None:
                        listener.tell(topic)
                    if breath.is_out():
                        await asyncio.sleep(0)

    def _told(
        self, tenant: UUID, served: Offering, heard: Heard
    ) -> Iterator[tuple[Listener | None, str]]:
        """Who is to be told of what; None for each topic looked at, which takes time as well."""
        for group in tuple(self._groups.get(tenant, {}).values()):
            for topic in group.concerned(heard):
                changed = group.changed(topic, served, updated=topic in heard.updated)
                yield None, topic
                for listener in tuple(changed):
                    yield listener, topic

    def _sorted(self, news: Sequence[ChangeNews]) -> dict[UUID, Heard]:
        """The news by tenant. News of no tenant is news of all."""
        by_tenant: dict[UUID, Heard] = {}
        for one in news:
            for tenant in tuple(self._groups) if one.tenant is None else (one.tenant,):
                heard = by_tenant.setdefault(tenant, Heard(set(), set()))
                self._note(heard, tenant, one)
        return by_tenant

    def _note(self, heard: Heard, tenant: UUID, news: ChangeNews) -> None:
        if news.what in (UPDATED, LIST):
            heard.updated.add(news.object_id)
        elif news.what in LISTS:
            heard.lists.add(news.what)
        else:
            heard.lists.update(LISTS)
            heard.updated.update(self._uris(tenant))

    def _uris(self, tenant: UUID) -> Iterator[str]:
        for group in self._groups.get(tenant, {}).values():
            yield from (topic for topic in group.by_topic if topic not in LISTS)


def _pause() -> float:
    """How long news rests before it is told.

    A client that is told asks again at once, and any process may be asked: all must have heard by
    then, or the client would keep an outdated answer with nobody left to tell it so.
    """
    return options().settling_seconds


listeners = Listeners()
