"""Only code of its own call may use a context. Other code gets an error, and nothing is sent."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async

from mcphost.kinds.python.completers import completer_of
from mcphost.runtime.call import Call
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.memory import MemoryLinks, MemoryStore
from mcphost.runtime.notification_channel import MAX_MISUSES
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import FixedPorts, Misuse
from mcphost.runtime.program import Program
from mcphost.runtime.threads import ToolThreads
from mcphost.sdk import (
    CallEndedError,
    Context,
    ForeignContextError,
    SyncContext,
    complete,
    current,
    current_sync,
    prompt,
    resource,
)
from mcphost.sdk.context import ContextStore
from mcphost.sdk.sync import SyncStore
from tests.kinds.rounds import Notes, a_call, program, seen
from tests.kinds.rounds_with_client import CAPABLE, Name

PATIENCE = 30

USES: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "announce": lambda ctx: ctx.announce("notes://today"),
        "announce_list": lambda ctx: ctx.announce_list("tools"),
        "ask_form": lambda ctx: ctx.ask_form("who", "Who?", Name),
        "ask_url": lambda ctx: ctx.ask_url("page", "Open this", "https://example.com/"),
        "become_task": lambda ctx: ctx.become_task(),
        "call_id": lambda ctx: ctx.call_id,
        "client": lambda ctx: ctx.client,
        "close_stream": lambda ctx: ctx.close_stream(),
        "debug": lambda ctx: ctx.debug("heard"),
        "done_url": lambda ctx: ctx.done_url("paid"),
        "callback": lambda ctx: ctx.callback("shipped"),
        "elicit": lambda ctx: ctx.elicit("who", "Who?", Name),
        "error": lambda ctx: ctx.error("heard"),
        "in_thread": lambda ctx: ctx.in_thread(threading.get_ident),
        "info": lambda ctx: ctx.info("heard"),
        "list_roots": lambda ctx: ctx.list_roots(),
        "log": lambda ctx: ctx.log("info", "heard"),
        "now": lambda ctx: ctx.now(),
        "principal": lambda ctx: ctx.principal,
        "progress": lambda ctx: ctx.progress(1),
        "random": lambda ctx: ctx.random(),
        "replaying": lambda ctx: ctx.replaying,
        "report_progress": lambda ctx: ctx.report_progress(1, 2),
        "require": lambda ctx: ctx.require("elicitation"),
        "round": lambda ctx: ctx.round,
        "sample": lambda ctx: ctx.sample("sum", "Sum up", max_tokens=9),
        "step": lambda ctx: ctx.step("s", threading.get_ident),
        "store": lambda ctx: ctx.store,
        "user": lambda ctx: ctx.user,
        "user_store": lambda ctx: ctx.user_store,
        "tenant": lambda ctx: ctx.tenant,
        "uuid": lambda ctx: ctx.uuid(),
        "wait_for": lambda ctx: ctx.wait_for("paid", 1),
        "warning": lambda ctx: ctx.warning("heard"),
    }
)
"""A use of each member of a context."""

AWAITED = [name for name in USES if inspect.iscoroutinefunction(getattr(Context, name))]

STORE_USES: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "delete": lambda store: store.delete("a", 1),
        "get": lambda store: store.get("a"),
        "put": lambda store: store.put("a", "taken", 0),
    }
)
"""A use of each member of a store."""


def _members(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Context, SyncContext])
def test_every_context_member_is_covered_by_these_tests(kind: type) -> None:
    assert _members(kind) == set(USES)


@pytest.mark.parametrize("kind", [ContextStore, SyncStore])
def test_every_store_member_is_covered_by_these_tests(kind: type) -> None:
    assert _members(kind) == set(STORE_USES)


class Party:
    """One call of a tenant, with everything that it sends and all misuses reported for it."""

    def __init__(self, tenant: int) -> None:
        self.notes = Notes()
        self.announced: list[str] = []
        self.closed: list[bool] = []
        self.store = MemoryStore()
        self.misuses: list[tuple[Misuse, Call | None]] = []
        self.call = a_call(**CAPABLE)._replace(tenant=UUID(int=tenant))
        self.ports = FixedPorts(
            threads=ToolThreads(4),
            notifier=self.notes,
            announcer=self,
            store=self.store,
            links=MemoryLinks(),
            may_defer=lambda: True,
            close_stream=lambda: self.closed.append(True),
            misused=lambda misuse, other: self.misuses.append((misuse, other)),
        )

    def updated(self, uri: str) -> None:
        self.announced.append(uri)

    def list_changed(self, name: str) -> None:
        self.announced.append(name)

    async def run(self, what: Program | Callable[..., Any]) -> Outcome:
        """Run one round of a program, or of a function as a tool."""
        runs = what if hasattr(what, "advance") else program(what)
        async with asyncio.timeout(PATIENCE):
            return await runs.advance(self.call, EMPTY, self.ports)

    async def run_as(self, way: str, work: "Work") -> Outcome:
        """Run one round of work as a tool, a prompt, or any other way that gets a context."""
        if way == "completer":
            argument = {"argument": {"name": "name", "value": ""}, "context": {"arguments": {}}}
            self.call = self.call._replace(arguments=argument)
        return await self.run(WAYS[way](work))

    async def assert_untouched(self) -> None:
        """Assert that no notification, question, announcement or stored value was made in its name."""
        assert (self.notes.progressed, self.notes.logged) == ([], [])
        assert (self.announced, self.closed) == ([], [])
        assert (await self.store.get("a")).revision == 0


async def _value(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _used(use: Callable[[Any], Any], what: Any) -> Any:
    return await _value(use(what))


async def _caught(use: Callable[[Any], Any], what: Any) -> BaseException | None:
    """Return the error that the use raises in a coroutine."""
    try:
        await _used(use, what)
    except BaseException as error:  # noqa: BLE001 - that is what is looked at
        return error
    return None


def _caught_in_thread(use: Callable[[Any], Any], what: Any) -> BaseException | None:
    """Return the error that the use raises in a thread; awaitables are awaited on a new event loop."""
    return asyncio.run(_caught(use, what))


class Work(Protocol):
    """The code of a function that uses its context, in a coroutine or in a thread."""

    async def in_coroutine(self, ctx: Context) -> str: ...

    def in_thread(self, ctx: SyncContext) -> str: ...


class Lending:
    """Passes its context to other code, and runs until it is released."""

    def __init__(self) -> None:
        self.ctx: Any = None
        self.began, self.release = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()

    async def in_coroutine(self, ctx: Context) -> str:
        self.ctx = ctx
        self.began.set()
        await asyncio.to_thread(self.release.wait, PATIENCE)
        return "done"

    def in_thread(self, ctx: SyncContext) -> str:
        self.ctx = ctx
        self._loop.call_soon_threadsafe(self.began.set)
        self.release.wait(PATIENCE)
        return "done"


class Borrowing:
    """Uses an object of another call, and stores the error that this raised."""

    def __init__(self, use: Callable[[Any], Any], what: Any) -> None:
        self._use = use
        self._what = what
        self.raised: BaseException | None = None

    async def in_coroutine(self, ctx: Context) -> str:
        self.raised = await _caught(self._use, self._what)
        return "done"

    def in_thread(self, ctx: SyncContext) -> str:
        self.raised = _caught_in_thread(self._use, self._what)
        return "done"


Make = Callable[[Work], Program]


def _waiting(work: Work) -> Callable[..., Any]:
    async def runs(ctx: Context) -> str:
        return await work.in_coroutine(ctx)

    return runs


def _plain(work: Work) -> Callable[..., Any]:
    def runs(ctx: SyncContext) -> str:
        return work.in_thread(ctx)

    return runs


def _as_completer(work: Work) -> Program:
    @prompt
    def offered(name: str) -> str:
        return name

    @complete(offered, "name")
    async def runs(ctx: Context, typed: str) -> list[str]:
        return [await work.in_coroutine(ctx)]

    completer = completer_of(seen(offered))
    assert completer is not None
    return completer


WAYS: Mapping[str, Make] = MappingProxyType(
    {
        "tool": lambda work: program(_waiting(work)),
        "plain tool": lambda work: program(_plain(work)),
        "prompt": lambda work: program(prompt(_waiting(work))),
        "plain prompt": lambda work: program(prompt(_plain(work))),
        "resource": lambda work: program(resource("lent://it")(_waiting(work))),
        "completer": _as_completer,
    }
)
"""Every way to get a context."""


@asynccontextmanager
async def lent(lender: Party, way: str = "tool") -> AsyncIterator[Any]:
    """Yield the context of a running call. The call must complete as if the context had not been
    used."""
    lending = Lending()
    task = asyncio.create_task(lender.run_as(way, lending))
    try:
        async with asyncio.timeout(PATIENCE):
            await lending.began.wait()
        yield lending.ctx
    finally:
        lending.release.set()
    assert isinstance(await task, Complete)


async def borrow(
    borrower: Party, use: Callable[[Any], Any], what: Any, way: str = "tool"
) -> BaseException | None:
    """Return the error that a use raises in a call of the borrower."""
    borrowing = Borrowing(use, what)
    assert isinstance(await borrower.run_as(way, borrowing), Complete)
    await asyncio.sleep(0)  # reports are delivered by the event loop
    return borrowing.raised


@pytest.mark.parametrize("by", ["tool", "plain tool"])
@pytest.mark.parametrize("way", ["tool", "plain tool"])
@pytest.mark.parametrize("name", USES)
async def test_no_context_member_can_be_used_by_another_call(name: str, way: str, by: str) -> None:
    lender, borrower = Party(1), Party(2)
    async with lent(lender, way) as ctx:
        error = await borrow(borrower, USES[name], ctx, by)
    assert isinstance(error, ForeignContextError)
    assert "another call" in str(error)
    assert str(lender.call.id) not in str(error)
    await lender.assert_untouched()
    assert borrower.misuses == [(Misuse.BORROWED, lender.call)]
    assert lender.misuses == [(Misuse.LENT, None)]


@pytest.mark.parametrize("borrows", WAYS)
@pytest.mark.parametrize("lends", WAYS)
async def test_contexts_of_every_type_of_function_are_protected_from_other_calls(
    lends: str, borrows: str
) -> None:
    lender, borrower, earlier = Party(1), Party(2), Party(3)
    async with lent(earlier, borrows), lent(lender, lends) as ctx:
        assert isinstance(await borrow(borrower, USES["elicit"], ctx, borrows), ForeignContextError)
    await lender.assert_untouched()
    assert borrower.misuses == [(Misuse.BORROWED, lender.call)]
    assert lender.misuses == [(Misuse.LENT, None)]
    assert earlier.misuses == []


@pytest.mark.parametrize("name", STORE_USES)
@pytest.mark.parametrize("by", ["tool", "plain tool"])
@pytest.mark.parametrize("way", ["tool", "plain tool"])
async def test_a_store_obtained_earlier_cannot_be_used_by_another_call(
    name: str, way: str, by: str
):
    lender, borrower = Party(1), Party(2)
    async with lent(lender, way) as ctx:
        store = (ContextStore if way == "tool" else SyncStore)(ctx, attrgetter("ports.store"))
        error = await borrow(borrower, STORE_USES[name], store, by)
    assert isinstance(error, ForeignContextError)
    await lender.assert_untouched()


@pytest.mark.parametrize("way", ["tool", "plain tool"])
@pytest.mark.parametrize("name", USES)
async def test_code_outside_a_call_is_refused_with_advice(name: str, way: str) -> None:
    lender = Party(1)
    raised: list[BaseException | None] = []
    async with lent(lender, way) as ctx:
        await _in_bare_thread(lambda: raised.append(_caught_in_thread(USES[name], ctx)))
    assert isinstance(raised[0], ForeignContextError)
    assert "ctx.in_thread" in str(raised[0])
    await lender.assert_untouched()
    assert lender.misuses == [(Misuse.OUTSIDE, None)]


async def _in_bare_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    await asyncio.to_thread(thread.join, PATIENCE)


async def _in_executor(work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)


async def _on_another_loop(work: Callable[[], None]) -> None:
    await _in_bare_thread(lambda: asyncio.run(_in_task(work)))


@pytest.mark.parametrize("place", [_in_bare_thread, _in_executor, _on_another_loop])
async def test_a_call_is_not_inherited_where_context_variables_are_not(place):
    raised: list[Exception] = []

    async def strays(ctx: Context) -> None:
        def work() -> None:
            for use in (lambda: ctx.call_id, current, current_sync):
                try:
                    use()
                except (ForeignContextError, RuntimeError) as error:
                    raised.append(error)

        await place(work)

    assert isinstance(await Party(1).run(strays), Complete)
    assert [type(each) for each in raised] == [ForeignContextError, RuntimeError, RuntimeError]
    assert all("ctx.in_thread" in str(each) for each in raised)


async def _in_task(work: Callable[[], Any], **options: Any) -> Any:
    async def run() -> Any:
        return work()

    return await asyncio.create_task(run(), **options)


async def _in_group(work: Callable[[], Any]) -> Any:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_in_task(work))
    return task.result()


async def _in_clean_task(work: Callable[[], Any]) -> Any:
    return await _in_task(work, context=contextvars.Context())


async def _in_callback(work: Callable[[], Any]) -> Any:
    found = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: found.set_result(work()))
    return await found


async def _in_own_thread(work: Callable[[], Any]) -> Any:
    return await current().in_thread(work)


async def _in_loop_of_a_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(lambda: asyncio.run(_in_task(work)))


async def _in_thread_of_django(work: Callable[[], Any]) -> Any:
    return await sync_to_async(work)()


@pytest.mark.parametrize(
    "place",
    [
        _in_task,
        _in_group,
        _in_clean_task,
        _in_callback,
        _in_own_thread,
        _in_loop_of_a_thread,
        _in_thread_of_django,
        asyncio.to_thread,
    ],
)
async def test_code_started_by_a_call_belongs_to_the_call(place: Any) -> None:
    async def goes_there(ctx: Context) -> bool:
        def work() -> UUID:
            return ctx.call_id

        found: UUID = await place(work)
        return found == ctx.call_id

    party = Party(1)
    outcome = await party.run(goes_there)
    assert isinstance(outcome, Complete)
    assert outcome.result["structuredContent"] is True
    assert party.misuses == []


async def test_a_task_belongs_to_the_call_that_starts_it_whatever_context_it_runs_in() -> None:
    lender, borrower = Party(1), Party(2)
    variables: list[contextvars.Context] = []
    release = asyncio.Event()
    kept: list[Context] = []

    async def gives(ctx: Context) -> None:
        kept.append(ctx)
        variables.append(contextvars.copy_context())
        release.set()
        await over.wait()

    over = asyncio.Event()
    task = asyncio.create_task(lender.run(gives))
    await release.wait()

    def in_those(use: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda ctx: asyncio.create_task(_used(use, ctx), context=variables[0])

    asked = await borrow(borrower, in_those(USES["elicit"]), kept[0])
    found = await borrow(Party(3), in_those(lambda _: current()), kept[0])
    over.set()
    await task
    assert isinstance(asked, ForeignContextError)
    assert isinstance(found, RuntimeError)
    await lender.assert_untouched()
    assert borrower.misuses == [(Misuse.BORROWED, lender.call)]


async def test_a_coroutine_of_one_call_sends_no_input_request_when_another_awaits_it() -> None:
    lender, borrower = Party(1), Party(2)
    async with lent(lender) as ctx:
        question = ctx.elicit("who", "Who?", Name)
        raised = await borrow(borrower, lambda _: question, None)
    assert isinstance(raised, ForeignContextError)
    await lender.assert_untouched()


async def test_nested_calls_cannot_use_each_others_context() -> None:
    inner, outer = Party(1), Party(2)
    raised: list[BaseException | None] = []

    async def runs_another(ctx: Context) -> UUID:
        async def within(own: Context) -> None:
            raised.append(await _caught(USES["info"], ctx))
            own.info("within")

        await inner.run(within)
        return ctx.call_id

    assert isinstance(await outer.run(runs_another), Complete)
    assert isinstance(raised[0], ForeignContextError)
    assert inner.notes.logged == [("info", "within", None)]
    await outer.assert_untouched()


async def test_a_context_of_an_ended_call_is_refused_as_ended() -> None:
    lender, borrower = Party(1), Party(2)
    async with lent(lender) as ctx:
        pass
    assert isinstance(await borrow(borrower, USES["info"], ctx), CallEndedError)
    assert lender.misuses == [(Misuse.OVER, None)]
    assert borrower.misuses == []


@pytest.mark.parametrize("way", ["tool", "plain tool"])
@pytest.mark.parametrize("name", USES)
async def test_no_context_member_can_be_used_after_its_call(name: str, way: str) -> None:
    lender = Party(1)
    async with lent(lender, way) as ctx:
        pass
    if way == "tool":
        assert isinstance(await _caught(USES[name], ctx), CallEndedError)
    else:
        assert isinstance(
            await asyncio.to_thread(_caught_in_thread, USES[name], ctx), CallEndedError
        )
    await lender.assert_untouched()


async def test_a_thread_that_outlives_its_call_cannot_use_the_context_of_another() -> None:
    lender, borrower = Party(1), Party(2)
    borrower.ports = borrower.ports._replace(limits=borrower.ports.limits._replace(seconds=0.01))
    go_on, tried = threading.Event(), threading.Event()
    raised: list[BaseException | None] = []

    async with lent(lender) as ctx:

        def outlives() -> None:
            go_on.wait(PATIENCE)
            raised.append(_caught_in_thread(USES["info"], ctx))
            tried.set()

        assert not isinstance(await borrower.run(outlives), Complete)
        go_on.set()
        assert await asyncio.to_thread(tried.wait, PATIENCE)
        await asyncio.sleep(0)
    assert isinstance(raised[0], ForeignContextError)
    assert borrower.misuses == [(Misuse.BORROWED, lender.call)]


async def test_an_endless_misuse_yields_to_other_code_and_is_reported_a_limited_number_of_times() -> (
    None
):
    lender, borrower = Party(1), Party(2)
    enough = asyncio.Event()

    async with lent(lender) as ctx:
        uses = [partial(USES[name], ctx) for name in AWAITED]
        uses += [
            partial(use, ContextStore(ctx, attrgetter("ports.store")))
            for use in STORE_USES.values()
        ]

        async def tries_for_ever() -> None:
            for tried in count():
                with suppress(ForeignContextError):
                    await uses[tried % len(uses)]()
                if tried > MAX_MISUSES:
                    enough.set()

        task = asyncio.create_task(borrower.run(tries_for_ever))
        async with asyncio.timeout(PATIENCE):
            await enough.wait()
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.cancelled()
    assert len(borrower.misuses) == len(lender.misuses) == MAX_MISUSES
    await lender.assert_untouched()
