"""Processes that race for the same rounds, and a process that is killed while it runs some."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import IO
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from mcphost.calls.models import Claim
from mcphost.protocol.errors import ProtocolError
from mcphost.serving.database import in_database
from mcphost.serving.execution.claims import Claimed, ClaimRefused, Finished, WantedClaim, Won
from tests.audit.databases import record
from tests.audit.writer.test_writer import in_background
from tests.cast import Cast
from tests.serving.execution.claimers import (
    UNHURRIED,
    Process,
    age_claims,
    age_processes,
    answer,
    ended,
    gathered,
    numbered,
    processes,
    recorded,
    targets,
    wanted,
)
from tests.serving.execution.claiming_child import HELD, racing

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 40
UNTIL_KILLED = 60
"""What another process says until it is killed."""
CHILD = "import django; django.setup(); from tests.serving.execution import claiming_child as c; c.start()"


async def claim_and_end(process: Process, asked: WantedClaim, name: str) -> Claimed:
    claimed = await process.claim(asked, [record()])
    if isinstance(claimed, Won):
        await process.conclude(claimed, name.encode(), [])
    return claimed


@pytest.mark.parametrize("answers", [("these", "these"), ("these", "those")])
def test_two_threads_that_race_have_one_winner_per_round(
    cast: Cast, answers: tuple[str, str]
) -> None:
    rounds = [wanted(cast.acme.id) for _ in range(ROUNDS)]

    def racer(process: Process, mine: str) -> list[Claimed]:
        async def both_times() -> list[Claimed]:
            asked = [wanted(cast.acme.id, mine, call=each.call) for each in rounds]
            return await gathered(*(claim_and_end(process, each, mine) for each in asked * 2))

        return asyncio.run(both_times())

    with processes(2, UNHURRIED) as (here, there):
        other = in_background(lambda: racer(there, answers[1]))
        got = [racer(here, answers[0]), other()]
    for number in range(ROUNDS):
        of_one = [(side, got[side][number + again]) for side in (0, 1) for again in (0, ROUNDS)]
        ((winner, _),) = [each for each in of_one if isinstance(each[1], Won)]
        for side, claimed in of_one:
            same = answers[side] == answers[winner]
            end = Finished(answers[winner].encode()) if same else ClaimRefused("other-answers")
            assert isinstance(claimed, Won) or claimed == end
    assert len(recorded()) == ROUNDS, "what did not win is not recorded"


@contextmanager
def child(tenant: UUID) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """Another process on the same database, and its output (claiming_child.py)."""
    there = connection.settings_dict
    where = f"sqlite:///{there['NAME']}"
    if connection.vendor == "postgresql":
        address = f"{there['HOST']}:{there['PORT'] or 5432}/{there['NAME']}"
        where = f"postgres://{there['USER']}:{there['PASSWORD']}@{address}"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "mcphost.settings",
        "DATABASE_URL": where,
        "PYTHONPATH": str(settings.BASE),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tenant), "child", str(ROUNDS)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        process.kill()
        process.communicate(timeout=20)


def _race(tenant: UUID, other: "subprocess.Popen[str]", said: IO[str]) -> None:
    """Let the other process and one in this process claim the same rounds."""

    async def race(process: Process) -> list[Claimed]:
        return [claimed async for _, claimed in racing(process, tenant, "parent", ROUNDS)]

    with processes(1, UNHURRIED) as (here,):
        assert said.readline() == "ready\n"
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
        mine = asyncio.run(race(here))
        theirs = [said.readline().split() for _ in range(ROUNDS)]
    for number, (claimed, (word, _)) in enumerate(zip(mine, theirs, strict=True)):
        assert sorted([type(claimed).__name__, word]) == ["Finished", "Won"], number


def _kill(killed: "subprocess.Popen[str]", said: IO[str]) -> set[tuple[str, int]]:
    """Kill the process while it claims and ends; return what it said that it has won and ended."""
    assert said.readline() == "held 1\n"
    lines = [said.readline().split() for _ in range(UNTIL_KILLED)]
    killed.send_signal(signal.SIGKILL)
    lines += [line.split() for line in said.readlines() if line.endswith("\n")]
    killed.wait(20)
    _wait_for_its_last_commit()
    return {(word, int(number)) for word, number in lines}


def _wait_for_its_last_commit() -> None:
    """Wait until PostgreSQL is done with what a killed process sent last."""
    if connection.vendor != "postgresql":
        return
    ends = monotonic() + 20
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    with connection.cursor() as cursor:
        while monotonic() < ends:
            cursor.execute(busy)
            if cursor.fetchone() == (0,):
                return
    pytest.fail("PostgreSQL still works for the killed process")


async def _stand_in(process: Process, tenant: UUID) -> None:
    """Run the round that the killed process held, as soon as that counts as dead."""
    asked = numbered(tenant, HELD)
    with pytest.raises(ProtocolError, match="being processed"):
        await process.claim(asked, [])
    await in_database(age_claims)
    with pytest.raises(ProtocolError, match="being processed"):
        await process.claim(asked, [])
    await in_database(age_processes)
    won = await process.win(asked)
    assert won.epoch == 2
    await process.conclude(won, b"done", [ended(HELD)])
    assert await process.claim(asked, []) == Finished(b"done")


def test_racing_processes_have_one_winner_per_round_and_a_killed_ones_rounds_are_run_once(
    cast: Cast,
) -> None:
    """One scenario, because another process takes seconds to start. The killed one is in the middle
    of eight rounds."""
    tenant = cast.acme.id
    with child(tenant) as (other, said):
        _race(tenant, other, said)
        raced = Counter(what for what in targets() if int(what.split()[1]) < ROUNDS)
        each = [f"{what} {number}" for number in range(ROUNDS) for what in ("answer", "end")]
        assert raced == Counter(each)
        told = _kill(other, said)
    last = max(number for _, number in told) + 20
    before = Counter(targets())
    finished = set(Claim.objects.filter(state="finished").values_list("call", flat=True))
    with processes(1) as (here,):
        asyncio.run(_stand_in(here, tenant))

    async def again(process: Process) -> list[Claimed]:
        asked = [numbered(tenant, number) for number in range(ROUNDS, last)]
        return await gathered(*(process.claim(each, [answer(0)]) for each in asked))

    with processes(1, UNHURRIED) as (here,):
        got = asyncio.run(again(here))
    for number, claimed in enumerate(got, ROUNDS):
        answered, over = before[f"answer {number}"], before[f"end {number}"]
        assert (UUID(int=number) in finished) == bool(over), "the end and its record land together"
        assert isinstance(claimed, Finished if over else Won)
        if isinstance(claimed, Won):
            assert claimed.epoch == 1 + answered, "the claim and its record land together"
        else:
            assert claimed.outcome == f"child {number}".encode()
        assert answered >= (("won", number) in told)
        assert over >= (("ended", number) in told)
    assert set(before.values()) == {1}
