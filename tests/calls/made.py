"""Claims, as tests make them."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from mcphost.audit.conditions import Condition
from mcphost.audit.records import Record, new_id
from mcphost.audit.writer import Writer
from mcphost.calls import claims
from mcphost.calls.claims import Taking, Wanted
from mcphost.calls.models import Claim

TENANT = UUID(int=7)
Submission = tuple[Condition, Sequence[Record]]


def wanted(answers: str = "these", **values: Any) -> Wanted:
    """Some round of a new call."""
    made = {"call": new_id(), "round": 2, "tenant": TENANT, "seconds": 600.0, **values}
    return Wanted(answers=answers, **made)


def taking(of: Wanted, epoch: int = 1) -> Taking:
    """A process that takes it."""
    return Taking.of(of, uuid4(), epoch)


def submit(writer: Writer, *submissions: Submission) -> list[Any]:
    """Submit all in one turn of an event loop; what became of each."""

    async def submitting() -> list[Any]:
        futures = [writer.submit_if(*each) for each in submissions]
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), 60)

    return asyncio.run(submitting())


def claimed(writer: Writer, of: Wanted) -> Taking:
    """Claim it."""
    first = taking(of)
    assert submit(writer, (claims.claim(first, of), [])) == [True]
    return first


def row(of: Wanted) -> Claim:
    """The claim of a round as it lies in the database."""
    return Claim.objects.get(call=of.call, round=of.round)
