"""One round of a program, from beginning to end."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from mcphost.runtime.call import Call
from mcphost.runtime.deadlines import Deadline
from mcphost.runtime.history import MISSING
from mcphost.runtime.journal import Journal
from mcphost.runtime.notification_channel import CallEndedError, NotificationChannel
from mcphost.runtime.outcomes import Deferred, InputRequired, Yielded
from mcphost.runtime.ports import Misuse, Ports
from mcphost.runtime.questions import Question
from mcphost.runtime.recording import Recording
from mcphost.runtime.steps import MisusedError
from mcphost.runtime.tool_tasks import ToolTasks, Unwound, inside_step, running

T = TypeVar("T")

ANOTHER_CALL: Final = (
    "this context belongs to another call: use the one that this code was called with, or "
    "sdk.current(). A worker that serves several calls gives each its result back, through a future "
    "or a queue, and each call uses its own context itself"
)
NO_CALL: Final = (
    "this context can be used only by code of its call, and this code is not part of any call: run "
    "it with ctx.in_thread (or asyncio.to_thread), which make a thread part of the call"
)

_making = Lock()


class ForeignContextError(Exception):
    """Code that does not run in a call used that call's context. The message is for the author."""


class ThreadLimit(NamedTuple):
    """The limit of threads for blocking functions: `program` is the one they count against, `cap` its
    number of threads, None without a limit of its own."""

    program: str = ""
    cap: int | None = None


NO_THREAD_LIMIT = ThreadLimit()


class Round:
    """The object behind a context. One is created for every call, and most calls neither ask nor
    record: what these need is created at first use, and rarely set attributes have class defaults.
    """

    deadline: Deadline[Any] | None = None
    _waits = 0
    _recording: Recording | None = None

    def __init__(
        self,
        call: Call,
        journal: Journal,
        ports: Ports,
        thread_limit: ThreadLimit = NO_THREAD_LIMIT,
    ) -> None:
        self.call = call
        self.journal = journal
        self.ports = ports
        self.thread_limit = thread_limit
        self.channel = NotificationChannel(ports.notifier, journal.progress, ports.misused)
        self.tasks = ToolTasks(self.channel)
        if journal.answers or journal.recorded:
            self._recording = self._make()

    @property
    def recording(self) -> Recording:
        with _making:  # several threads may come here at once
            if self._recording is None:
                self._recording = self._make()
            return self._recording

    def _make(self) -> Recording:
        return Recording(self.call, self.journal, self.ports, self.channel, self.tasks)

    def guard(self) -> None:
        """Refuse code that is not of this round: the tool, and tasks and threads with its context
        variables.

        Raises CallEndedError once the round is over, and ForeignContextError in code of another call or of
        none. Such misuse is reported to this call and to the call that used its context; only the
        log names both.
        """
        if self.channel.open and self.tasks.runs_here:
            return
        self.channel.check()
        by = running()
        if by is None:
            self.channel.report(Misuse.OUTSIDE)
            self.channel.brake()
            raise ForeignContextError(NO_CALL)
        by.channel.report(Misuse.BORROWED, self.call)
        self.channel.report(Misuse.LENT)
        by.channel.brake()
        raise ForeignContextError(ANOTHER_CALL)

    @property
    def rests(self) -> bool:
        """Whether the time limit is suspended, because the tool waits at a link."""
        return self._waits > 0

    @property
    def stopped(self) -> bool:
        """Whether the round cannot complete: an answer is missing, or the call continues as a task or
        in another process."""
        return self._recording is not None and self._recording.stops

    @property
    def unwinds(self) -> bool:
        """Whether the round has settled for this reason, and its program is being unwound."""
        return self._recording is not None and self._recording.unwinds

    def deferred(self) -> Deferred:
        """Return the outcome of a round that found no thread, and whose call may become a task."""
        return Deferred(self.recording.journal(), instead_of_refusal=True)

    def stopped_with(self) -> InputRequired | Deferred | Yielded:
        """Return the outcome of a stopped round."""
        return self.recording.outcome()

    async def ask(self, question: Question[T]) -> T:
        """Return the answer to a question, or end the round. From any event loop."""
        return await self._at_home(self.recording.ask(question))

    async def become_task(self) -> None:
        """End the round, so that the call continues as a task, if that is possible. From any event
        loop."""
        await self._at_home(self.recording.become_task())

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Return the result of a step, from this round or an earlier one. From any event loop."""
        work = self.recording.step(name, function, args, kwargs, self.in_thread)
        return await self._at_home(work)

    async def wait_for(self, key: str, seconds: float) -> bool:
        """Wait at one of the call's links, with the time limit suspended."""
        return await self._at_home(self._wait_for(key, seconds))

    async def _wait_for(self, key: str, seconds: float) -> bool:
        self._waits += 1
        if self.deadline is not None:
            self.deadline.rest()
        try:
            return await self.recording.wait_for(key, seconds)
        finally:
            self._waits -= 1
            if self.deadline is not None and not self._waits:
                self.deadline.resume()

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run a blocking function in a thread of the program's own. Raises PoolExhaustedError."""
        owner = str(self.call.tenant)
        tool, cap = self.thread_limit
        return await self.ports.threads.run(owner, function, tool=tool, cap=cap)

    def step_here(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """As `step`, but called in a thread; the function runs in that thread."""
        recording = self.recording
        attempt = self.blocking(recording.begin_step(name, function, args, kwargs))
        if attempt.value is not MISSING:
            return attempt.value
        try:
            with inside_step(self.tasks.here(), attempt.step.id):
                value = attempt.function()
                if inspect.isawaitable(value):
                    value = self.blocking(_awaited(value))
        except BaseException:
            with suppress(RuntimeError):  # the loop is closed, and the call long over
                self.channel.loop.call_soon_threadsafe(recording.fail_step, attempt)
            raise
        return self.blocking(recording.end_step(attempt, value))

    def blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the event loop, and wait for its result in a thread.

        Raises Misused on the loop's own thread, which must not block, and CallEndedError.
        """
        try:
            self.check()
            if self.channel.is_here:
                raise MisusedError(
                    "this blocks: where the event loop runs, use Context and await it"
                )
        except (CallEndedError, MisusedError):
            work.close()
            raise
        try:
            return self._hand_over(work).result()
        except CancelledError:
            raise CallEndedError("the call ended while a thread of it waited") from None

    def check(self) -> None:
        """Raise CallEndedError once nothing can be asked or recorded any more."""
        self.channel.check()
        if self.tasks.ending:
            raise CallEndedError("the round of this code has ended")

    def _hand_over(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        try:
            return asyncio.run_coroutine_threadsafe(work, self.channel.loop)
        except RuntimeError:
            work.close()
            raise CallEndedError("the loop that served the call is closed") from None

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the round's own event loop, whichever loop awaits it."""
        if not self.channel.is_here:
            return await asyncio.wrap_future(self._hand_over(self._at_home(work)))
        try:
            return await work
        except Unwound as end:
            if self.deadline is not None:
                self.deadline.hurry(end)
            raise


async def _awaited(value: Awaitable[T]) -> T:
    return await value
