"""A coroutine ends in bounded time, even if it swallows its cancellation."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from mcphost.runtime import deadlines
from mcphost.runtime.deadlines import Deadline, OutOfTimeError
from mcphost.runtime.started_coroutine import StartedCoroutine
from mcphost.runtime.tool_tasks import Unwound


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WARNING_SECONDS", "HURRY_SECONDS", "LAST_SECONDS"):
        monkeypatch.setattr(deadlines, name, 0.001)


async def hang() -> None:
    await asyncio.Event().wait()


async def limited(body: Callable[[], Any], seconds: float = 0.001) -> Any:
    return await Deadline(StartedCoroutine(body()), seconds).run()


async def test_a_coroutine_that_exceeds_its_time_is_cancelled() -> None:
    with pytest.raises(OutOfTimeError, match=r"not finished within 0\.001 seconds"):
        await limited(hang)
    assert asyncio.current_task().cancelling() == 0


@pytest.mark.parametrize("instead", ["return", "raise"])
async def test_a_coroutine_that_ignores_its_cancellation_is_still_out_of_time(instead: str) -> None:
    async def stubborn() -> None:
        try:
            await hang()
        except asyncio.CancelledError:
            if instead == "raise":
                raise ValueError from None

    with pytest.raises(OutOfTimeError):
        await limited(stubborn)


async def test_a_coroutine_that_swallows_every_cancellation_is_closed_at_its_await(caplog):
    cancelled: list[BaseException] = []

    async def swallows_everything() -> None:
        while True:
            try:
                await hang()
            except BaseException as error:  # noqa: BLE001 - on purpose
                cancelled.append(error)

    with pytest.raises(OutOfTimeError):
        await limited(swallows_everything)
    assert len(cancelled) == deadlines.WARNINGS + 1
    assert isinstance(cancelled[-1], GeneratorExit)
    assert "did not stop when it was closed" in caplog.text


async def test_a_foreign_cancellation_passes_through_even_when_time_is_up() -> None:
    begun = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await hang()
        except asyncio.CancelledError:
            begun.set()
            await hang()

    task = asyncio.create_task(limited(slow_to_end))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_the_time_limit_stands_still_while_the_deadline_rests() -> None:
    async def rests() -> str:
        deadline.rest()
        deadline.rest()
        await asyncio.sleep(0.05)
        deadline.resume()
        deadline.resume()
        return "done"

    async def begins() -> str:
        await asyncio.sleep(0)
        return await rests()

    deadline = Deadline(StartedCoroutine(begins()), 0.02)
    assert await deadline.run() == "done"


async def test_a_deadline_that_begins_resting_starts_its_time_when_resumed() -> None:
    async def rests() -> None:
        await asyncio.sleep(0.02)
        deadline.resume()
        await hang()

    deadline = Deadline(StartedCoroutine(rests()), 0.01)
    with pytest.raises(OutOfTimeError):
        await deadline.run(resting=True)


async def hurried(body: Callable[[], Any]) -> Any:
    """Run a body that is hurried from its first wait on."""
    deadline = Deadline(StartedCoroutine(body()), 10)
    deadline.hurry(Unwound())
    deadline.hurry(Unwound())
    return await deadline.run()


async def test_a_coroutine_that_waits_forever_in_an_ended_round_is_unwound() -> None:
    with pytest.raises(Unwound):
        await hurried(hang)
    assert asyncio.current_task().cancelling() == 0


async def test_a_coroutine_that_keeps_running_in_an_ended_round_is_unwound_later(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(deadlines, "HURRY_SECONDS", 0.02)

    async def spins() -> None:
        while True:  # noqa: ASYNC110 - on purpose
            await asyncio.sleep(0.0001)

    with pytest.raises(Unwound):
        await hurried(spins)


async def test_a_coroutine_that_waits_for_a_thread_is_not_hurried() -> None:
    deadline = Deadline(StartedCoroutine(hang()), 0.02, hurried=False)
    deadline.hurry(Unwound())
    with pytest.raises(OutOfTimeError):
        await deadline.run()


async def test_a_coroutine_that_swallows_its_unwinding_may_be_cancelled_afterwards() -> None:
    heard: list[str] = []

    async def swallows() -> None:
        try:
            await hang()
        except Unwound:
            heard.append("unwound")
        try:
            await hang()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    task = asyncio.create_task(hurried(swallows))
    async with asyncio.timeout(10):
        while not heard:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])
    assert heard == ["unwound", "cancelled"]
    assert task.cancelled()


def test_a_time_limit_of_zero_can_rest_in_every_loop() -> None:
    """uvloop's timers do not provide their time if they are due at once."""

    async def body() -> str:
        deadline = Deadline(StartedCoroutine(asyncio.sleep(0, "done")), 0.0)
        deadline.resume()
        deadline.rest()
        return await deadline.run(resting=True)

    assert uvloop.run(body()) == "done"
