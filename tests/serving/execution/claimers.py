"""Several simulated processes that claim rounds, each with its own id, heartbeat and writer."""

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
from mcphost.audit.writer.writer import Writer
from mcphost.audit.writer.writer import WriterLimits as WriterLimits
from mcphost.calls.models import Claim
from mcphost.feed.models import Node
from mcphost.feed.nodes import Heartbeat
from mcphost.serving.execution.claims import Claimed, Claiming, ClaimLimits, WantedClaim, Won
from tests.audit.databases import record

QUICK = ClaimLimits(wait=0.2, first_look=0.001, longest_pause=0.01)
UNHURRIED = ClaimLimits(wait=20, first_look=0.002, longest_pause=0.05)
LONG = timedelta(seconds=16)


class Process:
    """One process's claims, its heartbeat and its writer."""

    def __init__(self, limits: ClaimLimits = QUICK, **writer: float) -> None:
        self.heartbeat = Heartbeat()
        self.writer = Writer(WriterLimits(**{"pause": 0.001, **writer}))  # type: ignore[arg-type]
        self.claiming = Claiming(lambda: self.heartbeat.id, self.writer, limits)
        self.claim = self.claiming.claim
        self.conclude = self.claiming.conclude
        self.release = self.claiming.release

    async def win(self, wanted: WantedClaim, *records: Record) -> Won:
        won = await self.claim(wanted, records)
        assert isinstance(won, Won)
        return won


@contextmanager
def processes(count: int, limits: ClaimLimits = QUICK, **writer: float) -> Iterator[list[Process]]:
    """`count` processes with running writers."""
    made = [Process(limits, **writer) for _ in range(count)]
    for each in made:
        each.writer.start()
    try:
        yield made
    finally:
        for each in made:
            each.writer.stop(20)


def wanted(tenant: UUID, answers: str = "these", **values: Any) -> WantedClaim:
    """A round of a new call."""
    made = {"call": new_id(), "round": 2, "seconds": 600.0, **values}
    return WantedClaim(tenant=tenant, answers=answers, **made)


def numbered(tenant: UUID, number: int) -> WantedClaim:
    """A round that several processes identify by its number."""
    return WantedClaim(UUID(int=number), 1, tenant, "these", 600.0)


def answer(number: int) -> Record:
    """The record of the round's input responses."""
    return record(target=f"answer {number}")


def ended(number: int) -> Record:
    """The record of the round's end."""
    return record(target=f"end {number}")


def targets() -> list[str]:
    """The targets of the records of numbered rounds."""
    return list(Entry.objects.filter(action="test.done").values_list("target", flat=True))


def age_claims(by: timedelta = LONG) -> None:
    """Make every claim older by `by`."""
    assert Claim.objects.update(taken_at=F("taken_at") - by)


def expire_claims(by: timedelta) -> None:
    """Make every claim expired since `by`."""
    Claim.objects.update(expires_at=Now() - by)


def age_processes(by: timedelta = LONG) -> None:
    """Make the last heartbeat of every process `by` ago."""
    Node.objects.update(seen_at=Now() - by)


def recorded() -> set[UUID]:
    """The ids of the entries that tests have made (`databases.record`)."""
    return set(Entry.objects.filter(action="test.done").values_list("id", flat=True))


async def gathered(*claims: Any) -> list[Claimed]:
    return list(await asyncio.wait_for(asyncio.gather(*claims), 20))
