"""The context of a call for coroutine functions.

A round in which an answer is missing ends there, and the next round runs the function again from
the top. Answers and results of steps that are known by then are returned at once.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from mcp_types import CreateMessageResult, CreateMessageResultWithTools, Root
from pydantic import BaseModel

from mcphost.runtime.ports import Store, Stored
from mcphost.runtime.questions import Question, QuestionRefusedError, UnansweredError
from mcphost.runtime.rounds import Round
from mcphost.sdk import questions
from mcphost.sdk.base_context import BaseContext
from mcphost.sdk.errors import Cancelled, CapabilityMissingError, Declined, ToolError, answer_error
from mcphost.sdk.questions import FormAnswer, SamplingOptions, UrlAnswer
from mcphost.sdk.sampling import MessageLike

__all__ = ["RUNNING", "CapabilityMissingError", "Context", "ToolError", "accepted", "current"]

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Context(BaseContext):
    """One call, for the code of its tool: a parameter of this type, or the result of `current()`.

    Methods that wait are awaited. Every question has its own key, which identifies it in all rounds
    of the call: 1 to 64 of A-Z a-z 0-9 _ . -
    """

    __slots__ = ()

    async def elicit(self, key: str, message: str, model: type[M]) -> M:
        """Ask the user to fill in a form, given as a pydantic model with flat fields; return the
        values.

        Raises Declined, Cancelled, AnswerFailedError and AnswerTimedOutError, which become the tool's result
        if not caught; QuestionRefusedError for a question that must not be asked; CapabilityMissingError.
        """
        return accepted(key, await self.ask_form(key, message, model))

    @overload
    async def ask_form(self, key: str, message: str, model: type[M]) -> FormAnswer[M]: ...
    @overload
    async def ask_form(
        self, key: str, message: str, model: Mapping[str, Any]
    ) -> FormAnswer[dict[str, Any]]: ...
    async def ask_form(self, key: str, message: str, model: Any) -> FormAnswer[Any]:
        """As `elicit`, with a model or a JSON Schema; return the user's response, accepted or not."""
        answer: FormAnswer[Any] = await self._ask(questions.form, key, message, model)
        return answer

    async def ask_url(self, key: str, message: str, url: str) -> UrlAnswer:
        """Ask the user to open a page.

        The answer is the user's consent, not what was done on the page: see `wait_for`.
        """
        return await self._ask(questions.url, key, message, url)

    async def sample(
        self,
        key: str,
        messages: MessageLike | Sequence[MessageLike],
        *,
        max_tokens: int,
        **options: Unpack[SamplingOptions],
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """Ask the client's model. Deprecated by the specification, with all of sampling."""
        return await self._ask(questions.sampling, key, messages, max_tokens=max_tokens, **options)

    async def list_roots(self, key: str = "roots") -> list[Root]:
        """Ask for the folders that the client works in. Deprecated by the specification."""
        return await self._ask(questions.roots, key)

    async def _ask(
        self, build_question: Callable[P, Question[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        round = await self._entered()
        try:
            question = build_question(*args, **kwargs)
        except QuestionRefusedError:
            await asyncio.sleep(0)  # so that code which retries forever does not block other tasks
            raise
        try:
            return await round.ask(question)
        except UnansweredError as why:
            raise answer_error(why) from None

    async def become_task(self) -> None:
        """Continue the call as a task: the client gets a handle at once, and asks for the result
        later.

        Call it before work that takes long. The round ends here, and the task runs the function again
        from the top: what must not happen twice before this is a step. Returns at once, and the call
        simply goes on, if it is a task already or cannot become one: for a client that cannot follow
        tasks, for a tool without the option `tasks`, for prompts and resources. Not inside a step.
        """
        round = await self._entered()
        await round.become_task()

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
        """Run `function` once: later rounds get its result without calling it again.

        A step is identified by its name and its arguments, which must be data; the same name and
        arguments again are the next occurrence. It may run twice if a process dies during it: a
        parameter `idempotency_key` is the same then. A plain `def` runs in a thread. The result is
        recorded by its return annotation (as JSON without one), and the value read back from that
        is returned. A step must not ask questions or begin steps.
        """
        round = await self._entered()
        return await round.step(name, function, args, kwargs)

    async def in_thread(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function in a thread of the tool's own, where `current_sync` returns this
        call's context."""
        round = await self._entered()
        return await round.in_thread(partial(function, *args, **kwargs))

    async def wait_for(self, key: str, timeout: float) -> bool:  # noqa: ASYNC109 - the author's
        """Wait until `done_url(key)` was confirmed or `callback(key)` was posted to; False if
        neither happened within `timeout` seconds.

        The tool's time limit is suspended meanwhile. Raises LinkRefusedError.
        """
        round = await self._entered()
        return await round.wait_for(key, seconds(timeout))

    @property
    def store(self) -> Store:
        """The store of the tenant's tools: JSON by key, written by revision."""
        self._own.guard()
        return ContextStore(self, attrgetter("ports.store"))

    @property
    def user_store(self) -> Store:
        """The store of the person behind the call in this tenant, deleted with their membership. For
        callers without a person (see `user`), every access raises StoreRefusedError."""
        self._own.guard()
        return ContextStore(self, attrgetter("ports.user_store"))

    async def _entered(self) -> Round:
        """Return the round. Yields to the event loop if it fails, so that retries do not block
        other tasks.

        Raises CallEndedError and ForeignContextError.
        """
        try:
            return self._round
        except Exception:
            await asyncio.sleep(0)
            raise


class ContextStore:
    """Implements `ports.Store` with a store of the round, for code of the call only."""

    __slots__ = ("_of", "_store_of")

    def __init__(self, of: Context, store_of: Callable[[Round], Store]) -> None:
        self._of = of
        self._store_of = store_of

    async def get(self, key: str) -> Stored:
        """Return the value of the key, with its revision. Raises StoreRefusedError."""
        round = await self._of._entered()
        return await self._store_of(round).get(key)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        """Store the value, if the stored one has this revision. Raises StoreRefusedError."""
        round = await self._of._entered()
        return await self._store_of(round).put(key, value, revision)

    async def delete(self, key: str, revision: int) -> bool:
        """Delete the value, if it has this revision. Raises StoreRefusedError."""
        round = await self._of._entered()
        return await self._store_of(round).delete(key, revision)


RUNNING: ContextVar[Context] = ContextVar("mcphost_context")
"""The context of the running tool. Kinds set it for each round."""


def current() -> Context:
    """Return the context of the call that this code runs for.

    Works in the tool, in tasks it starts and in threads entered by `ctx.in_thread`,
    `asyncio.to_thread` and asgiref's `sync_to_async`. Raises RuntimeError elsewhere.
    """
    context = RUNNING.get(None)
    if context is None or not context._own.tasks.runs_here:
        raise RuntimeError("no tool is running here: ctx.in_thread makes a thread part of its call")
    return context


def accepted(key: str, answer: FormAnswer[T]) -> T:
    """Return the values of an accepted form. Raises Declined and Cancelled."""
    if answer.action == "decline":
        raise Declined(key)
    if answer.content is None:
        raise Cancelled(key)
    return answer.content


def agreed(key: str, answer: UrlAnswer) -> None:
    """Return if the user agreed to open the page. Raises Declined and Cancelled."""
    if answer.action == "decline":
        raise Declined(key)
    if answer.action == "cancel":
        raise Cancelled(key)


def seconds(timeout: float) -> float:
    """Check a timeout. Raises ValueError for an invalid one."""
    if not 0 <= timeout < math.inf:
        raise ValueError("a timeout is a number of seconds, not below 0")
    return timeout
