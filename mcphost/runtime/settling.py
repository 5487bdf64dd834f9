"""Detects that a round has settled, so that all code that waits for answers unwinds together."""

from asyncio import AbstractEventLoop, Future

from mcphost.runtime.tool_tasks import ToolTasks, Unwound

TURNS = 16
"""How many turns of the event loop must pass in which nothing new began."""


class Settling:
    """Suspends code that needs an answer from the client until its round has settled.

    A round has settled when no step runs and no question, step or task was begun for sixteen turns
    of the event loop. A tool without other tasks has settled at once, because no other code could
    ask. Use it only on the event loop's thread.
    """

    __slots__ = (
        "_last_total",
        "_loop",
        "_quiet",
        "_steps",
        "_tasks",
        "_turning",
        "_waiting",
        "over",
    )

    def __init__(self, loop: AbstractEventLoop, tasks: ToolTasks) -> None:
        self._loop = loop
        self._tasks = tasks
        self._waiting: list[Future[None]] = []
        self._steps = 0
        self._quiet = 0
        self._last_total = 0
        self._turning = False
        self.over = False

    def begin_step(self) -> None:
        self._steps += 1
        self._quiet = 0

    def end_step(self) -> None:
        self._steps -= 1
        self._quiet = 0
        self._schedule_turn()

    async def unwind(self) -> None:
        """Wait until the round has settled, then raise Unwound. Raises it at once from then on."""
        if not self.over and not self._steps and not self._tasks.unfinished:
            self.over = True
        elif not self.over:
            future = self._loop.create_future()
            self._waiting.append(future)
            self._quiet = 0
            self._schedule_turn()
            await future
        raise Unwound

    def _schedule_turn(self) -> None:
        """Count turns while code waits and no step runs: only then can the round settle."""
        if not self._turning and not self._steps and self._waiting:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Count one turn of the event loop."""
        self._turning = False
        self._waiting = [future for future in self._waiting if not future.done()]
        started = self._tasks.total
        self._quiet = self._quiet + 1 if started == self._last_total else 0
        self._last_total = started
        if self._quiet < TURNS or self._steps:
            self._schedule_turn()
            return
        self.over = True
        for future in self._waiting:
            future.set_result(None)
