"""How much the calls of a caller may take up in this process, all that is under way together.

They go on when their clients hang up, and may wait for a day: without an end to it, somebody who calls
and hangs up again and again would fill the memory.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mcphost.protocol.errors import OVER_LIMIT, ProtocolError
from mcphost.serving.incoming import Incoming

MOST_CALLS: Final = 10_000
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of the requests that made them."""
TIMES: Final = 4
"""How much more a tenant may take up than one of its callers."""
RETRY_SECONDS: Final = 60

_calls: Counter[str] = Counter()
_bytes: Counter[str] = Counter()


@contextmanager
def taken(incoming: Incoming, *, anyway: bool = False) -> Iterator[None]:
    """While in here, the call takes up what it does. Raises ProtocolError (OVER_LIMIT) when there is
    no room, except for one that goes on `anyway`."""
    places = _places(incoming)
    if not anyway:
        _check(places)
    for place, _ in places:
        _calls[place] += 1
        _bytes[place] += incoming.size
    try:
        yield
    finally:
        for place, _ in places:
            _give_back(place, incoming.size)


def _places(incoming: Incoming) -> tuple[tuple[str, int], ...]:
    """Whose room it takes, and how many times what one caller may."""
    tenant = str(incoming.tenant.id)
    return (incoming.principal.token_id or f"{tenant} {incoming.source}", 1), (tenant, TIMES)


def _check(places: tuple[tuple[str, int], ...]) -> None:
    for place, times in places:
        if _calls[place] >= MOST_CALLS * times or _bytes[place] >= MOST_BYTES * times:
            message = "There is as much under way as there may be: answer it, or cancel it"
            raise ProtocolError(OVER_LIMIT, message, {"retryAfter": RETRY_SECONDS})


def _give_back(place: str, size: int) -> None:
    _calls[place] -= 1
    _bytes[place] -= size
    if not _calls[place]:
        del _calls[place], _bytes[place]
