"""Submissions to the writer: write those of one batch if their conditions hold, and give each caller its
result."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import BoundCondition, Condition
from mcphost.audit.writer.rows import PreparedRow, prepare
from mcphost.audit.writer.sinks import Sink
from mcphost.observability import counters

logger = logging.getLogger(__name__)

# The most bytes of payload in condition transaction, unless a single submission is larger.
PAYLOAD_BYTES = 4 * 1024 * 1024


class RecordLostError(Exception):
    """The database did not confirm the record, and the writer has stopped trying.

    It was not committed, unless the connection was lost during its commit.
    """


class Job:
    """One submission: its records are committed together or not at all."""

    __slots__ = ("future", "loop", "records", "rows", "since")
    took_hold: bool | None = None

    def __init__(
        self,
        records: Sequence[Record],
        since: float,
        future: "asyncio.Future[Any]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.records = records
        self.since = since
        self.future = future
        self.loop = loop
        self.rows: list[PreparedRow] | None = None

    def prepare(self) -> None:
        """Make the rows, once. Raises as `rows.prepare`."""
        if self.rows is None:
            self.rows = [prepare(record) for record in self.records]

    def size(self) -> int:
        """Bytes of payload, once the job is prepared."""
        size = 0
        for row in self.rows or ():
            if row.sealed is not None:
                size += len(row.sealed.ciphertext)
        return size


class ConditionalJob(Job):
    """A job whose records are committed only if its condition takes hold.

    Its rows are in `bound`, with the condition. `tried`: there was an attempt to commit it, which
    may have succeeded unnoticed.
    """

    __slots__ = ("bound", "condition", "took_hold", "tried")

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
        self.bound: BoundCondition | None = None
        self.took_hold = False
        self.tried = False

    def prepare(self) -> None:
        if self.bound is None:
            rows = [prepare(record) for record in self.records]
            self.bound = BoundCondition.of(self.condition, rows)

    def size(self) -> int:
        return 0 if self.bound is None else self.bound.size()


def write_if(
    sink: Sink, rows: list[PreparedRow], jobs: Sequence[ConditionalJob]
) -> list[PreparedRow]:
    """Commit `rows`, and those of `jobs` whose conditions take hold; return the rows of these jobs.

    If a connection is lost during a commit, its result is unknown. So if the condition of a job
    that was tried before does not take hold now, the database is asked whether it did before.
    """
    bound = [job.bound for job in jobs if job.bound is not None]
    doubtful = {job.condition.nonce for job in jobs if job.tried}
    for job in jobs:
        job.tried = True
    nonces = sink.write_if(rows, bound)
    unsure = [
        condition
        for condition in bound
        if condition.nonce in doubtful
        and condition.nonce not in nonces
        and condition.change.made is not None
    ]
    if unsure:
        nonces |= sink.made(unsure)
    for job in jobs:
        job.took_hold = job.condition.nonce in nonces
    landed = [condition for condition in bound if condition.nonce in nonces]
    for committed in {effect.committed for condition in landed for effect in condition.effects}:
        if committed is not None:
            committed()
    return [row for condition in landed for row in condition.rows]


Verdict = tuple[Job, Exception | bool | None]
"""A job and its result: an error; whether its condition took hold; None if it has none."""


def portions(jobs: list[Job]) -> list[list[Job]]:
    """Split `jobs` into groups of at most PAYLOAD_BYTES of payload; the first group is last."""
    groups: list[list[Job]] = [[]]
    portion_bytes = 0
    for job in jobs:
        size = job.size()
        if portion_bytes + size > PAYLOAD_BYTES and groups[-1]:
            groups.append([])
            portion_bytes = 0
        groups[-1].append(job)
        portion_bytes += size
    return groups[::-1]


def lose(jobs: list[Job], reason: str) -> None:
    """Report lost records to their callers, in the log and in the metrics."""
    if jobs:
        count = sum(len(job.records) for job in jobs)
        counters.records_lost.add(count)
        logger.error("%s records are lost: %s", count, reason)
        settle([(job, RecordLostError(reason)) for job in jobs])


def settle(verdicts: Sequence[Verdict]) -> None:
    """Report results to the callers, with condition call per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_loop[verdict[0].loop].append(verdict)
    for loop, of_loop in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve_futures, of_loop)
        except RuntimeError:  # the loop is closed, and its tasks with it
            logger.warning(
                "results of %s submissions could not be delivered: the event loop is closed",
                len(of_loop),
            )


def _resolve_futures(verdicts: Sequence[Verdict]) -> None:
    for job, result in verdicts:
        if job.future.done():
            continue
        if result is None or result is True or result is False:
            job.future.set_result(result)
        else:
            job.future.set_exception(result)
