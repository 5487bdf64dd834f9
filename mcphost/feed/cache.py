"""A cache of database values, invalidated through the change log."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from threading import Lock
from typing import Generic, Literal, TypeVar

from django.db import connection

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Miss(Enum):
    """The result of a cache miss. None can be a cached value."""

    MISS = "miss"


MISS: Literal[Miss.MISS] = Miss.MISS


class Cache(Generic[K, V]):
    """A bounded, thread-safe cache. When it is full, the value put first is evicted.

    A value read from the database before a change, and put after the change was announced, would
    stay wrong for ever. So a reader takes `mark()` before it reads, and `put` stores the value only
    if nothing was forgotten since. A value read inside a transaction is not stored either: it may
    be rolled back, and the change log does not report that.

    The mark changes only after the values are removed: a reader with the new mark cannot get an old
    value. So anything derived from values is valid for as long as the mark stays.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._mark = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | Miss:
        """The value of `key`, or MISS. Takes no lock: it is on the path of every request."""
        return self._values.get(key, MISS)

    def mark(self) -> int:
        """The cache's current mark, to be taken before reading a value for `put`."""
        return self._mark

    def put(self, key: K, value: V, mark: int) -> None:
        """Store a value read after `mark` was taken, unless it may be outdated."""
        if connection.in_atomic_block:
            return
        with self._lock:
            if mark != self._mark:
                return
            self._values.pop(key, None)
            if len(self._values) >= self._limit:
                self._values.popitem(last=False)
            self._values[key] = value

    def forget(self, key: K) -> None:
        with self._lock:
            self._values.pop(key, None)
            self._mark += 1

    def forget_where(self, test: Callable[[V], bool]) -> None:
        with self._lock:
            self._values = OrderedDict(
                (key, value) for key, value in self._values.items() if not test(value)
            )
            self._mark += 1

    def clear(self) -> None:
        with self._lock:
            self._values = OrderedDict()
            self._mark += 1
