"""How many requests of a page that does much may run at once: one of each user, and few in all."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class UserSlots:
    """Counts what users have under way in this process; `most` in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._busy: set[int] = set()
        self._lock = Lock()

    @contextmanager
    def of(self, user: int) -> Iterator[bool]:
        """Count a user's request; False if one is under way, or too many of others are."""
        with self._lock:
            admitted = user not in self._busy and len(self._busy) < self._most
            if admitted:
                self._busy.add(user)
        try:
            yield admitted
        finally:
            if admitted:
                with self._lock:
                    self._busy.discard(user)
