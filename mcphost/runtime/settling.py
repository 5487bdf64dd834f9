"""When a round has come to rest, so that all that wait for answers unwind together."""

from asyncio import AbstractEventLoop, Future

from mcphost.runtime.children import Children, Unwound

TURNS = 16
"""How many turns of the event loop nothing new must have happened in."""


class Settling:
    """Whoever has to wait for another round waits here until this one has settled.

    It has when no step runs and nothing new (a question, a step, a task) was begun for sixteen
    turns of the event loop. A tool that has no task left but its own has settled at once: nobody
    else could ask. Used on the event loop's thread only.
    """

    __slots__ = ("_children", "_loop", "_quiet", "_seen", "_steps", "_turning", "_waiting", "over")

    def __init__(self, loop: AbstractEventLoop, children: Children) -> None:
        self._loop = loop
        self._children = children
        self._waiting: list[Future[None]] = []
        self._steps = 0
        self._quiet = 0
        self._seen = 0
        self._turning = False
        self.over = False

    def begin_step(self) -> None:
        self._steps += 1
        self._quiet = 0

    def end_step(self) -> None:
        self._steps -= 1
        self._quiet = 0
        self._go_on()

    async def unwind(self) -> None:
        """Wait until the round has settled. Then, and from then on, raises Unwound."""
        if not self.over and self._is_alone():
            self.over = True
        elif not self.over:
            await self._settled()
        raise Unwound

    def _is_alone(self) -> bool:
        return not self._steps and not self._children.left

    async def _settled(self) -> None:
        future = self._loop.create_future()
        self._waiting.append(future)
        self._quiet = 0
        self._go_on()
        await future

    def _go_on(self) -> None:
        """Count turns while somebody waits and no step runs: then something may settle."""
        if not self._turning and not self._steps and self._waiting:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """One turn of the loop has passed."""
        self._turning = False
        self._waiting = [future for future in self._waiting if not future.done()]
        started = self._children.total
        self._quiet = self._quiet + 1 if started == self._seen else 0
        self._seen = started
        if self._quiet < TURNS or self._steps:
            self._go_on()
            return
        self.over = True
        for future in self._waiting:
            future.set_result(None)
