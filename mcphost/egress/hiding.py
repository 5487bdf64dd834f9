"""What a request must not show, and where that is masked: on the event loop if it is little work, else
in a thread.

A tenant chooses how many secrets a host has and how long they are, and its service chooses the content
that is searched for them. To prepare a mask for a hundred of the largest takes half a second.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from mcphost.egress.masking import Mask

PREPARED_AT_ONCE: Final = 2 * 1024
"""Characters of values whose mask is built on the event loop."""
MASKED_AT_ONCE: Final = 16 * 1024
"""Bytes that are searched for secrets on the event loop."""

T = TypeVar("T")


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
        return self._characters <= PREPARED_AT_ONCE and size <= MASKED_AT_ONCE

    def mask(self) -> Mask:
        if self._mask is None:
            self._mask = Mask(self._values)
        return self._mask


class Masking:
    """Masks what one tenant's requests bring."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def masked(
        self, content: T, size: int, hidden: Hidden, remove: Callable[[Mask, T], T]
    ) -> T:
        """Return a content of `size` bytes without what is hidden; `remove` takes it out."""
        if hidden.is_little(size):
            return remove(hidden.mask(), content)
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: remove(hidden.mask(), content)
        )
