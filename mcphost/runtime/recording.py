"""The questions, steps and values of one round, and the outcome of a round that was stopped."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeVar, cast
from uuid import UUID

from mcphost.runtime.call import Call, Delivery
from mcphost.runtime.draws import Draws
from mcphost.runtime.history import MISSING, History
from mcphost.runtime.journal import Journal
from mcphost.runtime.notification_channel import CallEndedError, NotificationChannel
from mcphost.runtime.outcomes import Deferred, InputRequest, InputRequired, Yielded
from mcphost.runtime.ports import Ports
from mcphost.runtime.questions import (
    CapabilityMissingError,
    InvalidAnswerError,
    Question,
    UnansweredError,
)
from mcphost.runtime.settling import Settling
from mcphost.runtime.steps import KEY, MisusedError, Step, Steps, StepShape, shape_of
from mcphost.runtime.tool_tasks import ToolTasks, inside_step

T = TypeVar("T")

MAX_OPEN: Final = 64
"""How many unanswered questions one round may have."""

MAX_REASON: Final = 1000
"""How much of the reason why a response was not accepted is sent with the question, in characters."""

MAX_LATE: Final = 100
"""How often a tool may ask again in a round that is over, before it has to wait for its time limit."""


class StepAttempt(NamedTuple):
    """A step that has begun: the function to call, or its `value` if an earlier round called it."""

    step: Step
    shape: StepShape
    function: Callable[[], Any]
    value: Any = MISSING


class Recording:
    """The journal of a running round. Use it on the event loop's thread; draws are allowed on any
    thread."""

    __slots__ = (
        "_call",
        "_channel",
        "_defers",
        "_draws",
        "_history",
        "_invalid",
        "_keys",
        "_late",
        "_open",
        "_pages",
        "_ports",
        "_settling",
        "_steps",
        "_tasks",
        "_waits",
        "_yields",
    )

    def __init__(
        self,
        call: Call,
        journal: Journal,
        ports: Ports,
        channel: NotificationChannel,
        tasks: ToolTasks,
    ) -> None:
        self._call = call
        self._ports = ports
        self._channel = channel
        self._tasks = tasks
        self._history = History(journal, channel)
        self._draws = Draws(self._history, ports)
        self._settling = Settling(channel.loop, tasks)
        self._steps = Steps()
        self._keys: set[str] = set()
        self._open: dict[str, Question[Any]] = {}
        self._pages: dict[str, str] = {}
        self._invalid: dict[str, str] = {}
        self._waits: Counter[str] = Counter()
        self._yields = ""
        self._defers = False
        self._late = 0

    @property
    def stops(self) -> bool:
        """Whether the round cannot complete, whatever its program does."""
        return bool(self._open or self._yields) or self._defers

    @property
    def unwinds(self) -> bool:
        """Whether code of the program was unwound because its round is over."""
        return self._settling.over

    def journal(self) -> Journal:
        """Return the journal so far."""
        return self._history.journal()

    def outcome(self) -> InputRequired | Deferred | Yielded:
        """Return the outcome of a round that `stops`."""
        journal = self._history.journal()
        if not self._open:
            return Deferred(journal) if self._defers else Yielded(journal, self._yields)
        requests = tuple(map(self._request, self._open.values()))
        invalid = {key: why for key, why in self._invalid.items() if key in self._open}
        return InputRequired(requests, journal, invalid)

    async def ask(self, question: Question[T]) -> T:
        """Return the answer, if it is in the journal. Otherwise unwind once the round has settled.

        Raises Unanswered if there will be no answer; CapabilityMissingError; Misused and Changed for an
        error of the author; CallEndedError.
        """
        try:
            await self._enter(f"the question {question.key!r} is asked")
            value = self.answer(question)
        except Exception:
            await asyncio.sleep(0)  # so that code which retries forever does not block other tasks
            raise
        if value is MISSING:
            await self._settling.unwind()
        return value

    def position(self) -> dict[str, Any]:
        """Return, as JSON, what `continue_from` needs in a round that does not begin at the top."""
        return {"keys": sorted(self._keys - self._open.keys()), "steps": self._steps.counts()}

    def continue_from(self, position: Mapping[str, Any]) -> None:
        """Begin where an earlier round was paused: with its keys, and with its numbers of steps."""
        self._keys.update(position["keys"])
        self._steps.count_from(position["steps"])
        self._channel.silent = False

    async def become_task(self) -> None:
        """Unwind once the round has settled, so that the call continues as a task. Has no effect if
        it is a task, or cannot become one.

        Raises Misused inside a step; CallEndedError.
        """
        try:
            await self._enter("the call is made a task")
            if self._call.delivery is Delivery.TASK or not self._ports.may_defer():
                return
        except Exception:
            await asyncio.sleep(0)
            raise
        self._defers = True
        await self._settling.unwind()

    async def _enter(self, action: str) -> None:
        """Raise CallEndedError; Misused inside a step; Unwound once the round is over.

        A program that swallows Unwound is unwound again. One that never ends waits for its time
        limit.
        """
        self._channel.check()
        if self._tasks.ending:
            raise CallEndedError("the round of this code has ended")
        if step := self._tasks.here().step:
            raise MisusedError(
                f"{action} inside another step ({step}), where nothing can be recorded"
            )
        if self._settling.over:
            self._late += 1
            if self._late > MAX_LATE:
                await self._channel.loop.create_future()
            await asyncio.sleep(0)
            await self._settling.unwind()

    def answer(self, question: Question[T]) -> T:
        """Return the answer in the journal; otherwise publish the question, add it to the open ones
        and return MISSING.

        This is `ask` for a program that stops by itself, and is not unwound. Raises as `ask`.
        """
        key = question.key
        if key in self._keys:
            raise MisusedError(
                f"the question {key!r} is asked twice in one round: each needs its own key"
            )
        answer = self._history.answer(question, self._call.version)
        if answer is not None and answer.failure:
            self._keys.add(key)
            raise UnansweredError(key, answer.failure, str(answer.result.get("message", "")))
        if answer is not None:
            try:
                value = question.read(answer.result)
            except InvalidAnswerError as why:
                self._history.drop(answer)
                self._invalid[key] = str(why)
            else:
                self._add_key(question)
                return value
        if not self._call.client.can(question.capability):
            raise CapabilityMissingError(question.capability, self._call.method)
        if len(self._open) == MAX_OPEN:
            raise MisusedError(f"more than {MAX_OPEN} questions are asked in one round")
        self._add_key(question)
        self._open[key] = question
        # Outside of the tool's context: what the port starts must not count as the tool's own.
        self._channel.do(partial(self._ports.publish, self._request(question)))
        return cast(T, MISSING)

    def _add_key(self, question: Question[Any]) -> None:
        self._keys.add(question.key)
        if question.params.get("mode") == "url":
            self._pages[question.key] = question.params["url"]

    def _request(self, question: Question[Any]) -> InputRequest:
        """The request of a question; if a response to it was not accepted, its message says why."""
        params, why = question.params, self._invalid.get(question.key)
        if why and "message" in params:
            text = f"{params['message']}\n\nThe last response was not accepted: {why[:MAX_REASON]}"
            params = {**params, "message": text}
        return InputRequest(question.key, question.method, params, question.digest)

    async def begin_step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> StepAttempt:
        """Begin the next occurrence of a step. The caller must end it, unless its value is known.

        Raises Misused for an invalid step; CallEndedError.
        """
        try:
            await self._enter(f"the step {name!r} is begun")
            shape = shape_of(function, name)
            step = self._steps.take(name, args, kwargs)
            recorded = self._history.recorded(step.id)
            value = MISSING if recorded is MISSING else shape.read(recorded, name)
        except Exception:
            await asyncio.sleep(0)
            raise
        if value is MISSING:
            self._settling.begin_step()
            if shape.takes_key:
                kwargs = {KEY: step.idempotency_key(self._call.id), **kwargs}
        return StepAttempt(step, shape, partial(function, *args, **kwargs), value)

    def fail_step(self, attempt: StepAttempt) -> None:
        """End a step that raised. Nothing is recorded; a retry gets the same occurrence."""
        self._steps.give_back(attempt.step)
        self._settling.end_step()

    async def end_step(self, attempt: StepAttempt, value: Any) -> Any:
        """Record the result of a step, and return the value that later rounds will read.

        Raises Misused for a result that cannot be recorded. If the call should leave this process, the
        round unwinds here and continues in another process.
        """
        step, shape = attempt.step, attempt.shape
        try:
            self._channel.check()
            plain, value = shape.written(value, step.name)
        except BaseException:
            self.fail_step(attempt)
            raise
        self._history.record(step.id, plain)
        try:
            kept = self._ports.store_journal(self._history.journal)
            if kept is not None:
                await kept
        finally:
            self._settling.end_step()
        if not self._open and (reason := self._ports.reason_to_move()):
            self._yields = reason
            await self._settling.unwind()
        return value

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        in_thread: Callable[[Callable[[], Any]], Any],
    ) -> Any:
        """Run a step, or return its result from an earlier round."""
        attempt = await self.begin_step(name, function, args, kwargs)
        if attempt.value is not MISSING:
            return attempt.value
        try:
            with inside_step(self._tasks.here(), attempt.step.id):
                if attempt.shape.waits:
                    value = await attempt.function()
                else:  # a function that is not a coroutine function may block
                    value = await in_thread(attempt.function)
                    if inspect.isawaitable(value):
                        value = await value
        except BaseException:
            self.fail_step(attempt)
            raise
        return await self.end_step(attempt, value)

    async def wait_for(self, key: str, seconds: float) -> bool:
        """Wait at one of the call's links. The result is recorded like a step's."""
        try:
            await self._enter(f"{key!r} is waited for")
            self._waits[key] += 1
            id = f"wait {key} {self._waits[key]}"
            done: bool = self._history.recorded(id)
            if done is MISSING:
                done = await self._ports.links.wait(key, seconds, self._pages_for(key))
                self._history.record(id, done)
        except Exception:
            await asyncio.sleep(0)
            raise
        return done

    def _pages_for(self, key: str) -> Collection[str]:
        """The pages that the user was asked to open before the link `key` can be done: those whose
        address leads to it, otherwise the one that was asked under the same key."""
        pages = [url for url in self._pages.values() if self._draws.leads_to(url, key)]
        return pages or [url for name, url in self._pages.items() if name == key]

    def now(self) -> datetime:
        if self._settling.over:
            return self._ports.clock.now()
        return self._draws.now(self._tasks.here().path)

    def uuid(self) -> UUID:
        if self._settling.over:
            return UUID(bytes=self._ports.randomness.bytes(16), version=4)
        return self._draws.uuid(self._tasks.here().path)

    def random(self) -> Random:
        if self._settling.over:
            return Random(self._ports.randomness.bytes(16))  # noqa: S311 - said to be no secret
        return self._draws.random(self._tasks.here().path)

    def page(self, key: str) -> str:
        return (self._ports.links if self._settling.over else self._draws).page(key)

    def callback(self, key: str) -> str:
        return (self._ports.links if self._settling.over else self._draws).callback(key)
