"""A bounded cache that loads missing values: LRU eviction, one load per key at a time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, Literal, TypeVar

from mcphost.feed.cache import MISS, Miss

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FilledCache(Generic[K, V]):
    """A thread-safe cache. `load` runs without the lock held, and may take as long as it needs.

    A key that is dropped while it is being loaded is not stored by that load: a caller that comes
    after the drop starts a new load, which sees the change that caused the drop.
    """

    def __init__(self, load: Callable[[K], V], size: int) -> None:
        self._load, self._size = load, size
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._loading: dict[K, Future[V]] = {}
        self._lock = threading.Lock()

    def peek(self, key: K) -> V | Literal[Miss.MISS]:
        """Return the value if it is cached, else MISS; never loads it."""
        # Hash the key as rarely as possible: a UUID hashes in Python, at every tool call.
        with self._lock:
            cached = self._entries.get(key, MISS)
            if cached is not MISS:
                self._entries.move_to_end(key)
            return cached

    def get(self, key: K) -> V:
        """Return the value, loaded by this thread or by the one that is already loading it.

        Raises what `load` raises, in every thread that waited for it; a failure is not cached.
        """
        with self._lock:
            cached = self._entries.get(key, MISS)
            if cached is not MISS:
                self._entries.move_to_end(key)
                return cached
            flight = self._loading.get(key)
            if leading := flight is None:
                flight = self._loading[key] = Future()
        if leading:
            self._fill(key, flight)
        return flight.result()

    def drop(self, key: K) -> None:
        with self._lock:
            self._entries.pop(key, None)
            self._loading.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._loading.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def _fill(self, key: K, flight: Future[V]) -> None:
        try:
            value = self._load(key)
        except BaseException as error:  # noqa: BLE001 - passed on to every waiter, by result()
            with self._lock:
                self._settle(key, flight)
            flight.set_exception(error)
        else:
            with self._lock:
                if self._settle(key, flight):
                    self._entries[key] = value
                    if len(self._entries) > self._size:
                        self._entries.popitem(last=False)
            flight.set_result(value)

    def _settle(self, key: K, flight: Future[V]) -> bool:
        """End a load; return whether it is still the key's current one, not dropped meanwhile."""
        if self._loading.get(key) is not flight:
            return False
        del self._loading[key]
        return True
