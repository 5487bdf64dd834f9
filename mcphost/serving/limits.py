"""How much a tenant or a credential may do at once and per minute. Unset is unlimited.

A limit is for all processes together. Each allows its share, rounded down so that together they
never allow more, but at least one: with more processes than the limit has calls, what all of them
allow is one each.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from mcphost.feed.nodes import live
from mcphost.protocol.errors import OVER_LIMIT, ProtocolError
from mcphost.serving.incoming import NO_QUOTA, Incoming

RETRY_CONCURRENT_SECONDS = 1
TOLD_PER_MINUTE = 60
REFUSALS_PER_MINUTE = 60
"""Of one session: whoever sends answers to nothing all the time fills the log, but not the record."""

Limit = tuple[str, int]
Key = bytes | str | int | float


class _PerMinute(RateLimitItemPerMinute):
    """Counted under the same key whatever the share is: it changes when processes come and go."""

    def key_for(self, *identifiers: Key) -> str:
        return "/".join(map(str, identifiers))


_running: Counter[str] = Counter()
_rates = MovingWindowRateLimiter(MemoryStorage())


def are_set(incoming: Incoming) -> bool:
    """Whether there is any limit to hold this call against."""
    tenant = incoming.tenant
    return incoming.quota != NO_QUOTA or not (
        tenant.calls_per_minute is None and tenant.concurrent_calls is None
    )


async def take_turn(incoming: Incoming) -> None:
    """Count one call against its per-minute limits.

    Raises ProtocolError (OVER_LIMIT) with `data.retryAfter` in seconds.
    """
    for key, limit in _per_minute(incoming):
        rate = _PerMinute(share(limit))
        if not await _rates.hit(rate, key):
            window = await _rates.get_window_stats(rate, key)
            seconds = max(1, math.ceil(window.reset_time - time.time()))
            message = f"Over the limit of {limit} calls per minute"
            raise ProtocolError(OVER_LIMIT, message, {"retryAfter": seconds})


async def place(incoming: Incoming) -> None:
    """Wait until there is a place among the concurrent calls, for one that has begun already."""
    while _full(incoming) is not None:  # noqa: ASYNC110 - nobody tells of a limit that was changed
        await asyncio.sleep(RETRY_CONCURRENT_SECONDS)


async def may_be_recorded(about: str) -> bool:
    """Whether there is still room in the record for what has come to nothing, this minute."""
    return await _rates.hit(_PerMinute(REFUSALS_PER_MINUTE), f"refused:{about}")


async def may_be_told(about: str) -> bool:
    """Whether the other processes may be told of something more that this one knows nothing of."""
    return await _rates.hit(_PerMinute(TOLD_PER_MINUTE), f"told:{about}")


@contextmanager
def occupy(incoming: Incoming) -> Iterator[None]:
    """Hold one place of the concurrent calls.

    Raises ProtocolError (OVER_LIMIT) with `data.retryAfter` in seconds when all are taken.
    """
    limit = _full(incoming)
    if limit is not None:
        message = f"Over the limit of {limit} calls at once"
        raise ProtocolError(OVER_LIMIT, message, {"retryAfter": RETRY_CONCURRENT_SECONDS})
    places = _concurrent(incoming)
    for key, _ in places:
        _running[key] += 1
    try:
        yield
    finally:
        for key, _ in places:
            _running[key] -= 1
            if not _running[key]:
                del _running[key]


def _full(incoming: Incoming) -> int | None:
    """The limit that allows no more calls at once now, if one does."""
    places = _concurrent(incoming)
    return next((limit for key, limit in places if _running[key] >= share(limit)), None)


def share(limit: int) -> int:
    """How much of a limit this process may allow."""
    return max(1, limit // live())


def _per_minute(incoming: Incoming) -> list[Limit]:
    return _set(incoming, incoming.tenant.calls_per_minute, incoming.quota.calls_per_minute)


def _concurrent(incoming: Incoming) -> list[Limit]:
    return _set(incoming, incoming.tenant.concurrent_calls, incoming.quota.concurrent_calls)


def _set(incoming: Incoming, tenant: int | None, credential: int | None) -> list[Limit]:
    """The credential's limit first: what that refuses is not taken out of what all may do."""
    limits: list[Limit] = []
    if credential is not None and incoming.principal.token_id is not None:
        limits.append((f"token:{incoming.principal.token_id}", credential))
    if tenant is not None:
        limits.append((f"tenant:{incoming.tenant.id}", tenant))
    return limits
