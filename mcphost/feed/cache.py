"""What a process remembers of the database until the feed says that it changed."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from threading import Lock
from typing import Generic, Literal, TypeVar

from django.db import connection

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Miss(Enum):
    """The answer of a cache that does not know; None is something that can be known."""

    MISS = "miss"


MISS: Literal[Miss.MISS] = Miss.MISS


class Cache(Generic[K, V]):
    """A bounded, thread-safe memory. When it is full, what was put first goes first.

    A value read from the database before a change, and put after the change was announced, would
    stay wrong for ever. So a reader takes `mark()` before it reads, and `put` keeps the value only
    if nothing was forgotten since. Nor is a value kept that was read inside a transaction: it may
    be rolled back, and no feed tells of that.

    The mark moves only once the values are gone: whoever takes the new mark cannot get an old value
    any more, so that what others derive from values holds for as long as the mark stays.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._mark = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | Miss:
        """What is remembered under `key`. Takes no lock: it is on the path of every request."""
        return self._values.get(key, MISS)

    def mark(self) -> int:
        """Where the cache stands, to be taken before reading what will be put."""
        return self._mark

    def put(self, key: K, value: V, mark: int) -> None:
        """Remember what was read after `mark` was taken, if it can still be true."""
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
