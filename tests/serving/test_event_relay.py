"""Passing items from the change log's thread to the event loop."""

import asyncio
import threading
from collections.abc import Sequence

from mcphost.serving.events import Relay


class Desk:
    """Keeps the items that it is passed; fails a given number of times."""

    def __init__(self) -> None:
        self.lots: list[list[int]] = []
        self.failures = 0
        self.changed = asyncio.Event()

    async def handle(self, items: Sequence[int]) -> None:
        if self.failures:
            self.failures -= 1
            raise LookupError("not now")
        self.lots.append(list(items))
        self.changed.set()

    async def until(self, count: int) -> list[int]:
        async with asyncio.timeout(10):
            while len(handled := [item for lot in self.lots for item in lot]) < count:
                self.changed.clear()
                await self.changed.wait()
        return handled


async def test_items_that_arrive_together_are_handled_together_and_in_order() -> None:
    desk = Desk()
    relay = Relay(desk.handle)
    relay.start()
    thread = threading.Thread(target=lambda: [relay.put(number) for number in range(100)])
    thread.start()
    thread.join()
    assert await desk.until(100) == list(range(100))
    assert len(desk.lots) == 1


async def test_failed_items_are_handled_again_before_later_ones() -> None:
    desk = Desk()
    desk.failures = 1
    relay = Relay(desk.handle)
    relay.start()
    relay.put(1)
    await asyncio.sleep(0)
    relay.put(2)
    assert await desk.until(2) == [1, 2]
