"""One round of a program, from its beginning to its end."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from mcphost.runtime.call import Call
from mcphost.runtime.children import Children, Unwound, inside_step
from mcphost.runtime.deadlines import Deadline
from mcphost.runtime.history import MISSING
from mcphost.runtime.journal import Journal
from mcphost.runtime.line import CallEnded, Line
from mcphost.runtime.outcomes import InputRequired, Yielded
from mcphost.runtime.ports import Ports
from mcphost.runtime.questions import Question
from mcphost.runtime.recording import Recording
from mcphost.runtime.steps import Misused

T = TypeVar("T")

_making = Lock()


class Place(NamedTuple):
    """Where blocking functions of a program run: counted as its, and up to how many at once."""

    program: str = ""
    cap: int | None = None


ANYWHERE = Place()


class Round:
    """What a context stands on. One is made for every call, most of which neither ask nor record:
    what that needs is made when it is first needed, and what is seldom set has its value here.
    """

    deadline: Deadline[Any] | None = None
    _waits = 0
    _recording: Recording | None = None

    def __init__(self, call: Call, journal: Journal, ports: Ports, place: Place = ANYWHERE) -> None:
        self.call = call
        self.journal = journal
        self.ports = ports
        self.place = place
        self.line = Line(ports.notifier, journal.progress, ports.late)
        self.children = Children()
        if journal.answers or journal.recorded:
            self._recording = self._make()

    @property
    def recording(self) -> Recording:
        with _making:  # threads may come at once
            if self._recording is None:
                self._recording = self._make()
            return self._recording

    def _make(self) -> Recording:
        return Recording(self.call, self.journal, self.ports, self.line, self.children)

    @property
    def rests(self) -> bool:
        """Whether the time limit does, because the tool waits at a link."""
        return self._waits > 0

    @property
    def stopped(self) -> bool:
        """Whether it cannot complete: for want of an answer, or to go on elsewhere."""
        return self._recording is not None and self._recording.stops

    @property
    def unwinds(self) -> bool:
        """Whether its program was told that."""
        return self._recording is not None and self._recording.unwinds

    def stopped_with(self) -> InputRequired | Yielded:
        """The outcome of a round that was stopped."""
        return self.recording.outcome()

    async def ask(self, question: Question[T]) -> T:
        """The answer to a question, or the end of the round. From any event loop."""
        return await self._at_home(self.recording.ask(question))

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """What a step returns, now or in an earlier round. From any event loop."""
        work = self.recording.step(name, function, args, kwargs, self.in_thread)
        return await self._at_home(work)

    async def wait_for(self, key: str, seconds: float) -> bool:
        """Wait at one of the call's links, while the time limit rests."""
        return await self._at_home(self._wait_for(key, seconds))

    async def _wait_for(self, key: str, seconds: float) -> bool:
        with self._resting():
            return await self.recording.wait_for(key, seconds)

    @contextmanager
    def _resting(self) -> Iterator[None]:
        self._waits += 1
        if self.deadline is not None:
            self.deadline.rest()
        try:
            yield
        finally:
            self._waits -= 1
            if self.deadline is not None and not self._waits:
                self.deadline.go_on()

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run what blocks in a thread of the program's own. Raises PoolExhausted."""
        owner = str(self.call.tenant)
        tool, cap = self.place
        return await self.ports.threads.run(owner, function, tool=tool, cap=cap)

    def step_here(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """The same as `step`, for a thread, in which the function then runs."""
        recording = self.recording
        attempt = self.blocking(recording.begin_step(name, function, args, kwargs))
        if attempt.value is not MISSING:
            return attempt.value
        try:
            with inside_step(self.children.here(), attempt.step.id):
                value = attempt.function()
                if inspect.isawaitable(value):
                    value = self.blocking(_awaited(value))
        except BaseException:
            with suppress(RuntimeError):  # the loop is closed, and the call long over
                self.line.loop.call_soon_threadsafe(recording.fail_step, attempt)
            raise
        return self.blocking(recording.end_step(attempt, value))

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives on the event loop, waited for in a thread.

        Raises Misused on the loop's own thread, which must not wait, and CallEnded.
        """
        try:
            self.check()
            if self.line.is_here:
                raise Misused("this blocks: where the event loop runs, use Context and await it")
        except (CallEnded, Misused):
            work.close()
            raise
        try:
            return self._hand_over(work).result()
        except CancelledError:
            raise CallEnded("the call ended while a thread of it waited") from None

    def check(self) -> None:
        """Raises CallEnded once nothing can be asked or recorded any more."""
        self.line.check()
        if self.children.ending:
            raise CallEnded("the round that this belongs to has ended")

    def _hand_over(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        try:
            return asyncio.run_coroutine_threadsafe(work, self.line.loop)
        except RuntimeError:
            work.close()
            raise CallEnded("the loop that served the call is closed") from None

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives on the round's own event loop, wherever it is awaited."""
        if not self.line.is_here:
            return await asyncio.wrap_future(self._hand_over(self._at_home(work)))
        try:
            return await work
        except Unwound as end:
            if self.deadline is not None:
                self.deadline.hurry(end)
            raise


async def _awaited(value: Awaitable[T]) -> T:
    return await value
