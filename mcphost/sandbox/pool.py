"""The workers of this process: a bounded number, each for one tenant only."""

import asyncio
import hashlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from mcphost.observability import counters
from mcphost.sandbox.check_slots import CheckSlots
from mcphost.sandbox.confinement import ADDRESS_SPACE, CPU_SECONDS, NICE, OPEN_FILES
from mcphost.sandbox.frames import BrokenFrameError
from mcphost.sandbox.processes import SandboxWorker, WorkerLostError, ended_as
from mcphost.sandbox.turns import QueueFullError, TenantTurns

RESERVE: Final = 8
"""Workers beyond the usual ones, for tenants that use none when those are all in use."""
MAX_JOBS: Final = 1000
MAX_BUSY_SECONDS: Final = 60.0
"""After this a worker is replaced. Its limit of CPU time is twice as high."""
WAIT_SECONDS: Final = 5.0
SEARCH_SECONDS: Final = 1.0
CHECK_SECONDS: Final = 20.0
MAX_PROBLEMS: Final = 100
"""The most problems of a script that are reported."""
MAX_SOUND: Final = 10_000
"""How many scripts without problems are remembered, so that they are not checked again."""
CHECK_LIMITS: Final[Mapping[str, Any]] = {
    "max_feed_duration_secs": 5.0,
    "max_memory": 64 * 1024 * 1024,
    "max_recursion_depth": 200,
    "max_suspensions": 100,
    "max_total_sleep_secs": 1.0,
}
LIMITS_OF_A_WORKER: Final[Mapping[str, Any]] = {
    "address_space_bytes": ADDRESS_SPACE,
    "cpu_seconds": CPU_SECONDS,
    "open_files": OPEN_FILES,
    "nice": NICE,
    "jobs": MAX_JOBS,
}

log = logging.getLogger(__name__)


class SandboxFullError(Exception):
    """No worker became free in time, or too many jobs wait. `of_tenant`: the tenant uses its share."""

    def __init__(self, *, of_tenant: bool) -> None:
        self.of_tenant = of_tenant
        workers = "all workers of the tenant" if of_tenant else "all workers"
        super().__init__(f"{workers} are in use")


class SearchFailedError(Exception):
    """A JMESPath expression has no value: it is wrong, or takes too much. The message says which."""


@dataclass(eq=False, slots=True)
class _Waiter:
    tenant: str
    grant: "Future[SandboxWorker | int]" = field(default_factory=Future)


