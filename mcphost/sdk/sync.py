"""The context of a call for plain functions: as `Context`, without `await`."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from mcp_types import CreateMessageResult, CreateMessageResultWithTools, Root
from pydantic import BaseModel

from mcphost.runtime.ports import Store, Stored
from mcphost.runtime.questions import Question, UnansweredError
from mcphost.runtime.rounds import Round
from mcphost.sdk import questions
from mcphost.sdk.base_context import BaseContext
from mcphost.sdk.context import accepted, current, seconds
from mcphost.sdk.errors import answer_error
from mcphost.sdk.questions import FormAnswer, SamplingOptions, UrlAnswer
from mcphost.sdk.sampling import MessageLike

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class SyncContext(BaseContext):
    """`Context` for code that runs in a thread: the same names, as methods that block.

    A `def` tool gets it as a parameter; other code in threads gets it from `current_sync()`. On the
    event loop's thread, asking and recording raise an error.
    """

    __slots__ = ()

    def elicit(self, key: str, message: str, model: type[M]) -> M:
        """See `Context.elicit`."""
        return accepted(key, self.ask_form(key, message, model))

    @overload
    def ask_form(self, key: str, message: str, model: type[M]) -> FormAnswer[M]: ...
    @overload
    def ask_form(
        self, key: str, message: str, model: Mapping[str, Any]
    ) -> FormAnswer[dict[str, Any]]: ...
    def ask_form(self, key: str, message: str, model: Any) -> FormAnswer[Any]:
        """See `Context.ask_form`."""
        answer: FormAnswer[Any] = self._ask(questions.form(key, message, model))
        return answer

    def ask_url(self, key: str, message: str, url: str) -> UrlAnswer:
        """See `Context.ask_url`."""
        return self._ask(questions.url(key, message, url))

    def sample(
        self,
        key: str,
        messages: MessageLike | Sequence[MessageLike],
        *,
        max_tokens: int,
        **options: Unpack[SamplingOptions],
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """See `Context.sample`."""
        return self._ask(questions.sampling(key, messages, max_tokens=max_tokens, **options))

    def list_roots(self, key: str = "roots") -> list[Root]:
        """See `Context.list_roots`."""
        return self._ask(questions.roots(key))

    def _ask(self, question: Question[T]) -> T:
        round = self._round
        try:
            return round.blocking(round.ask(question))
        except UnansweredError as why:
            raise answer_error(why) from None

    def become_task(self) -> None:
        """See `Context.become_task`."""
        round = self._round
        round.blocking(round.become_task())

    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Context.step`; the function runs in this thread."""
        value: T = self._round.step_here(name, function, args, kwargs)
        return value

    def in_thread(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function here: this is a thread already."""
        self._own.guard()
        return function(*args, **kwargs)

    def wait_for(self, key: str, timeout: float) -> bool:
        """See `Context.wait_for`."""
        round = self._round
        return round.blocking(round.wait_for(key, seconds(timeout)))

    @property
    def store(self) -> "SyncStore":
        """See `Context.store`."""
        self._own.guard()
        return SyncStore(self, attrgetter("ports.store"))

    @property
    def user_store(self) -> "SyncStore":
        """See `Context.user_store`."""
        self._own.guard()
        return SyncStore(self, attrgetter("ports.user_store"))


class SyncStore:
    """A store of the round, for code of the call that runs in a thread."""

    __slots__ = ("_of", "_store_of")

    def __init__(self, of: SyncContext, store_of: Callable[[Round], Store]) -> None:
        self._of = of
        self._store_of = store_of

    def get(self, key: str) -> Stored:
        """Return the value of the key, with its revision. Raises StoreRefusedError."""
        round = self._of._round
        return round.blocking(self._store_of(round).get(key))

    def put(self, key: str, value: Any, revision: int) -> bool:
        """Store the value, if the stored one has this revision. Raises StoreRefusedError."""
        round = self._of._round
        return round.blocking(self._store_of(round).put(key, value, revision))

    def delete(self, key: str, revision: int) -> bool:
        """Delete the value, if it has this revision. Raises StoreRefusedError."""
        round = self._of._round
        return round.blocking(self._store_of(round).delete(key, revision))


def current_sync() -> SyncContext:
    """Return the context of the call that this thread runs for.

    Works in `def` tools, and in threads entered by `ctx.in_thread`, `asyncio.to_thread` and
    asgiref's `sync_to_async`. Raises RuntimeError elsewhere.
    """
    return SyncContext(current()._own)
