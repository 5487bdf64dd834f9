"""Functions whose calls become tasks: what the round returns, and what runs again in the task."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.compiling import compile_function
from mcphost.runtime.call import Delivery
from mcphost.runtime.outcomes import Complete, Deferred, FailureKind
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import TaskSupport
from mcphost.runtime.threads import ToolThreads
from mcphost.sdk import Context, tool
from tests.kinds.rounds import Notes, failure, ports, seen
from tests.kinds.rounds_with_client import Driven


def deferring(notes: Notes | None = None) -> Ports:
    outside: Ports = ports(notes, seconds=10)._replace(may_defer=lambda: True)
    return outside


def driven(function: Callable[..., Any], outside: Ports | None = None) -> Driven:
    return Driven(function, outside=outside or deferring())


def compiled(function: Callable[..., Any]) -> Compiled:
    return compile_function(seen(function))


@pytest.mark.parametrize("support", list(TaskSupport))
def test_a_tool_declares_its_task_support_and_retries(support: TaskSupport):
    retries = 0 if support is TaskSupport.NEVER else 3

    @tool(tasks=support, retries=retries)
    async def function() -> None: ...

    assert compiled(function).task_support is support
    assert compiled(function).retries == retries


async def test_a_function_that_becomes_a_task_runs_again_but_its_steps_do_not() -> None:
    began: list[int] = []
    saved: list[str] = []

    async def save(what: str) -> str:
        saved.append(what)
        return what

    async def function(ctx: Context) -> str:
        began.append(ctx.round)
        await ctx.step("save", save, "before")
        await ctx.become_task()
        return await ctx.step("save", save, "after")

    call = driven(function)
    await call.defers()
    assert saved == ["before"]
    assert await call.completes() == "after"
    assert (began, saved) == ([1, 2], ["before", "after"])


async def test_concurrent_code_is_unwound_when_the_call_becomes_a_task() -> None:
    tidied: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append("beside")

    async def function(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits())
            group.create_task(ctx.become_task())

    assert isinstance(await driven(function).advance(), Deferred)
    assert tidied == ["beside"]


async def test_a_task_reports_its_progress_with_messages() -> None:
    @tool(tasks="always")
    async def function(ctx: Context) -> None:
        ctx.progress(1, 3, "getting ready")
        await ctx.become_task()
        ctx.progress(2, 3, "printing")
        ctx.info("almost there")

    notes = Notes()
    call = driven(function, deferring(notes))
    await call.defers()
    assert notes.progressed == [(1, 3, "getting ready")]
    await call.completes_with_nothing()
    assert notes.progressed == [(1, 3, "getting ready"), (2, 3, "printing")]
    assert notes.logged == [("info", "almost there", None)]
    begun = driven(function, deferring(again := Notes()))
    begun.call = begun.call._replace(delivery=Delivery.TASK)
    await begun.completes_with_nothing()
    assert again.progressed == notes.progressed


async def test_a_function_without_a_free_thread_becomes_a_task_if_permitted() -> None:
    gate, begun = threading.Event(), threading.Event()
    ran: list[str] = []

    @tool(threads=1, tasks="slow")
    def function() -> str:
        begun.set()
        assert gate.wait(10)
        ran.append("ran")
        return "ran"

    outside: Ports = ports(threads=ToolThreads(1))
    first = asyncio.create_task(driven(function, outside).advance())
    assert await asyncio.to_thread(begun.wait, 10)
    waiting = driven(function, outside._replace(may_defer=lambda: True))  # type: ignore[attr-defined]
    deferred = await waiting.advance()
    assert isinstance(deferred, Deferred)
    assert deferred.instead_of_refusal
    assert (await failure(function, outside=outside)).kind is FailureKind.OVERLOADED
    gate.set()
    assert isinstance(await first, Complete)
    assert isinstance(await waiting.advance(), Complete)
    assert ran == ["ran", "ran"]
