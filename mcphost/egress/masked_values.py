"""Which values a request must mask in its response. The masking runs on the event loop if it is
little work, else in a thread.

The threats:

- A tenant chooses how many secrets a host has and how long they are, and its service chooses the content
  that is searched for them. To prepare a mask for a hundred of the largest takes half a second, in which
  no other tenant must wait: so not on the event loop, and in one thread of a tenant at a time.
- A caller who sees a length, a validator or a digest of the bytes before they were masked tests guesses of
  the secret with it. So such headers are left out.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from mcphost.egress.masking import Mask

PREPARED_AT_ONCE: Final = 2 * 1024
"""Characters of values whose mask is built on the event loop."""
MASKED_AT_ONCE: Final = 16 * 1024
"""Bytes, times the values that they are searched for, on the event loop."""
PER_TEXT: Final = 64
"""Bytes that a search of a short text costs as much as."""

_COMPUTED: Final = re.compile(
    r"(^|[-_])(length|e-?tag|digest|checksum|hash|signature|encoding|range"
    r"|(content|body|file|object|response)-size|md5|(sha|crc|blake|xxh)[0-9][0-9a-z]*)($|[-_])"
)
"""Names of headers that a service computes of the bytes of a response, before secrets are masked in it:
lengths, also of the compressed bytes, validators, digests, and how it is encoded."""

Headers = tuple[tuple[str, str], ...]

T = TypeVar("T")


def without_computed(headers: Headers) -> Headers:
    """Return the headers, names in lower case, without those that tell about what is masked."""
    return tuple(header for header in headers if not _COMPUTED.search(header[0]))


class Hidden:
    """The values that one request must not show. Their mask is built when it is first needed."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._characters = 0
        self._mask: Mask | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._values)

    def add(self, values: Iterable[str]) -> None:
        new = set(values) - self._values
        if new:
            self._values |= new
            self._characters += sum(map(len, new))
            self._mask = None

    def is_little(self, size: int) -> bool:
        """Whether a content of `size` bytes is masked in a few milliseconds."""
        work = size * len(self._values)
        return self._characters <= PREPARED_AT_ONCE and work <= MASKED_AT_ONCE

    def mask(self) -> Mask:
        if self._mask is None:
            self._mask = Mask(self._values)
        return self._mask


class Masking:
    """Masks what one tenant's requests bring. A tenant takes one of the threads at a time."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._turn = asyncio.Semaphore()

    @property
    def is_busy(self) -> bool:
        return self._turn.locked()

    async def masked(
        self, content: T, size: int, hidden: Hidden, remove: Callable[[Mask, T], T]
    ) -> T:
        """Return a content of `size` bytes without what is hidden; `remove` takes it out."""
        if not hidden:
            return content
        if hidden.is_little(size):
            return remove(hidden.mask(), content)
        return await self._in_turn(lambda: remove(hidden.mask(), content))

    async def _in_turn(self, job: Callable[[], T]) -> T:
        """Run a job in a thread. The turn ends when the job does: a call that times out meanwhile
        does not stop it."""
        await self._turn.acquire()
        loop = asyncio.get_running_loop()

        def ended(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._turn.release)

        try:
            future = self._threads.submit(job)
        except RuntimeError:  # they are shut down
            self._turn.release()
            raise
        future.add_done_callback(ended)
        return await asyncio.wrap_future(future)
