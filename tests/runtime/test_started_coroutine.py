"""A coroutine that never waits ends at once; any other continues as if it had been awaited."""

import asyncio

from mcphost.runtime.started_coroutine import StartedCoroutine


async def test_a_coroutine_that_never_waits_ends_at_once() -> None:
    async def answer() -> int:
        return 42

    started = StartedCoroutine(answer())
    assert started.over
    assert started.value == 42


async def test_a_coroutine_that_waits_continues_when_awaited() -> None:
    async def answer() -> int:
        total = 0
        for number in (1, 2, 3):
            await asyncio.sleep(0)
            total += number
        return total + await asyncio.sleep(0.001, 36)

    started = StartedCoroutine(answer())
    assert not started.over
    assert await started == 42


async def test_closing_an_awaiting_coroutine_closes_the_started_one() -> None:
    closed = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def run() -> None:
        await StartedCoroutine(tidy())

    work = run()
    work.send(None)
    work.close()
    assert closed == [True]
