"""A tool's tasks end with its round, and cannot end the process."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcphost.runtime import tool_tasks as module
from mcphost.runtime.notification_channel import NotificationChannel
from mcphost.runtime.ports import NullNotifier
from mcphost.runtime.tool_tasks import QuitError, ToolTasks


@contextmanager
def watching() -> Iterator[ToolTasks]:
    tasks = ToolTasks(NotificationChannel(NullNotifier()))
    tasks.enter()
    try:
        yield tasks
    finally:
        tasks.exit()


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_an_unfinished_task_is_cancelled_and_awaited() -> None:
    ended: list[str] = []

    async def left_behind() -> None:
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    with watching() as tasks:
        task = asyncio.create_task(left_behind())
        await asyncio.sleep(0)
    await tasks.end()
    assert task.cancelled()
    assert ended == ["cleaned up"]


async def test_tasks_started_by_tasks_are_ended_too() -> None:
    grandchildren: list[asyncio.Task[None]] = []

    async def parent() -> None:
        try:
            grandchildren.append(asyncio.create_task(for_ever()))
            await for_ever()
        finally:
            grandchildren.append(asyncio.create_task(for_ever()))

    with watching() as tasks:
        asyncio.create_task(parent())  # noqa: RUF006 - left behind on purpose
        await asyncio.sleep(0)
    await tasks.end()
    assert [task.cancelled() for task in grandchildren] == [True, True]


async def test_two_concurrent_rounds_do_not_end_each_others_tasks() -> None:
    async def round_of_a_tool() -> tuple[ToolTasks, "asyncio.Task[None]"]:
        with watching() as tasks:
            return tasks, asyncio.create_task(for_ever())

    first, its_task = await asyncio.create_task(round_of_a_tool())
    second, other_task = await asyncio.create_task(round_of_a_tool())
    await first.end()
    assert its_task.cancelled()
    assert second.unfinished == {other_task}
    await second.end()


async def test_a_task_that_does_not_end_is_abandoned(monkeypatch, caplog):
    monkeypatch.setattr(module, "PASS_SECONDS", 0.001)
    enough = asyncio.Event()

    async def stubborn() -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    with watching() as tasks:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
    await tasks.end()
    assert "1 tasks of a tool still run" in caplog.text
    enough.set()
    await asyncio.wait([task])


async def test_a_task_that_ends_at_the_last_moment_logs_no_warning(monkeypatch, caplog):
    monkeypatch.setattr(module, "PASSES", 1)
    with watching() as tasks:
        task = asyncio.create_task(for_ever())
    await tasks.end()
    assert task.cancelled()
    assert caplog.text == ""


def interrupt() -> None:
    raise KeyboardInterrupt  # not from exec(): Python would exit with 130 for it in the end


@pytest.mark.parametrize("leave", [lambda: sys.exit(3), interrupt])
async def test_an_exit_inside_a_task_does_not_end_the_process(leave: Any) -> None:
    async def exits() -> None:
        leave()

    async def exits_when_cancelled() -> None:
        try:
            await for_ever()
        finally:
            leave()

    with watching() as tasks:
        first, second = asyncio.create_task(exits()), asyncio.create_task(exits_when_cancelled())
        await asyncio.sleep(0)
    await tasks.end()
    assert isinstance(first.exception(), QuitError)
    assert isinstance(second.exception(), QuitError)


async def test_a_guarded_coroutine_can_be_closed_and_awaited() -> None:
    async def answer() -> int:
        return 42

    def guarded() -> Any:
        tasks = ToolTasks(NotificationChannel(NullNotifier()))
        return module._Guarded(answer(), module.Branch(tasks, ".1", ""))

    assert await guarded() == 42
    guarded().close()


@pytest.mark.asyncio(loop_scope="function")
async def test_a_custom_task_factory_of_the_loop_still_creates_the_tasks() -> None:
    made: list[Any] = []

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        made.append(work)
        return asyncio.Task(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(factory)
    with watching() as tasks:
        task = asyncio.create_task(asyncio.sleep(0, "made"))
    with watching():
        assert await asyncio.create_task(asyncio.sleep(0, "again")) == "again"
    assert await task == "made"
    assert len(made) == 2
    assert tasks.unfinished == set()
