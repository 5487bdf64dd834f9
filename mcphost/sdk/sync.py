"""One call, as a plain function that serves it sees it: the same, without `await`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from mcp_types import CreateMessageResult, CreateMessageResultWithTools, Root
from pydantic import BaseModel

from mcphost.runtime.ports import Stored
from mcphost.runtime.questions import Question, Unanswered
from mcphost.runtime.rounds import Round
from mcphost.sdk import questions
from mcphost.sdk.context import accepted, current, seconds
from mcphost.sdk.errors import told
from mcphost.sdk.questions import FormAnswer, SamplingOptions, UrlAnswer
from mcphost.sdk.sampling import Said
from mcphost.sdk.speaking import Speaking

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class SyncContext(Speaking):
    """`Context` for code that runs in a thread: the same names, which block.

    A `def` tool gets it. Elsewhere in threads `current_sync()` has it. Where the event loop runs,
    asking and recording here raise an error.
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
        asked: FormAnswer[Any] = self._ask(questions.form(key, message, model))
        return asked

    def ask_url(self, key: str, message: str, url: str) -> UrlAnswer:
        """See `Context.ask_url`."""
        return self._ask(questions.url(key, message, url))

    def sample(
        self,
        key: str,
        messages: Said | Sequence[Said],
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
        try:
            return self._round.blocking(self._round.ask(question))
        except Unanswered as why:
            raise told(why) from None

    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Context.step`; the function runs here."""
        value: T = self._round.step_here(name, function, args, kwargs)
        return value

    def in_thread(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it here: this is a thread already."""
        return function(*args, **kwargs)

    def wait_for(self, key: str, timeout: float) -> bool:
        """See `Context.wait_for`."""
        return self._round.blocking(self._round.wait_for(key, seconds(timeout)))

    @property
    def store(self) -> "SyncStore":
        """See `Context.store`."""
        self._open()
        return SyncStore(self._round)


class SyncStore:
    """What the tenant keeps for its tools, read and written from a thread."""

    __slots__ = ("_round",)

    def __init__(self, round: Round) -> None:
        self._round = round

    def get(self, key: str) -> Stored:
        """What is kept under the key. Raises StoreRefused."""
        return self._round.blocking(self._round.ports.store.get(key))

    def put(self, key: str, value: Any, revision: int) -> bool:
        """Keep it, if what is there still has that revision. Raises StoreRefused."""
        return self._round.blocking(self._round.ports.store.put(key, value, revision))

    def delete(self, key: str, revision: int) -> bool:
        """Keep nothing there, if what is there still has that revision. Raises StoreRefused."""
        return self._round.blocking(self._round.ports.store.delete(key, revision))


def current_sync() -> SyncContext:
    """The context of the call that this thread runs for.

    Known in `def` tools, and in threads entered by `ctx.in_thread`, `asyncio.to_thread` and
    asgiref's `sync_to_async`. Raises RuntimeError elsewhere.
    """
    return SyncContext(current()._round)
