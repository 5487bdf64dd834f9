"""Waiting for an unreachable database, until a probe or the writer finds that it is back."""

import asyncio
import logging
import threading

import pytest

from mcphost.observability.availability import Availability, Source

PATIENCE = 20


class Door:
    """A probe that fails while it is shut, and counts its calls."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.tried = threading.Semaphore(0)

    def __call__(self) -> None:
        self.tried.release()
        if not self.open.is_set():
            raise ConnectionError

    def await_attempt(self) -> None:
        assert self.tried.acquire(timeout=PATIENCE)


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def availability(door: Door) -> Availability:
    made = Availability()
    made.probe = door
    return made


async def test_all_waiting_callers_continue_once_a_probe_succeeds(
    availability: Availability, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(3):
        availability.lost(Source.CONNECTION, "OperationalError")
    assert availability.unreachable
    assert availability.problem() == "the database is unreachable"
    waiting = [asyncio.ensure_future(availability.wait(PATIENCE)) for _ in range(100)]
    await asyncio.to_thread(door.await_attempt)
    await asyncio.to_thread(door.await_attempt)
    assert not any(each.done() for each in waiting)
    door.open.set()
    assert all(await asyncio.gather(*waiting))
    assert not availability.unreachable
    said = [each.getMessage() for each in caplog.records]
    assert said[0] == "the database is unreachable: OperationalError"
    assert said[1].startswith("the database was unavailable for ")
    assert len(said) == 2


async def test_a_wait_for_the_database_ends_at_its_time_out_or_cancellation(
    availability: Availability,
) -> None:
    assert not availability.unreachable
    assert availability.problem() is None
    assert await availability.wait(0)
    availability.lost(Source.RECORDS, "OperationalError")
    assert not await availability.wait(0.01)
    assert not availability._waiting
    waiting = asyncio.ensure_future(availability.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not availability._waiting


async def test_a_lost_database_counts_as_back_only_when_the_same_source_reaches_it(
    availability: Availability, door: Door
) -> None:
    availability.lost(Source.RECORDS, "OperationalError")
    availability.lost(Source.CONNECTION, "OperationalError")
    assert availability.problem() == "audit records cannot be written; the database is unreachable"
    waiting = asyncio.ensure_future(availability.wait(PATIENCE))
    door.open.set()
    while availability.problem() != "audit records cannot be written":  # noqa: ASYNC110 - a thread's
        await asyncio.sleep(0.001)
    assert availability.unreachable
    availability.reached(Source.RECORDS)
    availability.reached(Source.RECORDS)
    assert await waiting
