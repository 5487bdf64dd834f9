"""Every end of a function becomes an outcome, and no code of it continues to run."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest

from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from mcphost.runtime.threads import ToolThreads
from mcphost.sdk import (
    CallEndedError,
    Context,
    LinkRefusedError,
    StoreRefusedError,
    ToolError,
    tool,
)
from tests.kinds.rounds import (
    TENANT,
    Notes,
    a_call,
    failure,
    outcome,
    ports,
    program,
    refusal,
    result,
)

CRASHED = "The tool failed. The error has been logged."


def raising(error: BaseException) -> list[Callable[[], Any]]:
    """Return a coroutine function, a plain one, and a coroutine function that waits first."""

    async def waiting() -> NoReturn:
        await asyncio.sleep(0)
        raise error

    async def at_once() -> NoReturn:
        raise error

    def plain() -> NoReturn:
        raise error

    return [waiting, at_once, plain]


async def test_a_coroutine_function_runs_on_the_loop() -> None:
    async def function(text: str) -> str:
        assert threading.current_thread() is threading.main_thread()
        return text.upper()

    assert await result(function, {"text": "a"}) == {"content": [{"type": "text", "text": "A"}]}


async def test_a_plain_function_runs_in_a_thread() -> None:
    def function() -> str:
        assert threading.current_thread() is not threading.main_thread()
        return threading.current_thread().name

    assert (await result(function))["content"][0]["text"].startswith("tool-")


async def test_invalid_arguments_are_a_failure_that_names_the_field() -> None:
    ran = []

    async def function(text: str, count: int = 1) -> None:
        ran.append(text)

    failed = await failure(function, {"count": "many"})
    assert failed.kind is FailureKind.INVALID_ARGUMENTS
    assert failed.message == (
        'Invalid arguments: count: is not of type "integer"; text: is required'
    )
    assert ran == []


@pytest.mark.parametrize(("text", "sent"), [("no such city", "no such city"), ("\ud800", "\ufffd")])
@pytest.mark.parametrize("error", [ToolError, LinkRefusedError, StoreRefusedError])
async def test_a_tool_error_is_the_result_for_the_caller(
    text: str, sent: str, error: type[Exception]
) -> None:
    for function in raising(error(text)):
        assert await refusal(function) == sent


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("the password is hunter2"),
        TimeoutError("of its own"),
        StopIteration(42),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError("of its own"),
        ExceptionGroup("several", [ToolError("told"), ValueError("real")]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_other_exception_is_a_crash_without_details_for_the_caller(error: BaseException):
    for function in raising(error):
        failed = await failure(function)
        assert (failed.kind, failed.message) == (FailureKind.CRASHED, CRASHED)
        assert type(error).__name__ in failed.detail
        assert "Traceback" in failed.detail
        assert failed.detail.encode()


@pytest.mark.parametrize("error", [ToolError, LinkRefusedError, StoreRefusedError])
async def test_a_group_of_tool_errors_is_reported_to_the_caller(
    error: type[Exception],
) -> None:
    async def function() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(raising(error("There is no such city."))[0]())

    assert await refusal(function) == "There is no such city."


async def test_a_missing_capability_is_a_failure_that_names_it() -> None:
    async def function(ctx: Context) -> None:
        ctx.require("elicitation.url")

    failed = await failure(function)
    assert failed.kind is FailureKind.CAPABILITY_MISSING
    assert failed.required == {"elicitation": {"url": {}}}
    assert "'elicitation.url'" in failed.message


async def test_the_capabilities_that_a_tool_requires_are_checked_before_it_runs() -> None:
    ran = []

    @tool(requires=["sampling"])
    async def function(text: str) -> None:
        ran.append(text)

    assert (await failure(function, {"text": 1})).required == {"sampling": {}}
    assert ran == []
    ended = await program(function).advance(a_call({"text": "a"}, sampling={}), EMPTY, ports())
    assert ended == Complete({"content": []})


async def test_an_invalid_result_is_a_failure_with_the_reason_only_in_the_log() -> None:
    async def function() -> int:
        return "five"  # type: ignore[return-value]

    failed = await failure(function)
    assert failed.kind is FailureKind.INVALID_RESULT
    assert failed.message == "The tool returned a result that is not valid."
    assert failed.detail == 'is not of type "integer"'


async def test_a_result_above_the_limit_is_a_failure_that_names_the_limit() -> None:
    async def function() -> str:
        return "x" * 1000

    failed = await failure(function, outside=ports(result_bytes=100))
    assert failed.kind is FailureKind.INVALID_RESULT
    assert failed.message == "The result is too large: more than 100 bytes."


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("instead", ["a value", "another error", "its own timeout"])
async def test_a_timed_out_tool_is_timed_out_however_it_reacts_to_the_cancellation(
    instead: str,
) -> None:
    async def stubborn() -> str:
        try:
            await hang()
        except asyncio.CancelledError:
            if instead == "another error":
                raise ValueError("late") from None
            if instead == "its own timeout":
                raise TimeoutError from None
        return "late"

    assert (await failure(stubborn, outside=ports(seconds=0.01))).kind is FailureKind.TIMED_OUT


async def test_a_plain_function_that_times_out_loses_its_thread() -> None:
    gate, said = threading.Event(), []

    def function(ctx: Context) -> None:
        assert gate.wait(10)
        try:
            ctx.progress(1)
        except CallEndedError:
            said.append("too late")

    threads = ToolThreads(1)
    failed = await failure(function, outside=ports(threads=threads, seconds=0.01))
    assert failed.kind is FailureKind.TIMED_OUT
    assert threads.lost == 1
    assert threads.in_use(str(TENANT)) == 1
    busy = await failure(function, outside=ports(threads=threads))
    assert busy.kind is FailureKind.OVERLOADED
    gate.set()
    async with asyncio.timeout(10):
        while threads.lost:  # noqa: ASYNC110 - threads set no asyncio event
            await asyncio.sleep(0.001)
    assert said == ["too late"]


async def test_a_tool_uses_at_most_the_threads_its_author_configured() -> None:
    gate, begun = threading.Event(), threading.Event()

    @tool(threads=1)
    def function() -> None:
        begun.set()
        assert gate.wait(10)

    run, outside = program(function), ports(threads=ToolThreads(4))
    first = asyncio.create_task(run.advance(a_call(), EMPTY, outside))
    assert await asyncio.to_thread(begun.wait, 10)
    second = await run.advance(a_call(), EMPTY, outside)
    assert isinstance(second, Failed)
    assert second.error.kind is FailureKind.OVERLOADED
    assert second.error.message == (
        "The tool is busy: all its threads are in use. Try again later."
    )
    gate.set()
    assert await first == Complete({"content": []})


async def cancel_once_begun(
    run: Callable[[], Awaitable[Any]], begun: asyncio.Event
) -> "asyncio.Task[Any]":
    task = asyncio.ensure_future(run())
    await asyncio.wait_for(begun.wait(), 10)
    task.cancel()
    await asyncio.wait([task])
    return task


@pytest.mark.parametrize("where", ["function", "child"])
async def test_a_disconnect_cancels_the_function_and_the_tasks_it_started(where: str) -> None:
    begun, heard, children = asyncio.Event(), [], []

    async def waits() -> None:
        begun.set()
        try:
            await hang()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            heard.append("cancelled")
            raise

    async def function() -> None:
        if where == "function":
            await waits()
        children.append(asyncio.create_task(waits()))
        await hang()

    assert (await cancel_once_begun(lambda: outcome(function), begun)).cancelled()
    assert heard == ["cancelled"]


async def test_a_task_cancelled_by_the_function_itself_does_not_count_as_a_disconnect() -> None:
    async def function() -> None:
        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        task.cancel()
        await task

    assert (await failure(function)).kind is FailureKind.CRASHED


def _cancel_myself(times: int = 1) -> None:
    task = asyncio.current_task()
    for _ in range(times):
        task.cancel()


async def _outcome_and_more(function: Callable[[], Any]) -> Any:
    """The outcome, if what follows it in the same task is not cancelled."""
    ended = await outcome(function)
    await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
    return ended


@pytest.mark.parametrize("times", [1, 3])
async def test_a_function_that_cancels_its_own_task_has_crashed(times: int) -> None:
    async def at_once() -> None:
        _cancel_myself(times)
        await asyncio.sleep(0)

    async def later() -> None:
        await asyncio.sleep(0)
        _cancel_myself(times)
        await hang()

    for function in (at_once, later):
        ended = await _outcome_and_more(function)
        assert isinstance(ended, Failed)
        assert ended.error.kind is FailureKind.CRASHED


@pytest.mark.parametrize("own_first", [True, False])
async def test_a_disconnect_passes_through_beside_a_cancellation_by_the_function_itself(
    own_first: bool,
) -> None:
    begun = asyncio.Event()

    async def function() -> str:
        if own_first:
            _cancel_myself()
        else:
            begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await hang()
        begun.set()
        if own_first:
            await hang()
        _cancel_myself()
        return "done"

    assert (await cancel_once_begun(lambda: outcome(function), begun)).cancelled()


async def test_unfinished_tasks_have_ended_before_the_outcome_is_returned() -> None:
    ended = []

    async def left_behind() -> None:
        try:
            await hang()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def function() -> str:
        tasks.append(asyncio.create_task(left_behind()))
        await asyncio.sleep(0)
        return "done"

    tasks: list[asyncio.Task[None]] = []
    await result(function)
    assert ended == [True]
    assert tasks[0].cancelled()


async def test_progress_and_logs_arrive_in_order_and_progress_only_increases() -> None:
    async def function(ctx: Context) -> None:
        ctx.progress(1, 3, "one")
        ctx.progress(1, 3, "one again")
        await asyncio.sleep(0)
        ctx.progress(3, 3)
        ctx.debug("a")
        ctx.info({"b": 1}, logger="x")
        ctx.warning("c")
        ctx.error("d")
        ctx.log("notice", "e")

    notes = Notes()
    await result(function, outside=ports(notes))
    assert notes.progressed == [(1, 3, "one"), (3, 3, None)]
    assert notes.logged == [
        ("debug", "a", None),
        ("info", {"b": 1}, "x"),
        ("warning", "c", None),
        ("error", "d", None),
        ("notice", "e", None),
    ]
