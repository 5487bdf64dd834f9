"""Which tenant's job is next when there are more jobs than workers."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

MAX_WAITING: Final = 1024
MAX_WAITING_PER_TENANT: Final = 128

W = TypeVar("W")


class QueueFullError(Exception):
    """Too many jobs wait: of the tenant, or of all."""


@dataclass
class TenantTurns(Generic[W]):
    """Who waits for one of `max_workers` workers, and how many each tenant uses. Not thread-safe.

    The tenant that uses the fewest workers is next; among equals tenants take turns, however many
    jobs of each wait. A tenant uses at most half of the workers, and the last free one goes only to
    a tenant that uses none. When all are in use, such a tenant gets one of `reserve` further ones.
    """

    max_workers: int
    reserve: int = 0
    in_use: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, deque[W]] = field(default_factory=dict)
    """In the order of their turns."""

    @property
    def per_tenant(self) -> int:
        return max(1, self.max_workers // 2)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def join(self, tenant: str, waiter: W) -> None:
        """Put a waiter at the end of its tenant's queue. Raises QueueFullError."""
        queue = self._waiting.setdefault(tenant, deque())
        if len(queue) >= MAX_WAITING_PER_TENANT:
            raise QueueFullError
        if self.waiting >= MAX_WAITING:
            if not queue:
                del self._waiting[tenant]
            raise QueueFullError
        queue.append(waiter)

    def withdraw(self, tenant: str, waiter: W) -> bool:
        """Remove a waiter; False if it does not wait any more."""
        queue = self._waiting.get(tenant, deque())
        if waiter not in queue:
            return False
        queue.remove(waiter)
        if not queue:
            del self._waiting[tenant]
        return True

    def next(self) -> str | None:
        """Return the tenant whose turn it is; None if no waiter may have a worker."""
        free = self.max_workers - self.in_use.total()
        may = [tenant for tenant in self._waiting if self._may(tenant, free)]
        return min(may, key=lambda tenant: self.in_use[tenant]) if may else None

    def begin(self, tenant: str) -> W:
        """Count a worker for a tenant, and return its first waiter, which waits no more."""
        queue = self._waiting.pop(tenant)
        first = queue.popleft()
        if queue:
            self._waiting[tenant] = queue  # behind all others
        self.in_use[tenant] += 1
        return first

    def end(self, tenant: str) -> None:
        """Count one worker less for a tenant."""
        self.in_use[tenant] -= 1
        if not self.in_use[tenant]:
            del self.in_use[tenant]

    def has_its_share(self, tenant: str) -> bool:
        """Whether a tenant uses all the workers that it may."""
        return self.in_use[tenant] >= self.per_tenant

    def _may(self, tenant: str, free: int) -> bool:
        if self.has_its_share(tenant):
            return False
        return free > 1 or (free > -self.reserve and not self.in_use[tenant])
