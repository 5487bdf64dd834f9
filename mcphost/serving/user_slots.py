"""Limit how many expensive requests of users run at once in this process: imports and trials.

A user has one. Of all places the users of a tenant leave one to other tenants.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from threading import Lock
from typing import Final

MAX_IMPORTS: Final = 2
"""The most imports in a process: each has a process of its own. A tenant has one."""
MAX_TRIALS: Final = 4
"""The most trials in a process: each occupies a thread of Django's. Of a tenant one less."""


class Busy(Enum):
    """Why there is no place: the user has one, the tenant has its share, or all are taken."""

    USER = auto()
    TENANT = auto()
    ALL = auto()


class UserSlots:
    """Counts what users have under way in this process; `most` in all, which is at least 2."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._busy: dict[int, Hashable] = {}
        self._lock = Lock()

    @contextmanager
    def of(self, user: int, tenant: Hashable) -> Iterator[Busy | None]:
        """Count a user's request in a tenant; yield why not, if there is no place."""
        with self._lock:
            busy = self._refusal(user, tenant)
            if busy is None:
                self._busy[user] = tenant
        try:
            yield busy
        finally:
            if busy is None:
                with self._lock:
                    del self._busy[user]

    def _refusal(self, user: int, tenant: Hashable) -> Busy | None:
        if user in self._busy:
            return Busy.USER
        if len(self._busy) >= self._limit:
            return Busy.ALL
        of_tenant = sum(busy_tenant == tenant for busy_tenant in self._busy.values())
        return Busy.TENANT if of_tenant >= self._limit - 1 else None


IMPORTS: Final = UserSlots(MAX_IMPORTS)
TRIALS: Final = UserSlots(MAX_TRIALS)
