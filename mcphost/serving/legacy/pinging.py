"""Asking clients of sessions whether they are there (spec: basic/utilities/ping).

Only where an operator wants it: comments keep connections open without an answer of anybody's. What
the client answers is not waited for; a client that is not there hangs up, or its connection does.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

PREFIX: Final = "ping-"
"""How the ids of our pings begin. Those of questions are sealed tokens, and begin in another way."""
BEGINNING: Final = b'{"jsonrpc":"2.0","id":"ping-'

Say = Callable[[bytes], None]


def is_answer(id: str | int) -> bool:
    """Whether a response with that id answers a ping of ours."""
    return str(id).startswith(PREFIX)


@contextmanager
def pinging(say: Say, seconds: float) -> Iterator[None]:
    """While in here, `say` a ping so often; never if that is 0. On the event loop."""
    if not seconds:
        yield
        return
    pings = _Pings(say, seconds)
    try:
        yield
    finally:
        pings.stop()


class _Pings:
    def __init__(self, say: Say, seconds: float) -> None:
        self._say = say
        self._seconds = seconds
        self._numbers = count(1)
        self._wait()

    def stop(self) -> None:
        self._timer.cancel()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._ping)

    def _ping(self) -> None:
        self._say(b'%s%d","method":"ping"}' % (BEGINNING, next(self._numbers)))
        self._wait()
