"""Limits of calls at once and per minute, for a tenant or a credential. Unset is unlimited.

Changes of sessions are always limited for each caller: a credential, or without one an address at a
tenant.

A limit is for all processes together. Each process allows its share, rounded down so that together
they never allow more, but at least one: with more processes than the limit has calls, each allows
one.
"""

import asyncio
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import orjson
from django.utils.crypto import salted_hmac

from mcphost.feed.nodes import live
from mcphost.identity.attempts import network
from mcphost.protocol.effort import FREE
from mcphost.protocol.errors import invalid_params, over_limit
from mcphost.runtime.call import Principal
from mcphost.runtime.schema import Validator
from mcphost.serving.context import NO_QUOTA, Incoming
from mcphost.serving.options import options

WINDOW_SECONDS = 60
DROPPED_AT_ONCE = 2


class Windows:
    """How often each key was hit within a minute, in moving windows. Only for the event loop's thread.

    The cost of a hit does not depend on the number of keys: they are in the order of their last hit,
    and every hit drops a few expired ones, which is more than it can add.
    """

    def __init__(self) -> None:
        # Not a dict: finding its first key scans all entries deleted before it.
        self._hits: OrderedDict[str, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hits)

    def hit(self, key: str, limit: int) -> float:
        """Count a hit and return 0, unless there were `limit` of them within a minute: then return in
        how many seconds the oldest of these is a minute old."""
        now = time.time()
        begins = now - WINDOW_SECONDS
        for oldest in tuple(islice(self._hits, DROPPED_AT_ONCE)):
            if self._hits[oldest][-1] > begins:
                break
            del self._hits[oldest]
        hits = self._hits.get(key, deque())
        while hits and hits[0] <= begins:
            hits.popleft()
        if len(hits) >= limit:
            return hits[0] - begins
        hits.append(now)
        self._hits.pop(key, None)
        self._hits[key] = hits
        return 0

    def count(self, key: str) -> int:
        """Return how many hits of a key the last `hit` counted, with those before it."""
        return len(self._hits.get(key, ()))


class InUse(Counter[str]):
    """How much of each limited resource is in use now, by key. Only for the event loop's thread."""

    def take(self, keys: Iterable[str], amount: int = 1) -> None:
        """Count `amount` more under each key."""
        for key in keys:
            self[key] += amount

    def give_back(self, keys: Iterable[str], amount: int = 1) -> None:
        """Undo `take` with the same arguments."""
        for key in keys:
            self[key] -= amount
            if not self[key]:
                del self[key]

    def reserve(self, keys: Sequence[str], amount: int = 1) -> "_InUseHere":
        """Count `amount` more under each key inside the context."""
        return _InUseHere(self, keys, amount)


class _InUseHere:
    """The context of `InUse.reserve`. Calls that wait are inside of several: a class takes less memory
    than a generator."""

    __slots__ = ("_amount", "_counts", "_keys")

    def __init__(self, counts: InUse, keys: Sequence[str], amount: int) -> None:
        self._counts = counts
        self._keys = keys
        self._amount = amount

    def __enter__(self) -> None:
        self._counts.take(self._keys, self._amount)

    def __exit__(self, *_: object) -> None:
        self._counts.give_back(self._keys, self._amount)


RETRY_CONCURRENT_SECONDS = 1
SLOT_SECONDS = 10.0
"""How long a call that another process has sent here waits for a place."""
NOTICES_PER_MINUTE = 60
REFUSALS_PER_MINUTE = 60
"""Refusals recorded for one session. A client that sends unasked responses all the time fills the
log, but not the record."""
POLLS_PER_MINUTE = 1200
"""Requests of one caller about one task, in all processes: a client that polls far too often is told so."""
CALLER_TIMES = 10
"""The limit of all sessions of one caller is this many times that of one session."""
_SALT = "mcphost.serving.limits"

Limit = tuple[str, int]


class CallerCounts:
    """What one process counts of its callers."""

    def __init__(self) -> None:
        self.running = InUse()
        self.rates = Windows()
        self.turned_away: OrderedDict[str, float] = OrderedDict()
        """When a call was last refused by these limits, or had to wait (`time.monotonic`). The oldest
        comes first."""


_counted = CallerCounts()


