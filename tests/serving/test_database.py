"""Running database functions while the database is unreachable and comes back."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from django.db import InterfaceError, OperationalError, connection
from pytest_django import Settings

from mcphost.feed.loop import loop as feed
from mcphost.feed.wiring import probe
from mcphost.observability.availability import Source, availability
from mcphost.serving import database
from mcphost.serving.database import (
    DatabaseAwayError,
    in_database,
    in_database_once,
    in_database_unauthenticated,
    in_database_unbounded,
    report,
    until_there,
)

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 20
Waits = Callable[..., object]
WAITS: tuple[Waits, ...] = (in_database, in_database_unauthenticated, in_database_once)


class Failing:
    """Raises the given errors before it succeeds, and counts how often it was run."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.times = 0

    def __call__(self) -> str:
        self.times += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.fixture(autouse=True)
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is cleared, a lost database stays away."""
    opened = threading.Event()
    opened.set()

    def probe() -> None:
        if not opened.is_set():
            raise OperationalError("away")

    monkeypatch.setattr(availability, "probe", probe)
    yield opened
    opened.set()


@pytest.fixture(autouse=True)
def long(settings: Settings) -> None:
    settings.MCPHOST_DATABASE_WAIT_SECONDS = PATIENCE


def lose() -> None:
    availability.lost(Source.CONNECTION, "a test")


async def _all_wait(count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while database.waiting() < count:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)


@pytest.mark.parametrize("wait", [in_database, in_database_unauthenticated, in_database_unbounded])
async def test_a_function_that_lost_the_database_is_run_again(wait: Waits) -> None:
    failing = Failing(OperationalError("gone"), InterfaceError("closed"), OperationalError())
    assert await wait(failing) == "done"  # type: ignore[misc]
    assert failing.times == 4
    assert database.waiting() == 0


@pytest.mark.parametrize("wait", [*WAITS, in_database_unbounded])
async def test_no_thread_is_used_while_the_database_is_unreachable(
    wait: Waits, door: threading.Event
) -> None:
    door.clear()
    lose()
    work = Failing()
    waiting = [asyncio.ensure_future(wait(work)) for _ in range(50)]  # type: ignore[call-overload]
    if wait is not in_database_unbounded:
        await _all_wait(50)
    assert work.times == 0
    door.set()
    assert await asyncio.gather(*waiting) == ["done"] * 50
    assert database.waiting() == 0


@pytest.mark.parametrize("wait", WAITS)
async def test_the_wait_for_the_database_is_bounded(
    wait: Waits, door: threading.Event, settings: Settings
) -> None:
    settings.MCPHOST_DATABASE_WAIT_SECONDS = 0.05
    door.clear()
    lose()
    with pytest.raises(DatabaseAwayError, match="in time"):
        await wait(Failing())  # type: ignore[misc]
    door.set()
    assert await availability.wait(PATIENCE)
    failing = Failing(*(OperationalError("for ever") for _ in range(1000)))
    with pytest.raises(OperationalError, match="for ever"):
        await in_database(failing)


@pytest.mark.parametrize("wait", WAITS)
async def test_no_request_waits_for_a_thread_that_does_not_return(
    wait: Waits, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MCPHOST_DATABASE_WAIT_SECONDS = 0.05
    monkeypatch.setattr(database, "ANSWER_SECONDS", 0.05)
    answered, work = threading.Event(), Failing()
    try:
        stuck = [asyncio.ensure_future(wait(answered.wait)) for _ in range(database.THREADS)]  # type: ignore[call-overload]
        behind = [asyncio.ensure_future(wait(work)) for _ in range(5)]  # type: ignore[call-overload]
        ends = await asyncio.gather(*stuck, *behind, return_exceptions=True)
    finally:
        answered.set()
    assert {type(end) for end in ends} == {DatabaseAwayError}
    settings.MCPHOST_DATABASE_WAIT_SECONDS = PATIENCE
    assert await wait(Failing()) == "done"  # type: ignore[misc]
    assert work.times == 0  # its wait ended before a thread was free


def test_one_thread_without_a_connection_does_not_stop_the_others(door: threading.Event) -> None:
    door.clear()
    assert feed.poll()
    connection.close()
    report(OperationalError("too many clients"))
    assert not availability.unreachable


async def test_the_number_of_requests_waiting_for_the_database_is_limited(
    door: threading.Event, settings: Settings
) -> None:
    settings.MCPHOST_DATABASE_WAITERS = 3
    door.clear()
    lose()
    waiting = [asyncio.ensure_future(in_database(Failing())) for _ in range(3)]
    await _all_wait(3)
    for one_more in (in_database, in_database_once):
        with pytest.raises(DatabaseAwayError, match="too many"):
            await one_more(Failing())
    with pytest.raises(DatabaseAwayError, match="too many"):
        await until_there()
    strange = asyncio.ensure_future(in_database_unauthenticated(Failing()))  # has its own places
    await _all_wait(4)
    waiting[0].cancel()
    await _all_wait(3)
    again = asyncio.ensure_future(in_database(Failing()))
    door.set()
    assert await asyncio.gather(*waiting[1:], strange, again) == ["done"] * 4


async def test_a_function_that_must_run_once_is_not_repeated() -> None:
    failing = Failing(OperationalError("lost in the commit"))
    with pytest.raises(OperationalError, match="lost in the commit"):
        await in_database_once(failing)
    assert failing.times == 1


async def test_a_function_that_cannot_have_run_is_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connections = [OperationalError("refused"), OperationalError("refused")]

    def refuse() -> None:
        if connections:
            raise connections.pop()

    monkeypatch.setattr(database, "close_old_connections", refuse)
    work = Failing()
    assert await in_database_once(work) == "done"
    assert work.times == 1


@pytest.mark.sqlite  # a file may be locked as a whole
async def test_a_locked_sqlite_database_occupies_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "probe", probe)
    monkeypatch.setattr(database, "BUSY_MS", 1)
    tries = 0

    def write() -> str:
        nonlocal tries
        tries += 1
        with connection.cursor() as cursor:
            cursor.execute("UPDATE audit_entry SET reason = '' WHERE 1 = 0")
        return "written"

    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        waiting = [asyncio.ensure_future(in_database_once(write)) for _ in range(10)]
        await _all_wait(10)
        assert availability.unreachable
        assert 0 < tries <= 10
    assert await asyncio.gather(*waiting) == ["written"] * 10
