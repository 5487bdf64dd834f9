"""A blocking function asks and records with the same methods, from any of its threads."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.runtime import deadlines
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.ports import Stored
from mcphost.runtime.threads import ToolThreads
from mcphost.sdk import Context, SyncContext, current, current_sync, tool
from tests.kinds.rounds import ports
from tests.kinds.rounds_with_client import Driven, Name, accept, said
from tests.runtime.rounds import Ticking


def ask(ctx: SyncContext, key: str = "who") -> str:
    return ctx.elicit(key, "Who?", Name).name


async def test_a_plain_function_gets_a_blocking_context_whatever_its_annotation() -> None:
    def annotated(ctx: SyncContext) -> str:
        return ask(ctx)

    def otherwise(ctx: Context) -> str:
        assert isinstance(ctx, SyncContext)
        return ask(ctx)

    for function in (annotated, otherwise):
        driven = Driven(function)
        assert await driven.asks() == ["who"]
        assert await driven.completes(who=accept(name="Ada")) == "Ada"


async def test_drawn_and_recorded_values_are_the_same_in_every_round() -> None:
    ran: list[str] = []

    def note(idempotency_key: str) -> str:
        ran.append(idempotency_key)
        return "noted"

    async def note_waiting() -> str:
        await asyncio.sleep(0)
        ran.append("waited")
        return "noted"

    drawn: list[list[str]] = []

    def function(ctx: SyncContext) -> str:
        drawn.append([str(ctx.now()), str(ctx.uuid()), str(ctx.random().random())])
        assert ctx.step("note", note) == "noted"
        assert ctx.step("wait", note_waiting) == "noted"
        assert ctx.in_thread(str.upper, "a") == "A"
        return ask(ctx)

    driven = Driven(function, outside=ports()._replace(clock=Ticking()))
    await driven.asks()
    assert await driven.completes(who=accept(name="Ada")) == "Ada"
    assert drawn[0] == drawn[1]
    assert len(ran) == 2


class Kept:
    """A store with one value."""

    async def get(self, key: str) -> Stored:
        return Stored({"key": key}, 3)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        return revision == 3

    async def delete(self, key: str, revision: int) -> bool:
        return revision == 3


async def test_the_store_is_available_to_plain_and_async_functions() -> None:
    def blocking(ctx: SyncContext) -> list[Any]:
        kept = ctx.store.get("a")
        written = ctx.store.put("a", 1, kept.revision)
        return [kept.value["key"], written, ctx.store.put("a", 1, 0), ctx.store.delete("a", 3)]

    async def waiting(ctx: Context) -> list[Any]:
        kept = await ctx.store.get("a")
        written = await ctx.store.put("a", 1, kept.revision)
        again = await ctx.store.put("a", 1, 0)
        return [kept.value["key"], written, again, await ctx.store.delete("a", 3)]

    for function in (blocking, waiting):
        driven = Driven(function, outside=ports()._replace(store=Kept()))
        assert await driven.completes() == ["a", True, False, True]


def greet_somewhere() -> str:
    return ask(current_sync())


async def to_thread(ctx: Context) -> str:
    return await asyncio.to_thread(greet_somewhere)


async def in_a_loop_of_its_own(ctx: Context) -> str:
    async def elsewhere() -> str:
        return (await current().elicit("who", "Who?", Name)).name

    return await asyncio.to_thread(lambda: asyncio.run(elsewhere()))


@pytest.mark.parametrize("function", [to_thread, in_a_loop_of_its_own])
async def test_threads_that_inherit_the_context_can_request_input(
    function: Callable[..., Any],
) -> None:
    driven = Driven(function)
    assert await driven.asks() == ["who"]
    assert await driven.completes(who=accept(name="Ada")) == "Ada"


async def test_a_thread_that_is_no_longer_awaited_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(deadlines, "HURRY_SECONDS", 0.001)
    gate = threading.Event()

    async def function(ctx: Context) -> str:
        task = asyncio.create_task(ctx.elicit("who", "Who?", Name))
        assert await ctx.in_thread(gate.wait, 10)
        return (await task).name

    threads = ToolThreads(4)
    assert await Driven(function, outside=ports(threads=threads)).asks() == ["who"]
    assert threads.lost == 1
    gate.set()


async def test_input_requests_of_threads_and_tasks_belong_to_their_own_calls() -> None:
    async def function(ctx: Context, mine: str) -> str:
        names = await asyncio.gather(ctx.in_thread(ask, current_sync(), "a"), asking(ctx))
        return f"{mine}: {' '.join(names)}"

    async def asking(ctx: Context) -> str:
        return (await ctx.elicit("b", "Who?", Name)).name

    async def one(mine: str) -> None:
        driven = Driven(tool(function))
        driven.call = driven.call._replace(arguments={"mine": mine})
        answers: dict[str, Any] = {}
        outcome = await driven.advance()
        while not isinstance(outcome, Complete):
            assert driven.asked
            answers = {key: accept(name=f"{mine}{key}") for key in driven.asked}
            outcome = await driven.advance(**answers)
        assert said(outcome) == f"{mine}: {mine}a {mine}b"

    await asyncio.gather(*(one(str(number)) for number in range(4)))
