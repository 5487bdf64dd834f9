"""Whoever waits is told to look again, and nobody else."""

import asyncio
from threading import Thread
from uuid import UUID

from mcphost.feed.loop import ChangeNews
from mcphost.serving.waiting import Waiters

ACME, GLOBEX = UUID(int=1), UUID(int=2)
SECONDS = 10


def news(tenant: UUID | None, name: str) -> ChangeNews:
    return ChangeNews(1, tenant, "link", name)


async def test_news_from_another_thread_sets_the_events_of_those_who_wait_for_it() -> None:
    waiters = Waiters()
    with waiters.expecting((ACME, "a")) as one, waiters.expecting((ACME, "a")) as two:
        Thread(target=waiters.heard, args=(news(ACME, "a"),)).start()
        await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), SECONDS)


async def test_news_of_something_else_wakes_nobody() -> None:
    waiters = Waiters()
    with waiters.expecting((ACME, "a")) as event:
        for other in (news(GLOBEX, "a"), news(ACME, "b"), news(None, "a")):
            waiters.heard(other)
        await asyncio.sleep(0)
        assert not event.is_set()


async def test_after_a_gap_everybody_looks_again() -> None:
    waiters = Waiters()
    with waiters.expecting((ACME, "a")) as one, waiters.expecting((GLOBEX, "b")) as two:
        waiters.heard_nothing()
        await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), SECONDS)


async def test_who_has_left_is_told_nothing_more() -> None:
    waiters = Waiters()
    with waiters.expecting((ACME, "a")) as gone, waiters.expecting((ACME, "a")) as stays:
        pass
    with waiters.expecting((ACME, "a")) as new:
        waiters.heard(news(ACME, "a"))
        await asyncio.wait_for(new.wait(), SECONDS)
    assert not gone.is_set()
    assert not stays.is_set()


async def test_a_loop_that_has_ended_keeps_nobody_from_the_news() -> None:
    waiters, loop = Waiters(), asyncio.new_event_loop()
    gone = waiters.expecting((ACME, "a"))

    async def wait() -> None:
        gone.__enter__()

    await asyncio.to_thread(loop.run_until_complete, wait())
    loop.close()
    with waiters.expecting((ACME, "a")) as here:
        waiters.heard(news(ACME, "a"))
        await asyncio.wait_for(here.wait(), SECONDS)
