"""Concurrent commits of two processes wait for each other without a deadlock."""

import asyncio
from collections.abc import Iterator
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from mcphost.audit.writer.writer import Writer, writer
from mcphost.calls import sessions as rows
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.legacy import session as sessions
from tests.cast import Cast
from tests.serving.legacy.callers import PATIENCE, Caller, true
from tests.serving.legacy.test_interrupted_calls import slow_writer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the errors for which the writer had to try again."""
    found: list[str] = []
    real = Writer._fall_behind

    def fall_behind(writer: Writer, why: str, *, check: bool = False) -> None:
        if not check:
            found.append(why)
        real(writer, why, check=check)

    monkeypatch.setattr(Writer, "_fall_behind", fall_behind)
    yield found


class Flush:
    """What another process does when it writes when two sessions were used: one, and the other."""

    def __init__(self, first: UUID, second: UUID) -> None:
        self._ids = first, second
        self.wrote_one = Event()
        self.go_on = Event()

    @transaction.atomic
    def __call__(self) -> None:
        rows._write([(self._ids[0], timezone.now())])
        self.wrote_one.set()
        self.go_on.wait(0.5)  # meanwhile the writer begins, except on SQLite
        rows._write([(self._ids[1], timezone.now())])


async def _two(asking: Cast) -> tuple[ClientSession, ClientSession]:
    """Two sessions by their ids; the row of the first was changed last."""
    both = [(await Caller.at(asking)).session for _ in range(2)]
    first, second = sorted(both, key=lambda one: one.id)
    await sessions.set_log_level(first, "error")
    return first, second


async def _together(flush: Flush, *commits: Any) -> None:
    flushing = asyncio.ensure_future(in_database(flush))
    async with asyncio.timeout(PATIENCE):
        await asyncio.to_thread(flush.wrote_one.wait, PATIENCE)
        async with slow_writer():
            committing = [asyncio.ensure_future(one) for one in commits]
            await true(lambda: writer.waiting() >= len(commits))
        await asyncio.gather(flushing, *committing)


async def test_sessions_end_while_another_process_writes_their_use_without_deadlock(
    asking: Cast, failures: list[str]
) -> None:
    first, second = await _two(asking)
    await _together(Flush(first.id, second.id), sessions.end(first), sessions.end(second))
    assert not failures


async def test_ending_a_session_and_opening_a_stream_during_use_writes_does_not_deadlock(
    asking: Cast, failures: list[str]
) -> None:
    first, second = await _two(asking)
    opening = sessions.open_stream(first, uuid4())
    await _together(Flush(first.id, second.id), opening, sessions.end(second))
    assert not failures
