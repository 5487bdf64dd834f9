"""What callers submitted to the writer, and how they are told what became of it."""

import asyncio
import concurrent.futures
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mcphost.audit.conditions import Bound, Condition
from mcphost.audit.records import Record
from mcphost.audit.rows import Row, json_bytes, prepare
from mcphost.audit.sinks import Sink
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
    held: bool | None = None

    def __init__(
        self,
        records: Sequence[Record],
        since: float,
        future: "asyncio.Future[Any] | concurrent.futures.Future[Any]",
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.records = records
        self.since = since
        self.future = future
        self.loop = loop
        self.rows: list[Row] | None = None

    def prepare(self) -> None:
        """Make the rows, once. Raises what `rows.prepare` raises."""
        if self.rows is None:
            self.rows = [prepare(record) for record in self.records]

    def size(self) -> int:
        """How many bytes of payload it brings, once it is prepared."""
        size = 0
        for row in self.rows or ():
            if row.sealed is not None:
                size += len(row.sealed.ciphertext)
        return size


class ConditionalJob(Job):
    """A job whose records land only if its condition takes hold.

    Its rows lie with the condition (`bound`). `tried` says that there was an attempt to commit it,
    of which nobody may have been told that it succeeded.
    """

    __slots__ = ("bound", "condition", "held", "tried")

    def __init__(
        self,
        condition: Condition,
        records: Sequence[Record],
        since: float,
        future: "asyncio.Future[bool]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(records, since, future, loop)
        self.condition = condition
        self.bound: Bound | None = None
        self.held = False
        self.tried = False

    def prepare(self) -> None:
        if self.bound is None:
            rows = [prepare(record) for record in self.records]
            values = json_bytes(self.condition.row())
            self.bound = Bound(self.condition.nonce, self.condition.change, values, rows)

    def size(self) -> int:
        assert self.bound is not None
        sealed = (row.sealed for row in self.bound.rows if row.sealed is not None)
        return len(self.bound.values) + sum(len(each.ciphertext) for each in sealed)


def write_if(sink: Sink, rows: list[Row], jobs: Sequence[ConditionalJob]) -> list[Row]:
    """Commit `rows`, and of `jobs` those whose conditions take hold; the rows that came with them.

    A connection that is lost in a commit leaves it open whether that happened. So before a job that
    was tried before is believed not to hold, the database is asked whether it does already.
    """
    bound = [job.bound for job in jobs if job.bound is not None]
    doubtful = {job.condition.nonce for job in jobs if job.tried}
    for job in jobs:
        job.tried = True
    held = sink.write_if(rows, bound)
    unsure = [one for one in bound if one.nonce in doubtful and one.nonce not in held]
    if unsure:
        held |= sink.made(unsure)
    for job in jobs:
        job.held = job.condition.nonce in held
    return [row for one in bound if one.nonce in held for row in one.rows]


Verdict = tuple[Job, Exception | bool | None]
"""What became of a job: an error; whether its condition took hold; None where it had none."""


def portions(jobs: list[Job]) -> list[list[Job]]:
    """`jobs` in groups of a few megabytes of payload each, the last to be written first."""
    groups: list[list[Job]] = [[]]
    held = 0
    for job in jobs:
        size = job.size()
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
    for job, fate in verdicts:
        if job.future.done():
            continue
        if fate is None or fate is True or fate is False:
            job.future.set_result(fate)
        else:
            job.future.set_exception(fate)
