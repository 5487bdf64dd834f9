"""The workers of this process: a bounded number, each for one tenant only."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from mcphost.sandbox.frames import BrokenFrame
from mcphost.sandbox.processes import SandboxWorker, WorkerLost

MOST_JOBS: Final = 200
MOST_BUSY_SECONDS: Final = 60.0
"""After this a worker is replaced. Its limit of CPU time is twice as high."""
WAIT_SECONDS: Final = 5.0
SEARCH_SECONDS: Final = 1.0
CHECK_SECONDS: Final = 20.0
CHECK_LIMITS: Final[Mapping[str, Any]] = {
    "max_feed_duration_secs": 5.0,
    "max_memory": 64 * 1024 * 1024,
    "max_recursion_depth": 200,
    "max_suspensions": 100,
    "max_total_sleep_secs": 1.0,
}

log = logging.getLogger(__name__)


class SandboxFull(Exception):  # noqa: N818 - a refusal that says what happened
    """No worker became free in time."""


class SearchFailed(Exception):  # noqa: N818 - a refusal that says what happened
    """A JMESPath expression has no value: it is wrong, or takes too much. The message says which."""


@dataclass(eq=False, slots=True)
class _Waiter:
    tenant: str
    grant: "Future[SandboxWorker | int]" = field(default_factory=Future)


class Sandbox:
    """A pool of workers. Safe to use from several event loops and threads.

    At most `most` workers live at once, and one tenant uses at most half of them. A worker that has
    served a tenant serves no other. One worker that has served no tenant is kept ready, where there
    is room for it.
    """

    def __init__(self, most: int = 4, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._most = most
        self._per_tenant = max(1, most // 2)
        self._wait_seconds = wait_seconds
        self._lock = Lock()
        self._places = set(range(most))
        self._idle: list[SandboxWorker] = []
        self._in_use: Counter[str] = Counter()
        self._waiters: list[_Waiter] = []
        self._dying: list[SandboxWorker] = []
        self._starter = ThreadPoolExecutor(2, "sandbox")
        self._status: dict[str, Any] = {}

    @property
    def status(self) -> Mapping[str, Any]:
        """How workers are confined, as the latest of them reported; empty before the first."""
        return self._status

    @property
    def most(self) -> int:
        """How many workers live at once, at most."""
        return self._most

    @property
    def idle(self) -> int:
        """How many workers wait for a job."""
        return len(self._idle)

    @property
    def in_use(self) -> int:
        """How many workers have a job, or are being started for one."""
        return self._in_use.total()

    @asynccontextmanager
    async def worker(self, tenant: str) -> AsyncIterator[SandboxWorker]:
        """Lend a worker. It is killed at the end unless its job left it reusable.

        Raises SandboxFull, WorkerLost.
        """
        worker = await self._acquire(tenant)
        try:
            yield worker
        finally:
            self._give_back(worker)

    async def search(self, tenant: str, expression: str, data: Any) -> Any:
        """Evaluate a JMESPath expression on JSON, within a second. Raises SandboxFull, SearchFailed."""
        try:
            async with self.worker(tenant) as worker:
                await worker.begin({"do": "search", "expression": expression, "data": data})
                found = await worker.receive(SEARCH_SECONDS)
        except BrokenFrame:
            raise SearchFailed("the data is too large") from None
        except WorkerLost as lost:
            text = "the expression takes too long" if lost.late else "the expression was stopped"
            raise SearchFailed(text) from None
        if found["is"] != "done":
            raise SearchFailed(str(found.get("message") or found["why"]))
        return found["value"]

    def check(self, source: str, stubs: str) -> list[dict[str, Any]]:
        """Return the problems of a script: `line`, `column` and `message` each. Blocks.

        In a worker of its own, which is killed afterwards. Raises WorkerLost.
        """
        worker = SandboxWorker(self._most)
        try:
            job = {"do": "check", "source": source, "stubs": stubs, "limits": dict(CHECK_LIMITS)}
            found = worker.ask_here(job, CHECK_SECONDS)
        finally:
            worker.kill()
            worker.wait()
        if found["is"] != "done":
            raise WorkerLost(str(found.get("message") or found["why"]))
        problems: list[dict[str, Any]] = found["value"]
        return problems

    def close(self) -> None:
        """Kill the idle workers. Those in use are killed when they are given back."""
        self._starter.shutdown(wait=True)
        with self._lock:
            self._most = 0
            while self._idle:
                self._bury(self._idle.pop())
            for worker in self._dying:
                worker.wait()
            self._dying.clear()

    async def _acquire(self, tenant: str) -> SandboxWorker:
        waiter = _Waiter(tenant)
        with self._lock:
            self._waiters.append(waiter)
            self._grant()
        try:
            async with asyncio.timeout(self._wait_seconds):
                granted = await asyncio.wrap_future(waiter.grant)
        except BaseException as error:
            self._withdraw(waiter)
            if isinstance(error, TimeoutError):
                raise SandboxFull("all workers are in use") from None
            raise
        if isinstance(granted, SandboxWorker):
            self._keep_one_ready()
            return granted
        return await self._start_for(tenant, granted)

    async def _start_for(self, tenant: str, place: int) -> SandboxWorker:
        starting = self._starter.submit(self._start, place)
        try:
            worker = await asyncio.wrap_future(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda done: self._unclaimed(tenant, place, done))
            raise
        except Exception:
            self._free(tenant, place)
            raise
        worker.tenant = tenant
        self._keep_one_ready()
        return worker

    def _start(self, place: int) -> SandboxWorker:
        worker = SandboxWorker(place)
        if self._status != worker.status:
            log.info("sandbox workers: %s", worker.status)
            self._status = worker.status
        return worker

    def _unclaimed(self, tenant: str, place: int, done: "Future[SandboxWorker]") -> None:
        """End a worker that was started for a call which was cancelled meanwhile."""
        if not done.cancelled() and done.exception() is None:
            worker = done.result()
            worker.tenant = tenant
            worker.kill()
            self._give_back(worker)
        else:
            self._free(tenant, place)

    def _free(self, tenant: str, place: int) -> None:
        with self._lock:
            self._places.add(place)
            self._leave(tenant)
            self._grant()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Take back what was granted to a caller that no longer waits."""
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
                return
        granted = None if waiter.grant.cancelled() else waiter.grant.result()
        if isinstance(granted, SandboxWorker):
            self._give_back(granted)
        elif granted is not None:
            self._free(waiter.tenant, granted)

    def _give_back(self, worker: SandboxWorker) -> None:
        fresh = worker.jobs < MOST_JOBS and worker.busy_seconds < MOST_BUSY_SECONDS
        with self._lock:
            self._leave(worker.tenant)
            if worker.reusable and fresh and self._most:
                self._idle.append(worker)
            else:
                self._bury(worker)
            self._grant()
        self._reap()

    def _leave(self, tenant: str) -> None:
        self._in_use[tenant] -= 1
        if not self._in_use[tenant]:
            del self._in_use[tenant]

    def _grant(self) -> None:
        """Give workers, or places for new ones, to those who wait. Under the lock."""
        for waiter in list(self._waiters):
            if self._in_use[waiter.tenant] >= self._per_tenant:
                continue
            found = self._found(waiter.tenant)
            if found is None:
                return
            self._waiters.remove(waiter)
            self._in_use[waiter.tenant] += 1
            if not waiter.grant.set_running_or_notify_cancel():
                self._return(waiter.tenant, found)
                continue
            waiter.grant.set_result(found)

    def _return(self, tenant: str, found: SandboxWorker | int) -> None:
        self._leave(tenant)
        if isinstance(found, SandboxWorker):
            self._idle.append(found)
        else:
            self._places.add(found)

    def _found(self, tenant: str) -> SandboxWorker | int | None:
        """Return an idle worker of the tenant, or one of no tenant, or a place for a new one."""
        for wanted in (tenant, ""):
            for worker in reversed(self._idle):
                if worker.tenant == wanted:
                    self._idle.remove(worker)
                    worker.tenant = tenant
                    if not worker.is_gone:
                        return worker
                    self._bury(worker)
        if not self._places and self._idle:
            self._bury(self._idle.pop(0))
        return self._places.pop() if self._places else None

    def _keep_one_ready(self) -> None:
        with self._lock:
            if any(not worker.tenant for worker in self._idle) or len(self._places) < 2:
                return
            place = self._places.pop()
        try:
            self._starter.submit(self._start, place).add_done_callback(
                lambda done: self._ready(place, done)
            )
        except RuntimeError:  # it was closed meanwhile
            self._places.add(place)

    def _ready(self, place: int, done: "Future[SandboxWorker]") -> None:
        with self._lock:
            if done.cancelled() or done.exception() is not None:
                self._places.add(place)
            elif self._most:
                self._idle.append(done.result())
            else:
                self._bury(done.result())
            self._grant()

    def _bury(self, worker: SandboxWorker) -> None:
        worker.kill()
        self._places.add(worker.place)
        self._dying.append(worker)

    def _reap(self) -> None:
        """Reap killed processes, so that no zombie is left."""
        with self._lock:
            self._dying = [one for one in self._dying if not one.is_gone]
