"""What never waits is over at once; the rest goes on as if it had been awaited."""

import asyncio

import pytest

from mcphost.runtime.begun import Begun


async def test_what_never_waits_is_over_at_once() -> None:
    async def answer() -> int:
        return 42

    begun = Begun(answer())
    assert begun.over
    assert begun.value == 42


async def test_what_waits_goes_on_when_awaited() -> None:
    async def answer() -> int:
        total = 0
        for number in (1, 2, 3):
            await asyncio.sleep(0)
            total += number
        return total + await asyncio.sleep(0.001, 36)

    begun = Begun(answer())
    assert not begun.over
    assert await begun == 42


async def test_what_is_raised_before_the_first_wait_is_raised_at_once() -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        Begun(fail())


async def test_what_is_raised_after_it_is_raised_where_it_is_awaited() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    begun = Begun(fail())
    with pytest.raises(LookupError):
        await begun


async def test_what_a_future_raises_reaches_the_coroutine() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask() -> str:
        try:
            await future
        except LookupError:
            await asyncio.sleep(0)
            return "not found"
        return "found"

    begun = Begun(ask())
    future.set_exception(LookupError())
    assert await begun == "not found"


async def test_a_coroutine_may_end_when_it_is_cancelled() -> None:
    begun = asyncio.Event()

    async def stubborn() -> str:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "ended"
        return "never"

    async def run() -> str:
        return await Begun(stubborn())

    task = asyncio.create_task(run())
    await begun.wait()
    task.cancel()
    assert await task == "ended"


async def test_closing_reaches_the_coroutine() -> None:
    closed = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def run() -> None:
        await Begun(tidy())

    work = run()
    work.send(None)
    work.close()
    assert closed == [True]
