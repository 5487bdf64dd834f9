"""Claims for tests."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from mcphost.audit.records import Record, new_id
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import Writer
from mcphost.calls import claims
from mcphost.calls.claims import ClaimLease, WantedClaim
from mcphost.calls.models import Claim
from tests.audit.databases import record

TENANT = UUID(int=7)
Submission = tuple[Condition, Sequence[Record]]


def wanted(answers: str = "these", **values: Any) -> WantedClaim:
    """A wanted claim of a new call."""
    made = {"call": new_id(), "round": 2, "tenant": TENANT, "seconds": 600.0, **values}
    return WantedClaim(answers=answers, **made)


def with_payload() -> Record:
    return record(tenant=TENANT, payload={"answer": "yes"})


def lease(of: WantedClaim, epoch: int = 1) -> ClaimLease:
    """A lease by a new process."""
    return ClaimLease.of(of, uuid4(), epoch)


def submit(writer: Writer, *submissions: Submission) -> list[Any]:
    """Submit all in one iteration of an event loop; return the result or error of each."""

    async def submitting() -> list[Any]:
        futures = [writer.submit_if(*each) for each in submissions]
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), 60)

    return asyncio.run(submitting())


def claimed(writer: Writer, of: WantedClaim) -> ClaimLease:
    """Claim the round."""
    first = lease(of)
    assert submit(writer, (claims.claim(first, of), [])) == [True]
    return first


def row(of: WantedClaim) -> Claim:
    """The claim of a round in the database."""
    return Claim.objects.get(call=of.call, round=of.round)