def check_size(incoming: Incoming, validator: Validator, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that are too large for an expensive schema.

    They are encoded to be measured only if the whole body exceeds the limit. Raises ProtocolError
    (INVALID_PARAMS).
    """
    effort = validator.effort
    if effort.factor <= FREE:
        return
    limit = effort.limit(options().body_limit)
    if incoming.size > limit and len(orjson.dumps(arguments)) > limit:
        message = f"params.arguments has more than {limit} bytes, which their schema would take too long to check"
        raise invalid_params(message, {"limit": limit})


def are_set(incoming: Incoming) -> bool:
    """Whether any limit applies to this call."""
    tenant = incoming.tenant
    return incoming.quota != NO_QUOTA or not (
        tenant.calls_per_minute is None and tenant.concurrent_calls is None
    )


def count_call(incoming: Incoming) -> None:
    """Count one call against its per-minute limits.

    Raises ProtocolError (OVER_LIMIT) with `data.retryAfter` in seconds.
    """
    tenant, credential = incoming.tenant.calls_per_minute, incoming.quota.calls_per_minute
    for key, limit in _set(incoming, tenant, credential):
        _count(key, limit, "calls")


def count_change(principal: Principal, source: str) -> None:
    """Count one change of a caller's sessions.

    That is a new session, a subscription, a log level or a GET stream. Raises ProtocolError
    (OVER_LIMIT) with `data.retryAfter` in seconds.
    """
    key = f"sessions:{caller(principal, source)}"
    _count(key, options().sessions.changes_per_minute, "changes of sessions")


def count_poll(task: str, principal_key: str) -> None:
    """Count one request of a caller about a task: another caller, who may only know its id, uses up
    nothing of that. Raises ProtocolError (OVER_LIMIT)."""
    _count(f"task:{task} {principal_key}", POLLS_PER_MINUTE, "requests about a task")


class ApiAllowance(NamedTuple):
    """What a caller of the API may still do in this minute. `retry_after`: in so many seconds, because
    this request is one too many; 0 if it is not."""

    limit: int
    remaining: int
    retry_after: int


def count_api_request(caller_key: str, limit: int) -> ApiAllowance:
    """Count one request of a caller to the administration API."""
    key, own_share = f"api:{caller_key}", share(limit)
    seconds = _counted.rates.hit(key, own_share)
    remaining = own_share - _counted.rates.count(key)
    return ApiAllowance(limit, max(0, remaining), math.ceil(seconds))


def caller(principal: Principal, source: str) -> str:
    """The key under which a caller is counted: its credential, or else its address at the tenant.

    All addresses of one IPv6 /64 network count as one.
    """
    return principal.token_id or f"{principal.tenant} {network(source)}"


def holder(principal: Principal, source: str) -> str:
    """A keyed digest of `caller`, for rows: no address can be read from it."""
    return salted_hmac(_SALT, caller(principal, source), algorithm="sha256").hexdigest()


async def wait_for_slot(incoming: Incoming, seconds: float = math.inf) -> None:
    """Wait for a place among the concurrent calls, at most `seconds`, for a call that has begun."""
    until = time.monotonic() + seconds
    # A changed limit is not notified.
    while turns_away(incoming) is not None and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(RETRY_CONCURRENT_SECONDS)


def may_be_recorded(about: str, holder: str = "") -> bool:
    """Whether one more refusal about `about`, and of `holder`, may be recorded in this minute."""
    return _may(REFUSALS_PER_MINUTE, "refused", about, holder)


def may_notify(about: str, holder: str = "") -> bool:
    """Whether other processes may be notified once more about `about`, and for `holder`, in this
    minute, where this process cannot know whether one of them is concerned."""
    return _may(NOTICES_PER_MINUTE, "told", about, holder)


def _may(limit: int, kind: str, about: str, holder: str) -> bool:
    if _counted.rates.hit(f"{kind}:{about}", limit):
        return False
    return not holder or not _counted.rates.hit(f"{kind}:{holder}", limit * CALLER_TIMES)


def _count(key: str, limit: int, subject: str) -> None:
    seconds = _counted.rates.hit(key, share(limit))
    if seconds:
        message = f"Over the limit of {limit} {subject} per minute"
        raise over_limit(message, max(1, math.ceil(seconds)))


@contextmanager
def occupy(incoming: Incoming) -> Iterator[None]:
    """Occupy one place of the concurrent calls inside the context.

    Raises ProtocolError (OVER_LIMIT) with `data.retryAfter` in seconds when all are taken.
    """
    limit = turns_away(incoming)
    if limit is not None:
        raise over_limit(f"Over the limit of {limit} calls at once", RETRY_CONCURRENT_SECONDS)
    with _counted.running.reserve([key for key, _ in _concurrent(incoming)]):
        yield


def turns_away(incoming: Incoming) -> int | None:
    """The limit of concurrent calls that is reached, if any. That it was is noted for `is_over`."""
    now = time.monotonic()
    for key, limit in _concurrent(incoming):
        if _counted.running[key] >= share(limit):
            for oldest in tuple(islice(_counted.turned_away, DROPPED_AT_ONCE)):
                if _counted.turned_away[oldest] > now - options().shed_share_seconds:
                    break
                del _counted.turned_away[oldest]
            _counted.turned_away.pop(key, None)
            _counted.turned_away[key] = now
            return limit
    return None


def is_over(incoming: Incoming) -> bool:
    """Whether the caller's or tenant's share of concurrent calls is over: all its places here are
    taken, and within MCPHOST_SHED_SHARE_SECONDS one more call was refused, or had to wait."""
    return any(
        _counted.running[key] >= share(limit) and _is_recent(_counted.turned_away.get(key))
        for key, limit in _concurrent(incoming)
    )


def shares_over() -> int:
    """How many shares have turned a call away within MCPHOST_SHED_SHARE_SECONDS. In any thread."""
    return sum(map(_is_recent, tuple(_counted.turned_away.values())))


def _is_recent(at: float | None) -> bool:
    return at is not None and at > time.monotonic() - options().shed_share_seconds


def share(limit: int) -> int:
    """This process's share of a limit."""
    return max(1, limit // live())


def _concurrent(incoming: Incoming) -> list[Limit]:
    return _set(incoming, incoming.tenant.concurrent_calls, incoming.quota.concurrent_calls)


def _set(incoming: Incoming, tenant: int | None, credential: int | None) -> list[Limit]:
    """The limits that apply. The credential's comes first: calls refused by it do not count for the
    tenant."""
    limits: list[Limit] = []
    if credential is not None and incoming.principal.token_id is not None:
        limits.append((f"token:{incoming.principal.token_id}", credential))
    if tenant is not None:
        limits.append((f"tenant:{incoming.tenant.id}", tenant))
    return limits
