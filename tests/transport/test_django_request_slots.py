"""Threads for Django's requests: a limit in all, a limit per address, in the order of arrival."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from mcphost.transport.django_requests import PER_ADDRESS, WAITING_PER_ADDRESS, Slots

PATIENCE = 20.0


async def taken(slots: Slots, address: str, seconds: float = PATIENCE) -> ThreadPoolExecutor:
    thread = await slots.take(address, seconds)
    assert thread is not None
    return thread


async def waiting(slots: Slots, address: str) -> "asyncio.Task[ThreadPoolExecutor | None]":
    """Start a request that waits for a thread."""
    task = asyncio.create_task(slots.take(address, PATIENCE))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_an_address_gets_at_most_four_threads_and_other_addresses_get_their_own() -> None:
    slots = Slots(PER_ADDRESS + 1)
    threads = [await taken(slots, "192.0.2.1") for _ in range(PER_ADDRESS)]
    assert await slots.take("192.0.2.1", 0.01) is None
    threads.append(await taken(slots, "192.0.2.2", 0.01))
    assert len(set(map(id, threads))) == PER_ADDRESS + 1


async def test_a_free_thread_goes_to_the_first_waiting_address_below_its_limit() -> None:
    slots = Slots(PER_ADDRESS + 1)
    first = [await taken(slots, "a") for _ in range(PER_ADDRESS)]
    other = await taken(slots, "b")
    again, late = await waiting(slots, "a"), await waiting(slots, "c")
    slots.give("b", other)
    assert await late is other, "an address that has its four is passed over"
    slots.give("a", first[0])
    assert await again is first[0]


async def test_a_cancelled_request_returns_its_thread() -> None:
    slots = Slots(1)
    thread = await taken(slots, "a")
    early, late = await waiting(slots, "b"), await waiting(slots, "c")
    early.cancel()
    slots.give("a", thread)  # granted in the same iteration in which it is cancelled
    for task in (early, late):
        await asyncio.wait([task], timeout=PATIENCE)
    assert early.cancelled()
    assert late.result() is thread


async def test_the_number_of_waiting_requests_per_address_is_limited() -> None:
    slots = Slots(1)
    thread = await taken(slots, "a")
    tasks = [await waiting(slots, "a") for _ in range(WAITING_PER_ADDRESS)]
    assert await slots.take("a", PATIENCE) is None, "refused at once"
    for task in tasks:
        slots.give("a", thread)
        assert await task is thread
