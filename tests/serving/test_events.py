"""Waiting coroutines are notified of their own key only, from any thread."""

import asyncio
import threading
from uuid import UUID

from mcphost.feed.loop import ChangeNews
from mcphost.serving.events import Waiters

ACME, GLOBEX = UUID(int=1), UUID(int=2)
SECONDS = 20


def news(tenant: UUID | None, name: str) -> ChangeNews:
    return ChangeNews(1, tenant, "link", name)


async def test_all_waiters_of_a_key_are_notified_and_no_others() -> None:
    waiters = Waiters()
    with (
        waiters.expecting("a") as one,
        waiters.expecting("a") as two,
        waiters.expecting("b") as other,
    ):
        waiters.notify("a")
        assert await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), SECONDS) == [
            True,
            True,
        ]
        assert not await other.wait(0.001)


async def test_a_notification_before_the_wait_counts_and_counts_once() -> None:
    waiters = Waiters()
    with waiters.expecting("a") as waiter:
        waiters.notify("a")
        assert await asyncio.wait_for(waiter.wait(60), SECONDS)
        waiting = asyncio.create_task(waiter.wait(60))
        await asyncio.sleep(0)
        assert not waiting.done()
        waiters.notify("a")
        assert await asyncio.wait_for(waiting, SECONDS)


async def test_changes_from_another_thread_notify_by_tenant_and_object() -> None:
    waiters = Waiters()
    with waiters.expecting((ACME, "a")) as waiter:
        for other in (news(GLOBEX, "a"), news(ACME, "b"), news(None, "a")):
            waiters.changed(other)
        assert not await waiter.wait(0.001)
        thread = threading.Thread(target=waiters.changed, args=(news(ACME, "a"),))
        thread.start()
        assert await waiter.wait(SECONDS)
        thread.join(SECONDS)


async def test_a_gap_in_the_change_log_notifies_all_waiters() -> None:
    waiters = Waiters()
    with waiters.expecting((ACME, "a")) as one, waiters.expecting((GLOBEX, "b")) as two:
        waiters.gap()
        await asyncio.wait_for(asyncio.gather(one.wait(), two.wait()), SECONDS)


async def test_the_drain_wakes_waiters_whose_wait_it_ends() -> None:
    waiters = Waiters()
    with (
        waiters.expecting("a", until_drain=True) as ends,
        waiters.expecting("a") as goes_on,
    ):
        with waiters.expecting("a", until_drain=True) as left:
            pass
        waiters.drain()
        assert await asyncio.wait_for(ends.wait(), SECONDS)
        assert not await goes_on.wait(0.001)
        assert not await left.wait(0.001)
