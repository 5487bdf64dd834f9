"""A tool's own cancellations are distinguished from those of the server."""

import asyncio
import contextlib
from asyncio import CancelledError, Task
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcphost.runtime.own_cancellations import OwnCancellations
from mcphost.runtime.started_coroutine import StartedCoroutine


def own_task() -> "Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


async def resumed(work: Callable[[], Awaitable[str]]) -> tuple[OwnCancellations, str]:
    """Run `work` step by step in this task, as a round runs a tool."""
    own = OwnCancellations()

    async def run() -> str:
        return await work()

    return own, await StartedCoroutine(own.of(run()))


async def test_a_tool_that_cancels_its_own_task_does_not_cancel_the_servers_task() -> None:
    async def work() -> str:
        own_task().cancel()
        try:
            await asyncio.sleep(0)
        except CancelledError:
            own_task().cancel()  # while the first one is thrown into it
        return "done"

    own, value = await resumed(work)
    assert (own.count, value) == (2, "done")
    assert not own.is_cancelled_by_others
    await own.undo()
    assert own_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_a_tool_that_uncancels_its_task_leaves_no_cancellation() -> None:
    async def work() -> str:
        own_task().cancel()
        own_task().uncancel()
        with contextlib.suppress(CancelledError):  # delivered all the same before Python 3.13
            await asyncio.sleep(0)
        return "done"

    own, _ = await resumed(work)
    assert own.count == 0


async def test_a_cancellation_by_the_server_is_not_undone() -> None:
    own, _ = await resumed(lambda: asyncio.sleep(0, "done"))
    own_task().cancel()
    assert own.is_cancelled_by_others
    with pytest.raises(CancelledError):
        await own.undo()
    own_task().uncancel()


async def test_closing_a_coroutine_raises_at_its_await() -> None:
    closed = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    own = OwnCancellations()
    stepped = own.of(work())
    stepped.send(None)
    stepped.close()
    assert closed == [True]
