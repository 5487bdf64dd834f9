"""Tests of the outcome of a round whose function reacts to unwinding, interruption or a timeout."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.runtime import deadlines
from mcphost.runtime.outcomes import Complete, Failed, FailureKind, InputRequired, Yielded
from mcphost.sdk import CallEnded, Context, SyncContext, ToolError, prompt, resource, tool
from tests.kinds.asking import Driven, Name, accept, said
from tests.kinds.rounds import ports


async def hang() -> None:
    await asyncio.Event().wait()


async def ask(ctx: Context, key: str = "who") -> str:
    return (await ctx.elicit(key, "Who?", Name)).name


async def failed(function: Callable[..., Any], **limits: Any) -> Failed:
    outcome = await Driven(function, outside=ports(**limits)).advance()
    assert isinstance(outcome, Failed), outcome
    return outcome


async def test_a_real_error_beside_a_question_wins() -> None:
    async def fails() -> None:
        raise ValueError("real")

    async def in_gather(ctx: Context) -> None:
        await asyncio.gather(ask(ctx), fails())

    async def in_group(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(ctx))
            group.create_task(fails())

    async def after_swallowing(ctx: Context) -> None:
        with contextlib.suppress(BaseException):
            await ask(ctx)
        raise ValueError("real")

    for function in (in_gather, in_group, after_swallowing):
        error = (await failed(function)).error
        assert error.kind is FailureKind.CRASHED
        assert "ValueError: real" in error.detail


async def test_a_real_error_in_one_group_with_unwinding_wins_and_is_told_alone() -> None:
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


async def test_an_error_of_a_step_beside_a_question_wins() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ToolError("no such item")

    async def function(ctx: Context) -> None:
        await asyncio.gather(ask(ctx), ctx.step("load", fails))

    outcome = await Driven(function).advance()
    assert isinstance(outcome, Complete)
    assert said(outcome) == "no such item"


@pytest.mark.parametrize("swallow", ["suppress", "gather", "task", "timeout"])
async def test_whatever_a_function_returns_instead_its_question_is_asked(swallow: str) -> None:
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
            case "timeout":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ask(ctx), 0)
                    await asyncio.sleep(0)
        return "no number"  # type: ignore[return-value]

    outcome = await Driven(function).advance()
    if swallow == "timeout":  # it was cancelled before it could ask
        assert isinstance(outcome, Failed)
    else:
        assert isinstance(outcome, InputRequired)


async def test_a_question_in_a_task_that_nobody_awaits_is_asked() -> None:
    async def function(ctx: Context) -> str:
        tasks.append(asyncio.create_task(ask(ctx)))
        await asyncio.sleep(0)
        return "done"

    tasks: list[asyncio.Task[str]] = []
    assert await Driven(function).asks() == ["who"]


async def test_a_function_that_waits_for_what_an_unwound_task_would_have_done_is_unwound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


async def test_what_is_tidied_up_in_the_meantime_is_tidied_up_in_peace() -> None:
    tidied: list[str] = []

    async def function(ctx: Context) -> str:
        try:
            return await ask(ctx)
        finally:
            await asyncio.sleep(0.01)
            tidied.append("up")

    driven = Driven(function)
    assert await driven.asks() == ["who"]
    assert tidied == ["up"]


async def test_a_function_that_swallows_everything_and_goes_on_ends_when_its_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadlines, "WARNING_SECONDS", 0.001)

    async def asks_for_ever(ctx: Context) -> None:
        while True:
            with contextlib.suppress(BaseException):
                await ask(ctx)

    async def asks_ever_other_things(ctx: Context) -> None:
        number = 0
        while True:
            number += 1
            with contextlib.suppress(BaseException):
                await ask(ctx, f"q{number}")

    async def asks_what_must_not_be_asked(ctx: Context) -> None:
        while True:
            with contextlib.suppress(BaseException):
                await ask(ctx, "no key!")

    for function in (asks_for_ever, asks_ever_other_things, asks_what_must_not_be_asked):
        others: list[int] = []

        async def counts(others: list[int] = others) -> None:
            while True:
                others.append(1)
                await asyncio.sleep(0)

        counting = asyncio.create_task(counts())
        error = (await failed(function, seconds=0.05)).error
        counting.cancel()
        assert error.kind is FailureKind.TIMED_OUT
        assert len(others) > 10


async def test_tasks_that_swallow_everything_are_closed_before_the_outcome_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


async def test_where_the_process_leaves_the_call_goes_on_elsewhere_from_a_new_step() -> None:
    leaving, ran = [True], []

    async def note(what: str) -> str:
        ran.append(what)
        return what

    async def function(ctx: Context) -> str:
        return await ctx.step("a", note, "a") + await ctx.step("b", note, "b")

    driven = Driven(function, outside=ports()._replace(leaving=lambda: leaving[0]))
    assert isinstance(await driven.advance(), Yielded)
    assert ran == ["a"]
    leaving[0] = False
    assert await driven.completes() == "ab"
    assert ran == ["a", "b"]


async def test_a_question_counts_more_than_that_the_process_leaves() -> None:
    async def note() -> str:
        await asyncio.sleep(0)
        return "noted"

    async def function(ctx: Context) -> str:
        _, name = await asyncio.gather(ctx.step("a", note), ask(ctx))
        return name

    driven = Driven(function, outside=ports()._replace(leaving=lambda: True))
    assert await driven.asks() == ["who"]
    assert len(driven.journal.recorded) == 1


async def test_a_function_that_swallows_that_the_process_leaves_leaves_all_the_same() -> None:
    async def note() -> str:
        return "noted"

    async def function(ctx: Context) -> str:
        with contextlib.suppress(BaseException):
            return await ctx.step("a", note)
        return "never mind"

    driven = Driven(function, outside=ports()._replace(leaving=lambda: True))
    assert isinstance(await driven.advance(), Yielded)


class SlowLinks:
    """Links whose confirmation takes a while."""

    def page(self, key: str) -> str:
        return f"https://example.com/done/{key}"

    def callback(self, key: str) -> str:
        return f"https://example.com/callback/{key}"

    async def wait(self, key: str, seconds: float, address: str) -> bool:
        await asyncio.sleep(0.05)
        return seconds > 1


async def test_the_time_limit_rests_while_a_function_waits_at_a_link() -> None:
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


async def test_the_time_limit_goes_on_after_a_wait() -> None:
    async def waits(ctx: Context) -> None:
        await ctx.wait_for("a", 2)
        await hang()

    outside = ports(seconds=0.02)._replace(links=SlowLinks())
    outcome = await Driven(waits, outside=outside).advance()
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.TIMED_OUT


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
async def test_a_wait_takes_a_time_that_makes_sense(seconds: float) -> None:
    async def waits(ctx: Context) -> None:
        await ctx.wait_for("a", seconds)

    assert "ValueError: a timeout is a number of seconds" in (await failed(waits)).error.detail


async def test_authors_errors_say_what_is_wrong_in_the_log_and_nothing_to_the_caller() -> None:
    async def twice(ctx: Context) -> None:
        await asyncio.gather(ask(ctx, "a"), ask(ctx, "a"))

    async def unstorable(ctx: Context) -> None:
        async def thing() -> int:
            return object()  # type: ignore[return-value]

        await ctx.step("thing", thing)

    async def in_step(ctx: Context) -> None:
        async def asks() -> str:
            return await ask(ctx)

        await ctx.step("outer", asks)

    texts = {
        twice: "the question 'a' is asked twice in one round",
        in_step: "the question 'who' is asked inside another step",
        unstorable: "the result of step 'thing' cannot be recorded",
    }
    for function, text in texts.items():
        error = (await failed(function)).error
        assert error.kind is FailureKind.CRASHED
        assert error.message == "The tool failed. The error has been logged."
        assert text in error.detail


async def test_after_the_call_neither_context_asks_or_records() -> None:
    kept: list[Any] = []

    async def function(ctx: Context) -> None:
        kept.append(ctx)

    def blocking(ctx: SyncContext) -> None:
        kept.append(ctx)

    await Driven(function).completes_with_nothing()
    await Driven(blocking).completes_with_nothing()
    ctx, sync = kept
    for use in (
        lambda: ask(ctx),
        lambda: ctx.step("s", hang),
        lambda: ctx.wait_for("a", 1),
        lambda: asyncio.to_thread(sync.elicit, "who", "Who?", Name),
        lambda: asyncio.to_thread(sync.step, "s", print),
    ):
        with pytest.raises(CallEnded):
            await use()
    for draw in (ctx.now, ctx.uuid, ctx.random, lambda: ctx.replaying, lambda: ctx.store):
        with pytest.raises(CallEnded):
            draw()


async def test_a_function_knows_whether_it_was_here_before() -> None:
    async def function(ctx: Context) -> list[bool]:
        before = ctx.replaying
        await ask(ctx)
        return [before, ctx.replaying]

    driven = Driven(function)
    await driven.asks()
    assert await driven.completes(who=accept(name="Ada")) == [True, False]


async def test_prompts_and_resources_ask_the_same_way() -> None:
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


async def test_what_a_tool_requires_may_be_dotted() -> None:
    @tool(requires=["elicitation.form", "sampling.tools"])
    async def function(ctx: Context) -> str:
        return await ask(ctx)

    assert await Driven(function).asks() == ["who"]
