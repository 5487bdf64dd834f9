"""Daemon threads for tools that block: reused, limited per owner; results go back to the event loop.

`ThreadPoolExecutor` is not suitable: its queue is unbounded, it carries no context variables, and
it makes the interpreter wait at exit for a function that never returns.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Future
from collections import Counter
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")

MAX_IDLE = 32

log = logging.getLogger(__name__)


class PoolExhaustedError(Exception):
    """The owner or the tool already uses all its threads, including lost ones."""


@dataclass(eq=False, slots=True)
class _Job:
    """One function to run in a thread. `lost` and `over` change under the pool's lock."""

    function: Callable[[], Any]
    shares: tuple[str, ...]
    result: "Future[tuple[Any, BaseException | None]]"
    loop: AbstractEventLoop
    context: Context = field(default_factory=copy_context)
    lost: bool = False
    over: bool = False

    def run(self) -> tuple[Any, BaseException | None]:
        try:
            return self.context.run(self.function), None
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            return None, error

    def deliver(self, outcome: tuple[Any, BaseException | None]) -> None:
        try:
            self.loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:
            log.info("the loop of a tool's thread is closed; its result is dropped")

    def _settle(self, outcome: tuple[Any, BaseException | None]) -> None:
        if not self.result.done():
            self.result.set_result(outcome)


class ToolThreads:
    """Implements `ports.Threads`. One per process; safe to use from several event loops.

    `per_owner` limits the threads that one owner (a tenant) uses, `per_tool` those of one tool of
    one owner, unless `run` gets another `cap`. A thread whose caller was cancelled cannot be
    stopped: it is lost, counts against its owner until its function returns, and is not used again.
    """

    def __init__(self, per_owner: int, per_tool: int | None = None) -> None:
        self._per_owner = per_owner
        self._per_tool = per_tool
        self._lock = Lock()
        self._used: Counter[str] = Counter()
        self._idle: list[SimpleQueue[_Job]] = []
        self._lost = 0
        self._busy = 0
        self._numbers = count(1)

    @property
    def lost(self) -> int:
        """How many threads still run although their call was cancelled."""
        return self._lost

    @property
    def busy(self) -> int:
        """How many threads run a function, including lost ones."""
        return self._busy

    @property
    def idle(self) -> int:
        """How many threads wait for work."""
        return len(self._idle)

    def in_use(self, owner: str) -> int:
        """How many threads `owner` uses, including lost ones."""
        return self._used[owner]

    async def run(
        self, owner: str, function: Callable[[], T], *, tool: str = "", cap: int | None = None
    ) -> T:
        """Run `function` in a thread, with the caller's context variables, and return its result.

        The thread counts against `owner`, and against `tool` of that owner up to `cap`. Raises
        PoolExhaustedError at once when either has no thread left, and whatever `function` raises. If the
        caller is cancelled, or woken with another error, the thread counts as lost until its
        function ends.
        """
        limits = {owner: self._per_owner}
        if tool and (limit := self._per_tool if cap is None else cap) is not None:
            limits[f"{owner}\0{tool}"] = limit
        with self._lock:
            for share, limit in limits.items():
                if self._used[share] >= limit:
                    raise PoolExhaustedError(f"all {limit} threads are in use")
            self._used.update(limits.keys())
            self._busy += 1
        loop = asyncio.get_running_loop()
        job = _Job(function, tuple(limits), loop.create_future(), loop)
        self._hand_over(job)
        try:
            value, error = await job.result
        except BaseException:
            with self._lock:
                job.lost = not job.over
                if job.lost:
                    self._lost += 1
            if job.lost:
                log.warning(
                    "a tool's thread was abandoned: it still runs after its call was cancelled"
                )
            raise
        if error is not None:
            raise error
        result: T = value
        return result

    def _hand_over(self, job: _Job) -> None:
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(job)
            return
        inbox = SimpleQueue()
        inbox.put(job)
        thread = Thread(
            target=self._work, args=(inbox,), name=f"tool-{next(self._numbers)}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._give_back(job)
            raise PoolExhaustedError("the machine has no thread left") from None

    def _work(self, inbox: "SimpleQueue[_Job]") -> None:
        """Run one job after another, until one is lost or too many threads are idle."""
        going = True
        while going:
            job = inbox.get()
            outcome = job.run()
            # Count the thread as free first: the caller may use it as soon as it has the result.
            with self._lock:
                self._give_back(job)
                if job.lost:
                    self._lost -= 1
                going = not job.lost and len(self._idle) < MAX_IDLE
                if going:
                    self._idle.append(inbox)
            job.deliver(outcome)
            del job, outcome  # so that an idle thread keeps no objects alive

    def _give_back(self, job: _Job) -> None:
        job.over = True
        self._busy -= 1
        for share in job.shares:
            self._used[share] -= 1
            if not self._used[share]:
                del self._used[share]
