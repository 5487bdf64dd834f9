"""What callers submitted to the writer, and how they are told what became of it."""

import asyncio
import concurrent.futures
import logging
from collections import defaultdict
from collections.abc import Sequence

from mcphost.audit.records import Record
from mcphost.audit.rows import Row
from mcphost.observability import counters

logger = logging.getLogger(__name__)

# What one transaction may hold of payloads, unless a single submission is larger.
PAYLOAD_BYTES = 4 * 1024 * 1024


class RecordLost(Exception):  # noqa: N818 - a record's fate
    """The record was not confirmed by the database, and nobody goes on trying.

    It did not land, unless a connection was lost in the very moment of its commit.
    """


class Job:
    """What one caller submitted: lands together or not at all."""

    __slots__ = ("future", "loop", "records", "rows", "since")

    def __init__(
        self,
        records: Sequence[Record],
        since: float,
        future: "asyncio.Future[None] | concurrent.futures.Future[None]",
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.records = records
        self.since = since
        self.future = future
        self.loop = loop
        self.rows: list[Row] | None = None


Verdict = tuple[Job, Exception | None]


def portions(jobs: list[Job]) -> list[list[Job]]:
    """`jobs` in groups of a few megabytes of payload each, the last to be written first."""
    groups: list[list[Job]] = [[]]
    held = 0
    for job in jobs:
        size = sum(len(row.sealed.ciphertext) for row in job.rows or () if row.sealed is not None)
        if held + size > PAYLOAD_BYTES and groups[-1]:
            groups.append([])
            held = 0
        groups[-1].append(job)
        held += size
    return groups[::-1]


def lose(jobs: list[Job], why: str) -> None:
    """Tell those who wait that their records are lost, and the log how many are."""
    if jobs:
        count = sum(len(job.records) for job in jobs)
        counters.records_lost.add(count)
        logger.error("%s records are lost: %s", count, why)
        settle([(job, RecordLost(why)) for job in jobs])


def settle(verdicts: Sequence[Verdict]) -> None:
    """Tell those who wait: one call per event loop, however many there are."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_loop[verdict[0].loop].append(verdict)
    for loop, of_loop in by_loop.items():
        if loop is None:
            _resolve(of_loop)
            continue
        try:
            loop.call_soon_threadsafe(_resolve, of_loop)
        except RuntimeError:  # the loop is closed: nobody waits there any more
            logger.warning("%s records were settled after their event loop ended", len(of_loop))


def _resolve(verdicts: Sequence[Verdict]) -> None:
    for job, error in verdicts:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(None)
        else:
            job.future.set_exception(error)
