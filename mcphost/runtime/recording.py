"""What one round asks and records, and what comes of it."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeVar, cast
from uuid import UUID

from mcphost.runtime.call import Call
from mcphost.runtime.children import Children, inside_step
from mcphost.runtime.draws import Draws
from mcphost.runtime.history import MISSING, History
from mcphost.runtime.journal import Journal
from mcphost.runtime.line import CallEnded, Line
from mcphost.runtime.outcomes import InputRequest, InputRequired, Yielded
from mcphost.runtime.ports import Ports
from mcphost.runtime.questions import CapabilityMissing, InvalidAnswer, Question, Unanswered
from mcphost.runtime.settling import Settling
from mcphost.runtime.steps import KEY, Misused, Shape, Step, Steps, shape_of

T = TypeVar("T")

MOST_OPEN: Final = 64
"""How many questions one round may leave open."""

MOST_LATE: Final = 100
"""How often a tool may go on asking in a round that is over, before it waits for its end."""


class Attempt(NamedTuple):
    """A step that has begun: what is to be called, or its `value` if an earlier round called it."""

    step: Step
    shape: Shape
    function: Callable[[], Any]
    value: Any = MISSING


class Recording:
    """The journal of one round at work. Used on the event loop's thread, but for what is drawn."""

    __slots__ = (
        "_call",
        "_children",
        "_draws",
        "_history",
        "_invalid",
        "_keys",
        "_late",
        "_line",
        "_open",
        "_ports",
        "_settling",
        "_steps",
        "_waits",
        "_yields",
    )

    def __init__(
        self, call: Call, journal: Journal, ports: Ports, line: Line, children: Children
    ) -> None:
        self._call = call
        self._ports = ports
        self._line = line
        self._children = children
        self._history = History(journal, line)
        self._draws = Draws(self._history, ports)
        self._settling = Settling(line.loop, children)
        self._steps = Steps()
        self._keys: set[str] = set()
        self._open: dict[str, Question[Any]] = {}
        self._invalid: dict[str, str] = {}
        self._waits: Counter[str] = Counter()
        self._yields = False
        self._late = 0

    @property
    def stops(self) -> bool:
        """Whether the round cannot complete, whatever its program makes of that."""
        return bool(self._open) or self._yields

    @property
    def unwinds(self) -> bool:
        """Whether the program was told that its round is over."""
        return self._settling.over

    def outcome(self) -> InputRequired | Yielded:
        """What comes of a round that `stops`."""
        journal = self._history.journal()
        if not self._open:
            return Yielded(journal)
        requests = tuple(
            InputRequest(one.key, one.method, one.params, one.digest) for one in self._open.values()
        )
        invalid = {key: why for key, why in self._invalid.items() if key in self._open}
        return InputRequired(requests, journal, invalid)

    async def ask(self, question: Question[T]) -> T:
        """The answer, if it is known. Otherwise the round unwinds once it has settled.

        Raises Unanswered for one that there will be none to; CapabilityMissing; Misused and Changed for what is the author's error; CallEnded.
        """
        try:
            await self._enter(f"the question {question.key!r} is asked")
            value = self._answer(question)
        except Exception:
            await asyncio.sleep(0)  # who tries for ever lets others run
            raise
        if value is MISSING:
            await self._settling.unwind()
        return value

    async def _enter(self, what: str) -> None:
        """Raises CallEnded, Misused in a step, and Unwound once the round is over."""
        self._line.check()
        if self._children.ending:
            raise CallEnded("the round that this belongs to has ended")
        if step := self._children.here().step:
            raise Misused(f"{what} inside another step ({step}), where nothing can be recorded")
        if self._settling.over:
            await self._come_late()

    async def _come_late(self) -> None:
        """For a program that has swallowed its unwinding. One that never ends waits for its time."""
        self._late += 1
        if self._late > MOST_LATE:
            await self._line.loop.create_future()
        await asyncio.sleep(0)
        await self._settling.unwind()

    def _answer(self, question: Question[T]) -> T:
        """What the journal knows; MISSING for a question that is open from now on."""
        key = question.key
        if key in self._keys:
            raise Misused(
                f"the question {key!r} is asked twice in one round: each needs its own key"
            )
        given = self._history.answer(question, self._call.version)
        if given is not None and given.failure:
            self._keys.add(key)
            raise Unanswered(key, given.failure, str(given.result.get("message", "")))
        if given is not None:
            try:
                value = question.read(given.result)
            except InvalidAnswer as why:
                self._history.drop(given)
                self._invalid[key] = str(why)
            else:
                self._keys.add(key)
                return value
        self._put(question)
        return cast(T, MISSING)

    def _put(self, question: Question[Any]) -> None:
        if not self._call.client.can(question.capability):
            raise CapabilityMissing(question.capability)
        if len(self._open) == MOST_OPEN:
            raise Misused(f"more than {MOST_OPEN} questions are asked in one round")
        self._keys.add(question.key)
        self._open[question.key] = question

    async def begin_step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Attempt:
        """Take the next occurrence of a step. It must be ended, unless its value is known.

        Raises Misused for what cannot be a step; CallEnded.
        """
        try:
            await self._enter(f"the step {name!r} is begun")
            shape = shape_of(function, name)
            step = self._steps.take(name, args, kwargs)
            recorded = self._history.recorded(step.id)
            known = MISSING if recorded is MISSING else shape.read(recorded, name)
        except Exception:
            await asyncio.sleep(0)
            raise
        if known is MISSING:
            self._settling.begin_step()
            if shape.takes_key:
                kwargs = {KEY: step.idempotency_key(self._call.id), **kwargs}
        return Attempt(step, shape, partial(function, *args, **kwargs), known)

    def fail_step(self, attempt: Attempt) -> None:
        """It raised. Nothing is recorded; whoever tries again tries the same occurrence."""
        self._steps.give_back(attempt.step)
        self._settling.end_step()

    async def end_step(self, attempt: Attempt, value: Any) -> Any:
        """Record what it returned, and give back what later rounds will read.

        Raises Misused for a result that cannot be recorded. Where the process is leaving, the
        round unwinds here, to go on elsewhere.
        """
        step, shape = attempt.step, attempt.shape
        try:
            self._line.check()
            plain, value = shape.written(value, step.name)
        except BaseException:
            self.fail_step(attempt)
            raise
        self._history.record(step.id, plain)
        self._settling.end_step()
        if not self._open and self._ports.leaving():
            self._yields = True
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
        """Run a step, or give what it returned in an earlier round."""
        attempt = await self.begin_step(name, function, args, kwargs)
        if attempt.value is not MISSING:
            return attempt.value
        try:
            with inside_step(self._children.here(), attempt.step.id):
                value = await _called(attempt, in_thread)
        except BaseException:
            self.fail_step(attempt)
            raise
        return await self.end_step(attempt, value)

    async def wait_for(self, key: str, seconds: float) -> bool:
        """Wait at one of the call's links. What came of it is recorded like a step's result."""
        try:
            return await self._waited(key, seconds)
        except Exception:
            await asyncio.sleep(0)
            raise

    async def _waited(self, key: str, seconds: float) -> bool:
        await self._enter(f"{key!r} is waited for")
        self._waits[key] += 1
        id = f"wait {key} {self._waits[key]}"
        done: bool = self._history.recorded(id)
        if done is MISSING:
            done = await self._ports.links.wait(key, seconds)
            self._history.record(id, done)
        return done

    def now(self) -> datetime:
        if self._settling.over:
            return self._ports.clock.now()
        return self._draws.now(self._children.here().path)

    def uuid(self) -> UUID:
        if self._settling.over:
            return UUID(bytes=self._ports.randomness.bytes(16), version=4)
        return self._draws.uuid(self._children.here().path)

    def random(self) -> Random:
        if self._settling.over:
            return Random(self._ports.randomness.bytes(16))  # noqa: S311 - said to be no secret
        return self._draws.random(self._children.here().path)

    def link(self, key: str) -> str:
        if self._settling.over:
            return self._ports.links.url(key)
        return self._draws.link(key)


async def _called(attempt: Attempt, in_thread: Callable[[Callable[[], Any]], Any]) -> Any:
    """The value of a step's function: what does not wait may block, so it gets a thread."""
    if attempt.shape.waits:
        return await attempt.function()
    value = await in_thread(attempt.function)
    return await value if inspect.isawaitable(value) else value
