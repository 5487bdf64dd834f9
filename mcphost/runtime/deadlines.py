"""The time limit of a round: the round is cancelled, and closed if it goes on after that."""

import asyncio
from asyncio import Task, TimerHandle
from typing import Any, Generic, TypeVar, cast

from mcphost.runtime.started_coroutine import StartedCoroutine

T = TypeVar("T")

WARNINGS = 5
WARNING_SECONDS = 1.0

HURRY_SECONDS = 1.0
LAST_SECONDS = 5.0


class OutOfTimeError(Exception):
    """The round took longer than its limit of `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"not finished within {seconds:g} seconds")


class Deadline(Generic[T]):
    """Awaits a coroutine that has begun, for at most `seconds` of running time.

    After that it is cancelled. If it goes on, it is cancelled again each second, and after the
    fifth time it is closed where it waits. Must be created and used in the task that awaits `run`.

    Use `hurried=False` for a coroutine that only waits for a thread: waking it would lose the
    thread.
    """

    _handle: TimerHandle | None = None
    _ends_at = 0.0
    _hurrying: TimerHandle | None = None
    _warnings = 0

    def __init__(
        self, started: StartedCoroutine[T], seconds: float, *, hurried: bool = True
    ) -> None:
        self._started = started
        self._seconds = seconds
        self._remaining = seconds
        self._hurried = hurried
        self._loop = asyncio.get_running_loop()
        self._task = cast("Task[T]", asyncio.current_task(self._loop))
        self._before = self._task.cancelling()

    async def run(self, *, resting: bool = False) -> T:
        """Return the coroutine's result. Raises OutOfTimeError if the time was up, whatever the
        coroutine did then, unless the task was also cancelled from outside."""
        if not resting:
            self.resume()
        error: BaseException | None = None
        try:
            return await self._started
        except BaseException as raised:
            error = raised
            raise
        finally:
            for handle in (self._handle, self._hurrying):
                if handle is not None:
                    handle.cancel()
            for _ in range(self._warnings):
                self._task.uncancel()
            is_cancelled = isinstance(error, asyncio.CancelledError)
            if self._warnings and not (is_cancelled and self._task.cancelling() > self._before):
                raise OutOfTimeError(self._seconds) from error

    def rest(self) -> None:
        """Suspend the time limit, unless the time is up."""
        if self._handle is not None and not self._warnings:
            self._remaining = max(0.0, self._ends_at - self._loop.time())
            self._handle.cancel()
            self._handle = None

    def resume(self) -> None:
        if self._handle is None:
            self._ends_at = self._loop.time() + self._remaining
            self._handle = self._loop.call_later(self._remaining, self._warn)

    def hurry(self, error: BaseException) -> None:
        """End a coroutine whose round is over.

        If it still waits in the same place after a second (for something that will never happen),
        it is woken with `error`. Otherwise it gets five more seconds to tidy up.
        """
        if self._hurried and self._hurrying is None:
            waits_for = self._started.waits_for
            self._hurrying = self._loop.call_later(
                HURRY_SECONDS, self._wake_if_stuck, waits_for, error
            )

    def _wake_if_stuck(self, waited_for: Any, error: BaseException) -> None:
        if self._started.waits_for is waited_for:
            self._wake(error)
        else:
            self._hurrying = self._loop.call_later(LAST_SECONDS, self._wake, error)

    def _wake(self, error: BaseException) -> None:
        self._started.wake_with(error)
        self._task.cancel()
        self._task.uncancel()

    def _warn(self) -> None:
        self._warnings += 1
        if self._warnings > WARNINGS:
            self._started.give_up()
        else:
            self._handle = self._loop.call_later(WARNING_SECONDS, self._warn)
        self._task.cancel()