class Sandbox:
    """A pool of workers. Safe to use from several event loops and threads.

    At most `max_workers` workers live at once, and tenants share them fairly (`TenantTurns`). While they are
    all in use, `reserve` further ones serve tenants that use none. A worker that has
    served a tenant serves no other. One worker that has served no tenant is kept ready, where there
    is room for it.
    """

    def __init__(
        self, max_workers: int = 4, *, reserve: int = RESERVE, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._max_workers = max_workers
        self._all = max_workers + reserve
        self._wait_seconds = wait_seconds
        self._lock = Lock()
        self._slots = set(range(self._all))
        self._idle: list[SandboxWorker] = []
        self._turns = TenantTurns[_Waiter](max_workers, reserve)
        self.check_slots: Final = CheckSlots()
        self._sound = OrderedDict[bytes, None]()
        self._dying: list[SandboxWorker] = []
        self._starter = ThreadPoolExecutor(2, "sandbox")
        self._status: dict[str, Any] = {}
        self._killed: Counter[str] = Counter()

    @property
    def status(self) -> Mapping[str, Any]:
        """How workers are confined, as the latest of them reported; empty before the first."""
        return self._status

    @property
    def max_workers(self) -> int:
        """How many workers live at once, at most, while no tenant needs one of the reserve."""
        return self._max_workers

    @property
    def idle(self) -> int:
        """How many workers wait for a job."""
        return len(self._idle)

    @property
    def in_use(self) -> int:
        """How many workers have a job, or are being started for one."""
        return self._turns.in_use.total()

    @property
    def waiting(self) -> int:
        """How many jobs wait for a worker."""
        return self._turns.waiting

    def facts(self) -> Mapping[str, Any]:
        """How workers are confined, and their limits, as JSON; empty before the first has started."""
        return {**self._status, "limits": LIMITS_OF_A_WORKER} if self._status else {}

    @property
    def killed(self) -> Mapping[str, int]:
        """How many workers were killed, by reason (`labels.SANDBOX_KILLS`)."""
        return dict(self._killed)

    @asynccontextmanager
    async def worker(self, tenant: str, job: str = "script") -> AsyncIterator[SandboxWorker]:
        """Lend a worker. It is killed at the end unless its job left it reusable. `job` is what it is
        for, for the metrics.

        Raises SandboxFullError, WorkerLostError.
        """
        began = time.monotonic()
        try:
            worker = await self._acquire(tenant)
        except SandboxFullError:
            counters.sandbox_jobs.add(job, "full")
            raise
        finally:
            counters.sandbox_wait_seconds.observe(time.monotonic() - began)
        try:
            yield worker
        finally:
            self._give_back(worker)

    async def search(self, tenant: str, expression: str, data: Any) -> Any:
        """Evaluate a JMESPath expression on JSON, within a second. Raises SandboxFullError, SearchFailedError."""
        try:
            async with self.worker(tenant, "search") as worker:
                await worker.begin({"do": "search", "expression": expression, "data": data})
                reply = await worker.receive(SEARCH_SECONDS)
        except BrokenFrameError:
            raise SearchFailedError("the data is too large") from None
        except WorkerLostError as lost:
            text = "the expression takes too long" if lost.late else "the expression was stopped"
            raise SearchFailedError(text) from None
        if reply["is"] != "done":
            raise SearchFailedError(str(reply.get("message") or reply["why"]))
        return reply["value"]

    def check(
        self, tenant: str, source: str, stubs: str, wait_seconds: float = 0.0
    ) -> list[dict[str, Any]]:
        """Return the problems of a script: `line`, `column` and `message` each. Blocks.

        In a worker of its own, which is killed afterwards. Waits at most `wait_seconds` for a slot.
        Raises ChecksBusyError, WorkerLostError. A script of the tenant that had no problems is not
        checked again: a file is inspected when it is planned, and again when it is applied.
        """
        digest = hashlib.sha256("\0".join((tenant, stubs, source)).encode()).digest()
        if digest in self._sound:
            return []
        problems = self._check_in_worker(tenant, source, stubs, wait_seconds)
        if not problems:
            with self._lock:
                self._sound[digest] = None
                if len(self._sound) > MAX_SOUND:
                    self._sound.popitem(last=False)
        return problems

    def _check_in_worker(
        self, tenant: str, source: str, stubs: str, wait_seconds: float
    ) -> list[dict[str, Any]]:
        with self.check_slots.slot(tenant, wait_seconds):
            worker = SandboxWorker(self._max_workers)
            self._note_status(worker)
            try:
                job = {"do": "check", "source": source, "stubs": stubs}
                limits = {"limits": dict(CHECK_LIMITS), "most": MAX_PROBLEMS}
                reply = worker.ask_here(job | limits, CHECK_SECONDS)
                counters.sandbox_jobs.add("check", ended_as(reply))
            except WorkerLostError as lost:
                counters.sandbox_jobs.add("check", "late" if lost.late else "lost")
                raise
            finally:
                with self._lock:
                    self._kill(worker, "check")
                worker.wait()
        if reply["is"] != "done":
            raise WorkerLostError(str(reply.get("message") or reply["why"]))
        problems: list[dict[str, Any]] = reply["value"]
        return problems[:MAX_PROBLEMS]

    def close(self) -> None:
        """Kill the idle workers. Those in use are killed when they are given back."""
        self._starter.shutdown(wait=True)
        with self._lock:
            self._max_workers = 0
            while self._idle:
                self._bury(self._idle.pop(), "closed")
            for worker in self._dying:
                worker.wait()
            self._dying.clear()

    async def _acquire(self, tenant: str) -> SandboxWorker:
        waiter = _Waiter(tenant)
        with self._lock:
            try:
                self._turns.join(tenant, waiter)
            except QueueFullError:
                raise SandboxFullError(of_tenant=self._turns.has_its_share(tenant)) from None
            self._grant()
        try:
            async with asyncio.timeout(self._wait_seconds):
                granted = await asyncio.wrap_future(waiter.grant)
        except BaseException as error:
            self._withdraw(waiter)
            if isinstance(error, TimeoutError):
                raise SandboxFullError(of_tenant=self._turns.has_its_share(tenant)) from None
            raise
        if isinstance(granted, SandboxWorker):
            self._keep_one_ready()
            return granted
        return await self._start_for(tenant, granted)

    async def _start_for(self, tenant: str, slot: int) -> SandboxWorker:
        starting = self._starter.submit(self._start, slot)
        try:
            worker = await asyncio.wrap_future(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda done: self._unclaimed(tenant, slot, done))
            raise
        except Exception:
            self._free(tenant, slot)
            raise
        worker.tenant = tenant
        self._keep_one_ready()
        return worker

    def _start(self, slot: int) -> SandboxWorker:
        worker = SandboxWorker(slot)
        self._note_status(worker)
        return worker

    def _note_status(self, worker: SandboxWorker) -> None:
        if self._status != worker.status:
            log.info("sandbox workers: %s", worker.status)
            self._status = worker.status

    def _unclaimed(self, tenant: str, slot: int, done: "Future[SandboxWorker]") -> None:
        """End a worker that was started for a call which was cancelled meanwhile."""
        if not done.cancelled() and done.exception() is None:
            worker = done.result()
            worker.tenant = tenant
            self._kill(worker, "cancelled")
            self._give_back(worker)
        else:
            self._free(tenant, slot)

    def _free(self, tenant: str, slot: int) -> None:
        with self._lock:
            self._slots.add(slot)
            self._turns.end(tenant)
            self._grant()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Take back what was granted to a caller that no longer waits."""
        with self._lock:
            if self._turns.withdraw(waiter.tenant, waiter):
                return
        granted = None if waiter.grant.cancelled() else waiter.grant.result()
        if isinstance(granted, SandboxWorker):
            self._give_back(granted)
        elif granted is not None:
            self._free(waiter.tenant, granted)

    def _give_back(self, worker: SandboxWorker) -> None:
        fresh = worker.jobs < MAX_JOBS and worker.busy_seconds < MAX_BUSY_SECONDS
        fresh = fresh and not worker.is_demoted
        with self._lock:
            self._turns.end(worker.tenant)
            if worker.reusable and fresh and self._max_workers:
                self._idle.append(worker)
            else:
                self._bury(worker, self._reason(worker))
            job, outcome = worker.take_outcome()
            if outcome:
                counters.sandbox_jobs.add(job, outcome)
            self._grant()
            # The reserve ends once it is not needed.
            while self._idle and self._lives() > self._limit():
                self._bury(self._idle.pop(0), "tenant")
        with self._lock:  # `is_gone` reaps those that have ended
            self._dying = [dying for dying in self._dying if not dying.is_gone]

    def _lives(self) -> int:
        return self._all - len(self._slots)

    def _limit(self) -> int:
        """Return how many workers may live now."""
        return self._max_workers if self._turns.in_use.total() < self._max_workers else self._all

    def _reason(self, worker: SandboxWorker) -> str:
        """Return why a worker that is given back is killed."""
        if not self._max_workers:
            return "closed"
        if worker.reusable:
            return "worn"
        return worker.outcome if worker.outcome in ("late", "lost", "cancelled") else "unclean"

    def _grant(self) -> None:
        """Give workers, or slots for new ones, to those who wait. Under the lock."""
        while (tenant := self._turns.next()) is not None:
            worker_or_slot = self._take_worker_or_slot(tenant)
            if worker_or_slot is None:
                return
            waiter = self._turns.begin(tenant)
            if not waiter.grant.set_running_or_notify_cancel():
                self._turns.end(tenant)
                if isinstance(worker_or_slot, SandboxWorker):
                    self._idle.append(worker_or_slot)
                else:
                    self._slots.add(worker_or_slot)
                continue
            waiter.grant.set_result(worker_or_slot)

    def _take_worker_or_slot(self, tenant: str) -> SandboxWorker | int | None:
        """Return an idle worker of the tenant, or one of no tenant, or a slot for a new one."""
        for owner in (tenant, ""):
            for worker in reversed(self._idle):
                if worker.tenant == owner:
                    self._idle.remove(worker)
                    worker.tenant = tenant
                    if not worker.is_gone:
                        return worker
                    self._bury(worker, "lost")
        if self._idle and self._lives() >= self._limit():
            self._bury(self._idle.pop(0), "tenant")
        return self._slots.pop() if self._slots else None

    def _keep_one_ready(self) -> None:
        with self._lock:
            if any(not worker.tenant for worker in self._idle):
                return
            if self._lives() + 2 > self._limit():
                return
            slot = self._slots.pop()
        try:
            self._starter.submit(self._start, slot).add_done_callback(
                lambda done: self._ready(slot, done)
            )
        except RuntimeError:  # it was closed meanwhile
            self._slots.add(slot)

    def _ready(self, slot: int, done: "Future[SandboxWorker]") -> None:
        with self._lock:
            if done.cancelled() or done.exception() is not None:
                self._slots.add(slot)
            elif self._max_workers:
                self._idle.append(done.result())
            else:
                self._bury(done.result(), "closed")
            self._grant()

    def _kill(self, worker: SandboxWorker, reason: str) -> None:
        if not worker.is_killed:
            self._killed[reason] += 1
            counters.sandbox_workers_killed.add(reason)
        worker.kill()

    def _bury(self, worker: SandboxWorker, reason: str) -> None:
        self._kill(worker, reason)
        self._slots.add(worker.slot)
        self._dying.append(worker)
