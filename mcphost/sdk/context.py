"""One call, as the coroutine function that serves it sees it.

A round in which an answer is missing ends there, and the next one runs the function again from the
top. What is known by then, answers and results of steps, is given back at once.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from mcp_types import CreateMessageResult, CreateMessageResultWithTools, Root
from pydantic import BaseModel

from mcphost.runtime.ports import Store
from mcphost.runtime.questions import Question, QuestionRefused, Unanswered
from mcphost.sdk import questions
from mcphost.sdk.errors import Cancelled, CapabilityMissing, Declined, ToolError, told
from mcphost.sdk.questions import FormAnswer, SamplingOptions, UrlAnswer
from mcphost.sdk.sampling import Said
from mcphost.sdk.speaking import Speaking

__all__ = ["RUNNING", "CapabilityMissing", "Context", "ToolError", "accepted", "current"]

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Context(Speaking):
    """One call, as its tool sees it. Ask for it by a parameter of this type, or by `current()`.

    What waits is awaited. Every question has a key of its own, which stands for it through all
    rounds of the call: 1 to 64 of A-Z a-z 0-9 _ . -
    """

    __slots__ = ()

    async def elicit(self, key: str, message: str, model: type[M]) -> M:
        """Ask a person to fill in a form, by a pydantic model with flat fields; what was filled in.

        Raises Declined, Cancelled, AnswerFailed and AnswerTimedOut, which uncaught are the tool's
        result; QuestionRefused for what must not be asked; CapabilityMissing.
        """
        return accepted(key, await self.ask_form(key, message, model))

    @overload
    async def ask_form(self, key: str, message: str, model: type[M]) -> FormAnswer[M]: ...
    @overload
    async def ask_form(
        self, key: str, message: str, model: Mapping[str, Any]
    ) -> FormAnswer[dict[str, Any]]: ...
    async def ask_form(self, key: str, message: str, model: Any) -> FormAnswer[Any]:
        """The same by a model or a JSON Schema, with whatever became of it as the answer."""
        asked: FormAnswer[Any] = await self._ask(questions.form, key, message, model)
        return asked

    async def ask_url(self, key: str, message: str, url: str) -> UrlAnswer:
        """Ask a person to open a page. The answer says that they agreed, not what they did there:
        see `wait_for`."""
        return await self._ask(questions.url, key, message, url)

    async def sample(
        self,
        key: str,
        messages: Said | Sequence[Said],
        *,
        max_tokens: int,
        **options: Unpack[SamplingOptions],
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """Ask the client's model. Deprecated by the specification, with all of sampling."""
        return await self._ask(questions.sampling, key, messages, max_tokens=max_tokens, **options)

    async def list_roots(self, key: str = "roots") -> list[Root]:
        """Ask for the folders that the client works in. Deprecated by the specification."""
        return await self._ask(questions.roots, key)

    async def _ask(self, word: Callable[P, Question[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            question = word(*args, **kwargs)
        except QuestionRefused:
            await asyncio.sleep(0)  # who tries for ever lets others run
            raise
        try:
            return await self._round.ask(question)
        except Unanswered as why:
            raise told(why) from None

    @overload
    async def step(
        self,
        name: str,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Do something once: later rounds get what `function` returned without calling it again.

        It is known by its name and its arguments, which must be data; the same again is the next
        of its kind. It may run twice if a process dies over it: a parameter `idempotency_key` is
        the same then. A plain `def` runs in a thread. What it returns is kept as its return
        annotation says (as JSON without one), and read back from that at once. It asks nothing,
        and begins no step.
        """
        return await self._round.step(name, function, args, kwargs)

    async def in_thread(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what blocks in a thread of the tool's own, where `current_sync` knows this call."""
        return await self._round.in_thread(partial(function, *args, **kwargs))

    async def wait_for(self, key: str, timeout: float) -> bool:  # noqa: ASYNC109 - the author's
        """Wait until somebody was at `done_url(key)`; False if nobody was within so many seconds.

        The tool's time limit rests meanwhile. Raises LinkRefused.
        """
        return await self._round.wait_for(key, seconds(timeout))

    @property
    def store(self) -> Store:
        """What the tenant keeps for its tools: JSON by key, written by revision."""
        self._open()
        return self._round.ports.store


RUNNING: ContextVar[Context] = ContextVar("mcphost_context")
"""The context of the tool that runs here. Kinds set it for each round."""


def current() -> Context:
    """The context of the call that this code runs for.

    Known in the tool, in tasks it starts and in threads entered by `ctx.in_thread` and
    `asyncio.to_thread`. Raises RuntimeError elsewhere.
    """
    try:
        return RUNNING.get()
    except LookupError:
        raise RuntimeError("no tool is running here") from None


def accepted(key: str, answer: FormAnswer[T]) -> T:
    """What was filled in. Raises Declined and Cancelled."""
    if answer.action == "decline":
        raise Declined(key)
    if answer.content is None:
        raise Cancelled(key)
    return answer.content


def seconds(timeout: float) -> float:
    """How long to wait. Raises ValueError for what is no time."""
    if not 0 <= timeout < math.inf:
        raise ValueError("a timeout is a number of seconds, not below 0")
    return timeout
