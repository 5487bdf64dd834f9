"""Processes that claim, several in one: each with a name, a heartbeat and a writer of its own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from mcphost.audit.models import Entry
from mcphost.audit.records import Record, new_id
from mcphost.audit.writer import Limits as WriterLimits
from mcphost.audit.writer import Writer
from mcphost.calls.models import Claim
from mcphost.feed.models import Node
from mcphost.feed.nodes import Heartbeat
from mcphost.serving.claiming import Claimed, Claiming, Limits, Wanted, Won
from tests.audit.databases import record

QUICK = Limits(wait=0.2, first_look=0.001, longest_pause=0.01)
UNHURRIED = Limits(wait=20, first_look=0.002, longest_pause=0.05)
LONG = timedelta(seconds=16)


class Process:
    """One process's claims, its heartbeat and its writer."""

    def __init__(self, limits: Limits = QUICK, **writer: float) -> None:
        self.heartbeat = Heartbeat()
        self.writer = Writer(WriterLimits(**{"pause": 0.001, **writer}))  # type: ignore[arg-type]
        self.claiming = Claiming(lambda: self.heartbeat.id, self.writer, limits)
        self.claim = self.claiming.claim
        self.conclude = self.claiming.conclude
        self.release = self.claiming.release

    async def win(self, wanted: Wanted, *records: Record) -> Won:
        won = await self.claim(wanted, records)
        assert isinstance(won, Won)
        return won


@contextmanager
def processes(count: int, limits: Limits = QUICK, **writer: float) -> Iterator[list[Process]]:
    """So many processes whose writers run."""
    made = [Process(limits, **writer) for _ in range(count)]
    for each in made:
        each.writer.start()
    try:
        yield made
    finally:
        for each in made:
            each.writer.stop(20)


def wanted(tenant: UUID, answers: str = "these", **values: Any) -> Wanted:
    """Some round of a new call."""
    made = {"call": new_id(), "round": 2, "seconds": 600.0, **values}
    return Wanted(tenant=tenant, answers=answers, **made)


def numbered(tenant: UUID, number: int) -> Wanted:
    """A round that several processes know by its number."""
    return Wanted(UUID(int=number), 1, tenant, "these", 600.0)


def answer(number: int) -> Record:
    """The record of the answers that the round takes in."""
    return record(target=f"answer {number}")


def ended(number: int) -> Record:
    """The record of the round's end."""
    return record(target=f"end {number}")


def targets() -> list[str]:
    """What is recorded of numbered rounds."""
    return list(Entry.objects.filter(action="test.done").values_list("target", flat=True))


def age_claims(by: timedelta = LONG) -> None:
    """As if everything had been claimed that much earlier."""
    assert Claim.objects.update(taken_at=F("taken_at") - by)


def expire_claims(by: timedelta) -> None:
    """As if the time of every claim had been over for so long."""
    Claim.objects.update(expires_at=Now() - by)


def age_processes(by: timedelta = LONG) -> None:
    """As if no process had said for that long that it lives."""
    Node.objects.update(seen_at=Now() - by)


def recorded() -> set[UUID]:
    """The ids of the entries that tests have made (`databases.record`)."""
    return set(Entry.objects.filter(action="test.done").values_list("id", flat=True))


async def gathered(*claims: Any) -> list[Claimed]:
    return list(await asyncio.wait_for(asyncio.gather(*claims), 20))
