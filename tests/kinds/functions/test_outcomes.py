"""Tests of the outcome of a round whose function reacts to unwinding, interruption or a timeout."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable
from itertools import count, repeat
from typing import Any

import pytest

from mcphost.runtime import deadlines
from mcphost.runtime.outcomes import Complete, Failed, FailureKind, InputRequired, Yielded
from mcphost.sdk import Context, SyncContext, ToolError, prompt, resource
from tests.kinds.rounds import ports
from tests.kinds.rounds_with_client import Driven, Name, accept, said


async def hang() -> None:
    await asyncio.Event().wait()


async def ask(ctx: Context, key: str = "who") -> str:
    return (await ctx.elicit(key, "Who?", Name)).name


async def failed(function: Callable[..., Any], **limits: Any) -> Failed:
    outcome = await Driven(function, outside=ports(**limits)).advance()
    assert isinstance(outcome, Failed), outcome
    return outcome


async def test_an_error_wins_over_a_concurrent_input_request() -> None:
    async def fails() -> None:
        raise ValueError("real")

    async def in_gather(ctx: Context) -> None:
        await asyncio.gather(ask(ctx), fails())

    async def in_step(ctx: Context) -> None:
        await asyncio.gather(ask(ctx), ctx.step("load", fails))

    async def in_group(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(ctx))
            group.create_task(fails())

    async def after_swallowing(ctx: Context) -> None:
        with contextlib.suppress(BaseException):
            await ask(ctx)
        raise ValueError("real")

    for function in (in_gather, in_step, in_group, after_swallowing):
        error = (await failed(function)).error
        assert error.kind is FailureKind.CRASHED
        assert "ValueError: real" in error.detail


async def test_an_error_in_one_exception_group_with_unwinding_wins_and_is_reported_alone() -> None:
    async def function(ctx: Context) -> None:
        async def fails_when_unwound() -> None:
            try:
                await ask(ctx, "b")
            finally:
                raise ToolError("real")

        async with asyncio.TaskGroup() as group:
            group.create_task(ask(ctx, "a"))
            group.create_task(fails_when_unwound())

    outcome = await Driven(function).advance()
    assert isinstance(outcome, Complete)
    assert outcome.is_error
    assert said(outcome) == "real"


@pytest.mark.parametrize("swallow", ["suppress", "gather", "task", "left", "timeout"])
async def test_the_input_request_is_sent_whatever_the_function_returns_instead(
    swallow: str,
) -> None:
    async def function(ctx: Context) -> int:
        match swallow:
            case "suppress":
                with contextlib.suppress(BaseException):
                    await ask(ctx)
            case "gather":
                await asyncio.gather(ask(ctx), return_exceptions=True)
            case "task":
                task = asyncio.create_task(ask(ctx))
                await asyncio.wait([task])
            case "left":
                tasks.append(asyncio.create_task(ask(ctx)))
                await asyncio.sleep(0)
            case "timeout":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ask(ctx), 0)
                    await asyncio.sleep(0)
        return "no number"  # type: ignore[return-value]

    tasks: list[asyncio.Task[str]] = []
    outcome = await Driven(function).advance()
    if swallow == "timeout":  # it was cancelled before it could ask
        assert isinstance(outcome, Failed)
    else:
        assert isinstance(outcome, InputRequired)


async def test_a_function_that_waits_for_an_unwound_task_is_unwound(monkeypatch):
    monkeypatch.setattr(deadlines, "HURRY_SECONDS", 0.001)

    async def function(ctx: Context) -> str:
        async def worker() -> None:
            await queue.put(await ask(ctx))

        queue: asyncio.Queue[str] = asyncio.Queue()
        task = asyncio.create_task(worker())
        name = await queue.get()
        await task
        return name

    driven = Driven(function)
    assert await driven.asks() == ["who"]
    assert await driven.completes(who=accept(name="Ada")) == "Ada"


async def test_a_function_that_swallows_every_exception_ends_at_its_time_limit(monkeypatch):
    monkeypatch.setattr(deadlines, "WARNING_SECONDS", 0.001)

    def asks(keys: Iterable[str]) -> Callable[..., Any]:
        async def function(ctx: Context) -> None:
            for key in keys:
                with contextlib.suppress(BaseException):
                    await ask(ctx, key)

        return function

    for keys in (repeat("who"), map(str, count()), repeat("no key!")):
        others: list[int] = []

        async def counts(others: list[int] = others) -> None:
            while True:
                others.append(1)
                await asyncio.sleep(0)

        counting = asyncio.create_task(counts())
        error = (await failed(asks(keys), seconds=0.05)).error
        counting.cancel()
        assert error.kind is FailureKind.TIMED_OUT
        assert len(others) > 10


async def test_tasks_that_swallow_every_exception_are_closed_before_the_outcome_is_returned(
    monkeypatch,
):
    monkeypatch.setattr("mcphost.runtime.tool_tasks.PASS_SECONDS", 0.001)

    async def function(ctx: Context) -> str:
        async def for_ever() -> None:
            while True:
                with contextlib.suppress(BaseException):
                    await ctx.elicit("other", "What?", Name)

        tasks.append(asyncio.create_task(for_ever()))
        return await ask(ctx)

    tasks: list[asyncio.Task[None]] = []
    assert set(await Driven(function).asks()) == {"who", "other"}
    assert tasks[0].done()


async def test_a_function_that_swallows_yielding_still_yields() -> None:
    async def note() -> str:
        return "noted"

    async def function(ctx: Context) -> str:
        with contextlib.suppress(BaseException):
            return await ctx.step("a", note)
        return "never mind"

    driven = Driven(function, outside=ports()._replace(reason_to_move=lambda: True))
    assert isinstance(await driven.advance(), Yielded)


class SlowLinks:
    """Links whose confirmation takes a while."""

    def page(self, key: str) -> str:
        return f"https://example.com/done/{key}"

    def callback(self, key: str) -> str:
        return f"https://example.com/callback/{key}"

    async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
        await asyncio.sleep(0.05)
        return seconds > 1


async def test_the_time_limit_pauses_while_a_function_waits_for_a_link() -> None:
    async def waits(ctx: Context) -> list[bool]:
        await asyncio.sleep(0)
        return await asyncio.gather(ctx.wait_for("a", 2), ctx.wait_for("b", 1))

    async def waits_at_once(ctx: Context) -> list[bool]:
        return [await ctx.wait_for("a", 2), await ctx.wait_for("b", 1)]

    def blocks(ctx: SyncContext) -> list[bool]:
        return [ctx.wait_for("a", 2), ctx.wait_for("b", 1)]

    outside = ports(seconds=0.04)._replace(links=SlowLinks())
    for function in (waits, waits_at_once, blocks):
        assert await Driven(function, outside=outside).completes() == [True, False]


async def test_the_time_limit_continues_after_a_wait() -> None:
    async def waits(ctx: Context) -> None:
        await ctx.wait_for("a", 2)
        await hang()

    outside = ports(seconds=0.02)._replace(links=SlowLinks())
    outcome = await Driven(waits, outside=outside).advance()
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.TIMED_OUT


async def test_prompts_and_resources_request_input_like_tools() -> None:
    @prompt
    async def greeting(ctx: Context) -> str:
        return f"Greet {await ask(ctx)}"

    @resource("notes://mine")
    async def notes(ctx: Context) -> str:
        return f"Notes of {await ask(ctx)}"

    for function, key in ((greeting, "messages"), (notes, "contents")):
        driven = Driven(function)
        assert await driven.asks() == ["who"]
        outcome = await driven.advance(who=accept(name="Ada"))
        assert isinstance(outcome, Complete)
        assert "Ada" in str(outcome.result[key])
