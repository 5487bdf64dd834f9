"""Limit how many scripts are checked at once, and how often: each check starts a process."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Final

MAX_CONCURRENT: Final = 2
"""The most checks in a process. A tenant has one."""
MAX_WAITING: Final = 4
"""The most checks that wait for a slot. A tenant has one."""
MAX_PER_MINUTE: Final = 60
"""The most checks of a tenant in a minute."""
MINUTE: Final = 60.0


class ChecksBusyError(Exception):
    """A script cannot be checked now. The message says why."""


class CheckSlots:
    """Slots for checks, for all threads of a process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = Condition()
        self._running: set[str] = set()
        self._waiting_tenants: list[str] = []
        self._begun: dict[str, deque[float]] = {}
        self._has_rate = True

    @contextmanager
    def without_rate(self) -> Iterator[None]:
        """Let a command check as many scripts as its file has: its process serves no tenant."""
        self._has_rate = False
        try:
            yield
        finally:
            self._has_rate = True

    @property
    def waiting(self) -> int:
        """How many checks wait for a slot."""
        return len(self._waiting_tenants)

    @contextmanager
    def slot(self, tenant: str, wait_seconds: float = 0.0) -> Iterator[None]:
        """Hold a slot. Blocks at most `wait_seconds` for one. Raises ChecksBusyError."""
        with self._changed:
            self._wait(tenant, wait_seconds)
            self._count(tenant)
            self._running.add(tenant)
        try:
            yield
        finally:
            with self._changed:
                self._running.discard(tenant)
                self._changed.notify_all()

    def _wait(self, tenant: str, seconds: float) -> None:
        if self._is_next(tenant):
            return
        if (
            not seconds
            or tenant in self._waiting_tenants
            or len(self._waiting_tenants) >= MAX_WAITING
        ):
            raise ChecksBusyError("Other scripts are checked now.")
        self._waiting_tenants.append(tenant)
        try:
            if not self._changed.wait_for(lambda: self._is_next(tenant), seconds):
                raise ChecksBusyError("Other scripts are checked now.")
        finally:
            self._waiting_tenants.remove(tenant)
            self._changed.notify_all()

    def _is_next(self, tenant: str) -> bool:
        """Whether there is a slot for a tenant, and none that waits longer could have it."""
        if len(self._running) >= MAX_CONCURRENT or tenant in self._running:
            return False
        first = next(
            (waiter for waiter in self._waiting_tenants if waiter not in self._running), tenant
        )
        return first == tenant

    def _count(self, tenant: str) -> None:
        """Count a check that begins. Raises ChecksBusyError if it is one too many."""
        now = self._clock()
        self._begun = {key: times for key, times in self._begun.items() if times[-1] > now - MINUTE}
        times = self._begun.setdefault(tenant, deque(maxlen=MAX_PER_MINUTE))
        if self._has_rate and len(times) == MAX_PER_MINUTE and times[0] > now - MINUTE:
            raise ChecksBusyError(
                f"Of a tenant at most {MAX_PER_MINUTE} scripts are checked in a minute."
            )
        times.append(now)
